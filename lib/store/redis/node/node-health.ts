import type { Scheduler } from '../../../time/scheduler.js';
import type { NodeHealth, Unavailable } from '../../lock-store.js';
import type { RedisClient } from '../client/redis-client.js';
import { mastersOf } from './cluster-masters.js';
import { clusterProblem, quarantinedForMs, replicationProblem } from './probe.js';
import type { Server } from './server.js';
import type { NodeTrial } from './trial.js';

/** A look at one server. It continues when no caller waits for it any more. */
export interface HealthLook {
  readonly node: string;
  /** Never rejects. */
  readonly health: Promise<NodeHealth>;
}

/** Does what a grant does. Returns why that failed. */
type TryGranting = () => Promise<Unavailable | undefined>;

/** How a node is; of a Cluster, each of its masters. */
export function nodeHealth(server: Server, trial: NodeTrial): readonly HealthLook[] {
  const { client } = server.connection;
  const masters = mastersOf(client).map(({ address: node, reachable, serves, hasSlots }) => {
    // With no slots it has nothing to grant.
    const tryGranting: TryGranting = () =>
      hasSlots ? trial.tryGranting(serves) : Promise.resolve(undefined);
    const health =
      reachable === undefined
        ? awayHealth(node, tryGranting)
        : healthOf(server, node, reachable, tryGranting);
    return { node, health };
  });
  if (masters.length > 0) return masters;
  const health = healthOf(server, server.name, client, () => trial.tryGranting());
  return [{ node: server.name, health }];
}

/** The health of a server after this many ms: its reply, or that it has not replied. */
export function healthWithin(
  { node, health }: HealthLook,
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

/** The health of a master without a connection; the attempt makes one. */
async function awayHealth(node: string, tryGranting: TryGranting): Promise<NodeHealth> {
  const failed = await tryGranting();
  const problem = failed?.nodes[0]?.message;
  return { node, reachable: failed === undefined, quarantinedForMs: 0, problem };
}

async function healthOf(
  server: Server,
  node: string,
  master: Pick<RedisClient, 'command'>,
  tryGranting: TryGranting,
): Promise<NodeHealth> {
  const { connection, options, runtime, twin } = server;
  const { nodeTimeoutMs, restartGuard } = options;
  let latencyMs = 0;
  let clockOffsetMs = 0;
  const reply = await connection.look(nodeTimeoutMs, async () => {
    const sentAt = runtime.now();
    const [seconds, micros] = (await master.command('time')) as readonly unknown[];
    const receivedAt = runtime.now();
    latencyMs = receivedAt.monotonicMs - sentAt.monotonicMs;
    clockOffsetMs =
      Number(seconds) * 1_000 + Number(micros) / 1_000 - (receivedAt.wallMs - latencyMs / 2);
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
    problem: known ?? (forMs > 0 ? undefined : (await tryGranting())?.nodes[0]?.message),
  };
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10;
