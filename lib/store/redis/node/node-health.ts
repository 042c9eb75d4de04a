import type { Cluster, Redis } from 'ioredis';
import type { Clock } from '../../../time/clock.js';
import type { NodeHealth, Unavailable } from '../../lock-store.js';
import type { ReplicaOptions } from './acknowledged-writes.js';
import { quarantinedForMs, replicationProblem, type RestartGuard } from './probe.js';
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
  const masters = client.isCluster ? (client as Cluster).nodes('master') : [];
  if (masters.length === 0) return Promise.all([healthOf(connection, client, subject)]);
  return Promise.all(
    masters.map((master) => {
      const { host, port } = master.options;
      return healthOf(connection, master, { ...subject, name: `${String(host)}:${String(port)}` });
    }),
  );
}

async function healthOf(
  connection: RedisConnection,
  client: Redis | Cluster,
  subject: Subject,
): Promise<NodeHealth> {
  const { name: node, twin, clock, timeLimitMs, replicas } = subject;
  let latencyMs = 0;
  let clockOffsetMs = 0;
  const reply = await connection.look(timeLimitMs, async () => {
    const sentAt = clock.now();
    const [seconds, micros] = await client.time();
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
    connection.look(timeLimitMs, () => client.info('replication')),
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
      known ?? (quarantine.forMs > 0 ? undefined : await grantProblem(connection, client, subject)),
  };
}

/** Why the server does not grant what it is asked for; `undefined` when it does, or has no slots to grant anything in. */
async function grantProblem(
  { client: whole }: RedisConnection,
  client: Redis | Cluster,
  { tryGranting }: Subject,
): Promise<string | undefined> {
  if (!whole.isCluster || client.isCluster) return (await tryGranting())?.nodes[0]?.message;
  const { host, port } = (client as Redis).options;
  const address = `${String(host)}:${String(port)}`;
  const serves = (slot: number): boolean => (whole as Cluster).slots[slot]?.[0] === address;
  if (!(whole as Cluster).slots.some((_, slot) => serves(slot))) return undefined;
  return (await tryGranting(serves))?.nodes[0]?.message;
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
