import type { Scheduler } from '../../../time/scheduler.js';
import type { NodeHealth } from '../../lock-store.js';
import { clusterProblem, quarantinedForMs, replicaRemedy, replicationProblem } from './probe.js';
import type { Server } from './server.js';
import type { NodeTrial, Place } from './trial.js';

/** How a node is, by name; of a Cluster, each of its masters. A look continues when no caller waits for it any more, and never rejects. */
export const nodeHealth = (
  server: Server,
  trial: NodeTrial,
): ReadonlyMap<string, Promise<NodeHealth>> =>
  new Map(trial.places().map((place) => [place.name, healthOf(server, trial, place)]));

/** The health of a server after this many ms: its reply, or that it has not replied. */
export function healthWithin(
  node: string,
  health: Promise<NodeHealth>,
  withinMs: number,
  scheduler: Scheduler,
): Promise<NodeHealth> {
  return new Promise((resolve) => {
    const timeout = scheduler.schedule(withinMs, () => {
      const problem = `no answer within ${String(withinMs)} ms`;
      resolve({ node, reachable: false, quarantinedForMs: 0, problem });
    });
    void health.then((found) => {
      timeout.cancel();
      resolve(found);
    });
  });
}

async function healthOf(server: Server, trial: NodeTrial, place: Place): Promise<NodeHealth> {
  const { name: node, reachable: master } = place;
  if (master === undefined) {
    // The attempt connects to it.
    const failed = await trial.tryGranting(place);
    const problem = failed?.nodes[0]?.message;
    return { node, reachable: failed === undefined, quarantinedForMs: 0, problem };
  }
  const { connection, options, runtime, twin, clock } = server;
  const { nodeTimeoutMs, restartGuard } = options;
  let latencyMs = 0;
  let clockOffsetMs = 0;
  const reply = await connection.look(nodeTimeoutMs, async () => {
    const sentAt = runtime.now();
    const [seconds, micros] = (await master.command('time')) as readonly unknown[];
    const receivedAt = runtime.now();
    latencyMs = receivedAt.monotonicMs - sentAt.monotonicMs;
    const serverUs = Number(seconds) * 1_000_000 + Number(micros);
    // The masters of a Cluster have a clock each.
    if (connection.client.kind === 'single')
      clock.learn(serverUs, sentAt.monotonicMs, receivedAt.monotonicMs);
    clockOffsetMs = serverUs / 1_000 - (receivedAt.wallMs - latencyMs / 2);
  });
  if (reply.status === 'unavailable') {
    return { node, reachable: false, quarantinedForMs: 0, problem: reply.nodes[0]?.message };
  }
  const [left, replication, facts] = await Promise.all([
    restartGuard === undefined ? 0 : quarantinedForMs(server, 'later'),
    connection.look(nodeTimeoutMs, () => master.command('info', 'replication')),
    connection.look(nodeTimeoutMs, () => master.command('info', 'server')),
  ]);
  const [forMs, unknown] = typeof left === 'number' ? [left] : [0, left.nodes[0]?.message];
  const known =
    (twin && `is the same server as ${twin}`) ??
    unknown ??
    replicationProblem(replication, options) ??
    (await clusterProblem(server, facts));
  return {
    node,
    reachable: true,
    latencyMs: tenths(latencyMs),
    clockOffsetMs: tenths(clockOffsetMs),
    quarantinedForMs: forMs,
    remedy: replicaRemedy(replication),
    problem: known ?? (forMs > 0 ? undefined : (await trial.tryGranting(place))?.nodes[0]?.message),
  };
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10;
