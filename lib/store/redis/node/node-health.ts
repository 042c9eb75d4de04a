import type { Clock } from '../../../time/clock.js';
import type { NodeHealth, Unavailable } from '../../lock-store.js';
import type { ReplicaOptions } from './acknowledged-writes.js';
import { quarantinedForMs, replicationProblem, type RestartGuard } from './probe.js';
import type { Master, RedisClient } from '../client/redis-client.js';
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
  /**
   * Does what a grant does. Returns why that failed.
   *
   * @param serves whether a key of that slot of a Cluster tries the master in question
   */
  readonly tryGranting: (serves?: (slot: number) => boolean) => Promise<Unavailable | undefined>;
}

/** How a node is; of a Cluster, each of its masters. Never rejects. */
export function nodeHealth(
  connection: RedisConnection,
  subject: Subject,
): Promise<readonly NodeHealth[]> {
  const { client } = connection;
  const masters = client.masters();
  if (masters.length === 0)
    return Promise.all([healthOf(connection, (...command) => client.command(...command), subject)]);
  return Promise.all(
    masters.map((master) =>
      healthOf(connection, (...command) => master.command(...command), {
        ...subject,
        name: master.address,
        tryGranting: () => tryGrantingAt(master, client, subject),
      }),
    ),
  );
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
  const [quarantine, replication] = await Promise.all([
    quarantineOf(connection, subject),
    connection.look(timeLimitMs, () => command('info', 'replication')),
  ]);
  const isTwin = twin && `is the same server as ${twin}`;
  const known = isTwin ?? quarantine.problem ?? replicationProblem(replication, replicas);
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

const SLOTS_OF_A_CLUSTER = 16_384;

/** Tries one master of a Cluster; it passes when it has no slots to grant anything in. */
async function tryGrantingAt(
  { address }: Master,
  client: RedisClient,
  { tryGranting }: Subject,
): Promise<Unavailable | undefined> {
  const serves = (slot: number): boolean => client.ownerOf(slot) === address;
  for (let slot = 0; slot < SLOTS_OF_A_CLUSTER; slot += 1)
    if (serves(slot)) return tryGranting(serves);
  return undefined;
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
