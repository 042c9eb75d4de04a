import type { Clock } from '../../../time/clock.js';
import type { Scheduler } from '../../../time/scheduler.js';
import type { NodeHealth, Unavailable } from '../../lock-store.js';
import type { ReplicaOptions } from './acknowledged-writes.js';
import { mastersOf, type KnownMaster } from './cluster-masters.js';
import {
  clusterProblem,
  quarantinedForMs,
  replicationProblem,
  type RestartGuard,
} from './probe.js';
import type { RedisClient } from '../client/redis-client.js';
import type { RedisConnection } from '../client/redis-connection.js';

interface Subject {
  readonly name: string;
  readonly epoch: string;
  /** The node that it is the same server as. */
  readonly twin: string | undefined;
  readonly clock: Clock;
  readonly timeLimitMs: number;
  readonly restartGuard: RestartGuard | undefined;
  readonly replicas: ReplicaOptions | undefined;
  /** As `clusterProblem` takes it. */
  readonly hasManySlots: boolean;
  /**
   * Does what a grant does. Returns why that failed.
   *
   * @param serves whether a key of that slot of a Cluster tries the master in question
   */
  readonly tryGranting: (serves?: (slot: number) => boolean) => Promise<Unavailable | undefined>;
}

/** A look at one server. It continues when no caller waits for it any more. */
export interface HealthLook {
  readonly node: string;
  /** Never rejects. */
  readonly health: Promise<NodeHealth>;
}

/** How a node is; of a Cluster, each of its masters. */
export function nodeHealth(connection: RedisConnection, subject: Subject): readonly HealthLook[] {
  const { client } = connection;
  const masters = mastersOf(client);
  if (masters.length > 0) return masters.map((master) => masterHealth(connection, master, subject));
  const health = healthOf(connection, (...command) => client.command(...command), subject);
  return [{ node: subject.name, health }];
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

function masterHealth(
  connection: RedisConnection,
  { address, reachable, serves, hasSlots }: KnownMaster,
  subject: Subject,
): HealthLook {
  // With no slots it has nothing to grant.
  const tryGranting = () =>
    hasSlots ? subject.tryGranting(serves) : Promise.resolve<undefined>(undefined);
  const health =
    reachable === undefined
      ? awayHealth(address, tryGranting)
      : healthOf(connection, (...command) => reachable.command(...command), {
          ...subject,
          name: address,
          tryGranting,
        });
  return { node: address, health };
}

/** The health of a master without a connection; the attempt makes one. */
async function awayHealth(node: string, tryGranting: Subject['tryGranting']): Promise<NodeHealth> {
  const failed = await tryGranting();
  const problem = failed?.nodes[0]?.message;
  return { node, reachable: failed === undefined, quarantinedForMs: 0, problem };
}

async function healthOf(
  connection: RedisConnection,
  command: RedisClient['command'],
  subject: Subject,
): Promise<NodeHealth> {
  const { name: node, twin, clock, timeLimitMs, replicas } = subject;
  let latencyMs = 0;
  let clockOffsetMs = 0;
  const reply = await connection.look(timeLimitMs, async () => {
    const sentAt = clock.now();
    const [seconds, micros] = (await command('time')) as readonly unknown[];
    const receivedAt = clock.now();
    latencyMs = receivedAt.monotonicMs - sentAt.monotonicMs;
    clockOffsetMs =
      Number(seconds) * 1_000 + Number(micros) / 1_000 - (receivedAt.wallMs - latencyMs / 2);
  });
  if (reply.status === 'unavailable') {
    return { node, reachable: false, quarantinedForMs: 0, problem: reply.nodes[0]?.message };
  }
  const [quarantine, replication, server] = await Promise.all([
    quarantineOf(connection, subject),
    connection.look(timeLimitMs, () => command('info', 'replication')),
    connection.look(timeLimitMs, () => command('info', 'server')),
  ]);
  const isTwin = twin && `is the same server as ${twin}`;
  const known =
    isTwin ??
    quarantine.problem ??
    replicationProblem(replication, replicas) ??
    (await clusterProblem(connection, server, subject));
  return {
    node,
    reachable: true,
    latencyMs: tenths(latencyMs),
    clockOffsetMs: tenths(clockOffsetMs),
    quarantinedForMs: quarantine.forMs,
    problem:
      known ??
      (quarantine.forMs > 0 ? undefined : (await subject.tryGranting())?.nodes[0]?.message),
  };
}

async function quarantineOf(
  connection: RedisConnection,
  { epoch, timeLimitMs, restartGuard }: Subject,
): Promise<{ readonly forMs: number; readonly problem?: string | undefined }> {
  if (restartGuard === undefined) return { forMs: 0 };
  const guard = { ...restartGuard, bootstrap: false };
  const left = await quarantinedForMs(connection, epoch, timeLimitMs, guard);
  return typeof left === 'number' ? { forMs: left } : { forMs: 0, problem: left.nodes[0]?.message };
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10;
