import { LockConfigurationError } from '../../errors.js';
import type { ReplicaOptions } from './acknowledged-writes.js';
import type { NodeClock } from './node-clock.js';
import type { RedisConnection, Reply } from './redis-connection.js';
import { quarantineScript } from './scripts/quarantine.js';

/** No votes from a node that may have forgotten leases, until all that it may have forgotten are over. */
export interface RestartGuard {
  /** The longest TTL of any lease. */
  readonly maxTtlMs: number;
  /** Whether a node that was never seen before is a new one, and not one that lost everything. */
  readonly bootstrap: boolean;
}

interface Subject {
  readonly name: string;
  /** A name that our Redis user may use: others may be forbidden. */
  readonly key: string;
  readonly epoch: string;
  readonly clock: NodeClock;
  /** What the servers that are there mean for locks. */
  readonly situation: () => string;
  readonly timeLimitMs: number;
  readonly restartGuard: RestartGuard | undefined;
  readonly replicas: ReplicaOptions | undefined;
  /** Whether this is the start of the process: only then a server that was never seen may be a new one. */
  readonly isStart: boolean;
  readonly warn: (message: string) => void;
  /** Told what is left of a quarantine, in ms. */
  readonly onQuarantine: (leftMs: number) => void;
}

/**
 * Looks at the server and says what the operator should know. Answers whether it is there. One that is not there yet is no reason not to
 * start: until it is, it answers `unavailable`.
 *
 * @throws LockConfigurationError for what makes the restart guard impossible
 */
export async function probe(connection: RedisConnection, subject: Subject): Promise<boolean> {
  const { name, key, clock, situation, timeLimitMs, restartGuard, replicas, warn } = subject;
  const scripting = await readTime(connection, key, clock, timeLimitMs);
  if (scripting.status === 'unavailable') {
    if (connection.isRefused) return false; // that was said
    const [failure] = scripting.nodes;
    const problem = (failure?.message ?? 'no answer').replace(/\.$/, '');
    const remedy =
      failure?.kind === 'error' ? ' Holdfast needs the commands EVAL and EVALSHA there.' : '';
    warn(`Redis at ${name} is not usable yet: ${problem}. ${situation()}${remedy}`);
    return false;
  }
  const [memory, replication] = await Promise.all(
    ['memory', 'replication'].map((section) =>
      connection.look(timeLimitMs, ({ client }) => client.info(section)),
    ),
  );
  const policy = field(memory, 'maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    const problem = `Redis at ${name} has maxmemory-policy "${policy}": when memory is full it can evict locks that are held. `;
    if (restartGuard !== undefined) {
      throw new LockConfigurationError(
        `${problem}"restartGuard" cannot see that. Set "noeviction", or leave the guard out.`,
      );
    }
    warn(`${problem}Set "noeviction", or give locks a Redis of their own.`);
  }
  const problem = replication && replicationProblem(replication, replicas);
  if (problem !== undefined) warn(`Redis at ${name} cannot grant locks: it ${problem}.`);
  if (restartGuard?.bootstrap === true && subject.isStart) {
    warn(
      '"restartGuard.bootstrap" is set: a server that has lost all its data passes for a new one. Leave it out after the first deployment.',
    );
  }
  if (restartGuard !== undefined) await lookAtGuard(connection, subject, restartGuard);
  return true;
}

async function readTime(
  connection: RedisConnection,
  key: string,
  clock: NodeClock,
  timeLimitMs: number,
): Promise<Reply> {
  const reply = await connection.look(timeLimitMs, async ({ client }) => {
    const sentAt = performance.now();
    const time: unknown = await client.eval(`return redis.call('TIME')`, 1, key);
    const [seconds = NaN, micros = NaN] = (Array.isArray(time) ? time : []).map(Number);
    const serverUs = seconds * 1_000_000 + micros;
    if (serverUs > 0) clock.learn(serverUs, sentAt, performance.now());
    return time;
  });
  return reply;
}

async function lookAtGuard(
  connection: RedisConnection,
  { name, epoch, timeLimitMs, isStart, warn, onQuarantine }: Subject,
  { maxTtlMs, bootstrap }: RestartGuard,
): Promise<void> {
  const guard = { maxTtlMs, bootstrap: bootstrap && isStart };
  const left = await quarantinedForMs(connection, epoch, timeLimitMs, guard);
  if (typeof left === 'number') {
    onQuarantine(left);
    return;
  }
  const [failure] = left.nodes;
  if (left.transient) {
    warn(`Cannot see whether Redis at ${name} was restarted: ${failure?.message ?? 'no answer'}.`);
    return;
  }
  throw new LockConfigurationError(
    `"restartGuard" cannot see whether Redis at ${name} was restarted: ${failure?.message ?? 'no answer'}. ` +
      'Allow the Redis user the command INFO, in scripts too, or leave the guard out.',
  );
}

/** What is left of a server's quarantine, in ms, or why it cannot be told. */
export async function quarantinedForMs(
  connection: RedisConnection,
  epoch: string,
  timeLimitMs: number,
  { maxTtlMs, bootstrap }: RestartGuard,
): Promise<number | Exclude<Reply, { status: 'answered' }>> {
  const reply = await connection.look(timeLimitMs, ({ client }) =>
    client.eval(quarantineScript.lua, 1, epoch, maxTtlMs, bootstrap ? 1 : 0),
  );
  if (reply.status === 'unavailable') return reply;
  return typeof reply.value === 'number' ? reply.value : connection.malformed(reply.value);
}

/** What keeps a server from granting locks, as INFO says; it may be forbidden, or asked of a node of a Cluster. */
export function replicationProblem(
  replication: Reply,
  replicas: ReplicaOptions | undefined,
): string | undefined {
  if (field(replication, 'role') === 'slave') return 'is a replica: give its master';
  const connected = field(replication, 'connected_slaves');
  if (replicas === undefined || connected === undefined || Number(connected) >= replicas.ack)
    return undefined;
  return `has ${connected} of the ${String(replicas.ack)} replicas that "replicas" asks for`;
}

/** Of an INFO, which may be forbidden. */
function field(reply: Reply | undefined, name: string): string | undefined {
  if (reply?.status !== 'answered') return undefined;
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(String(reply.value))?.[1];
}
