import { LockConfigurationError } from '../../../errors.js';
import type { Clock } from '../../../time/clock.js';
import type { Unavailable } from '../../lock-store.js';
import type { ReplicaOptions } from './acknowledged-writes.js';
import type { NodeClock } from './node-clock.js';
import type { RedisConnection, Reply } from '../client/redis-connection.js';
import { isLoginRefusal, NODE_OF_A_CLUSTER } from '../client/reply-errors.js';
import { quarantineScript } from '../scripts/quarantine.js';

/** No votes from a node that may have forgotten leases, until all that it may have forgotten are over. */
export interface RestartGuard {
  /** The longest TTL of any lease. */
  readonly maxTtlMs: number;
  /** Whether a node that was never seen before is a new one, and not one that lost everything. */
  readonly bootstrap: boolean;
}

/** The release script keeps the TTL of a fence with `SET … KEEPTTL`. Valkey gives a `redis_version` that it is compatible with. */
const OLDEST_REDIS = 6;

interface Subject {
  readonly name: string;
  /** A name that our Redis user may use: others may be forbidden. */
  readonly key: string;
  readonly epoch: string;
  /** The keys that our Redis user needs, as an ACL names them. */
  readonly keyPatterns: readonly string[];
  readonly clock: Clock;
  readonly nodeClock: NodeClock;
  readonly timeLimitMs: number;
  readonly restartGuard: RestartGuard | undefined;
  readonly replicas: ReplicaOptions | undefined;
  /** As `clusterProblem` takes it. */
  readonly hasManySlots: boolean;
  /** Whether this is the start of the process: only then a server that was never seen may be a new one. */
  readonly isStart: boolean;
  /** Told with every look that gets so far whether the server may evict locks: in words, or `undefined` if not. */
  readonly onEviction: (warning: string | undefined) => void;
  /** Does what a grant does, of a Cluster at each of its masters. Returns why that failed. */
  readonly tryGranting: () => Promise<Unavailable | undefined>;
}

/** What a look at a server found. */
export type Finding =
  | 'grants'
  /** The server grants nothing yet, and that was reported. */
  | 'waits'
  /** The server may have forgotten leases. */
  | { readonly kind: 'quarantined'; readonly leftMs: number }
  /** No answer: the connection reports that. */
  | { readonly kind: 'away'; readonly problem: string }
  /** The server replies, and grants nothing until an operator changes something. */
  | {
      readonly kind: 'refuses';
      readonly problem: string;
      readonly remedy?: string;
      /** What stays the same while the words of the problem differ. */
      readonly trouble?: string;
    };

/**
 * Looks at the server: whether it grants locks, tried on a key that no caller can lock, and what the operator should
 * know. A server that is not reachable yet does not keep the application from starting: until it is, requests are
 * `unavailable`.
 *
 * @throws LockConfigurationError for a server that is too old, and for options that make the restart guard impossible
 */
export async function probe(connection: RedisConnection, subject: Subject): Promise<Finding> {
  const { name, timeLimitMs, restartGuard, replicas, onEviction } = subject;
  const scripting = await readTime(connection, subject);
  if (connection.isRefused) return 'waits';
  if (scripting.status === 'unavailable') return findingOf(scripting, connection, subject);
  const [server, memory, replication] = await Promise.all(
    ['server', 'memory', 'replication'].map((section) =>
      connection.look(timeLimitMs, ({ client }) => client.command('info', section)),
    ),
  );
  const version = field(server, 'redis_version');
  if (version !== undefined && Number.parseInt(version) < OLDEST_REDIS) {
    throw new LockConfigurationError(
      `Holdfast needs Redis ${String(OLDEST_REDIS)}.0 or later, or Valkey; ${name} runs ${version}. See https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/compatibility.md`,
    );
  }
  const policy = field(memory, 'maxmemory_policy');
  const evicts =
    policy !== undefined &&
    policy !== 'noeviction' &&
    `Redis at ${name} has maxmemory-policy "${policy}": when memory is full it can evict locks that are held.`;
  if (evicts && restartGuard !== undefined) {
    throw new LockConfigurationError(
      `${evicts} "restartGuard" cannot see that. Set "noeviction", or leave the guard out.`,
    );
  }
  const problem = replication && replicationProblem(replication, replicas);
  if (problem !== undefined)
    return { kind: 'refuses', problem: `cannot grant locks: it ${problem}` };
  const misplaced = server && (await clusterProblem(connection, server, subject));
  if (misplaced !== undefined) return { kind: 'refuses', problem: misplaced };
  const quarantine =
    restartGuard === undefined ? 0 : await lookAtGuard(connection, subject, restartGuard);
  if (typeof quarantine !== 'number') return quarantine;
  if (quarantine > 0) return { kind: 'quarantined', leftMs: quarantine };
  const failure = await subject.tryGranting();
  if (failure !== undefined) return findingOf(failure, connection, subject);
  onEviction(
    evicts ? `${evicts} Set "noeviction", or give locks a Redis of their own.` : undefined,
  );
  return 'grants';
}

/** What Redis 7 appends to the error of a command in a script. */
const SCRIPT_PLACE = /\.? script: [0-9a-f]{40}, on @user_script.*$/;

function findingOf(
  { nodes: [failure] }: Unavailable,
  { client, isThere }: RedisConnection,
  { keyPatterns }: Subject,
): Finding {
  const message = (failure?.message ?? 'no answer').replace(SCRIPT_PLACE, '').replace(/\.$/, '');
  if (failure?.kind === 'connection' || failure?.kind === 'timeout') {
    // The connection of a Cluster stands while any of its nodes is reachable: nothing else shows that a master is not.
    if (client.kind === 'cluster' && isThere)
      return {
        kind: 'refuses',
        problem: `grants no locks in some slots: ${message}`,
        trouble: 'slots',
      };
    return { kind: 'away', problem: `is not usable yet: ${message}` };
  }
  const remedy = remedyFor(message, keyPatterns);
  return { kind: 'refuses', problem: `is not usable: ${message}`, remedy };
}

const RIGHTS =
  'see https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/redis.md#which-rights-does-the-redis-user-need';

/** What to change, by what the server says. */
function remedyFor(message: string, keyPatterns: readonly string[]): string {
  if (isLoginRefusal(message)) return 'Check the user name and password in option "redis".';
  // Servers report it in one wording for commands of clients and in another for commands of scripts.
  if (/(NOPERM|ACL failure|can't access).*\bkeys?\b/.test(message))
    return `Allow the Redis user the keys ${keyPatterns.join(' and ')} ("keyPrefix"); ${RIGHTS}.`;
  if (/NOPERM|ACL failure|can't run this command/.test(message))
    return `Allow the Redis user the commands EVAL, EVALSHA and those that the scripts call; ${RIGHTS}.`;
  if (/unknown command/i.test(message))
    return 'Holdfast needs the commands EVAL and EVALSHA there.';
  if (/\bOOM\b/.test(message))
    return 'Free memory there, or raise "maxmemory". A Redis of their own keeps locks from being refused for the data of others.';
  if (/\bMISCONF\b/.test(message))
    return 'Redis cannot save its data: look at its log and at its disk.';
  if (/\bNOREPLICAS\b/.test(message))
    return 'Fewer replicas are connected than "min-replicas-to-write" asks for.';
  if (/\bCLUSTERDOWN\b|not served/.test(message))
    return 'A master is missing: look at CLUSTER INFO and CLUSTER NODES.';
  return '';
}

async function readTime(
  connection: RedisConnection,
  { key, clock, nodeClock, timeLimitMs }: Subject,
): Promise<Reply> {
  const reply = await connection.look(timeLimitMs, async ({ client }) => {
    const sentAt = clock.now().monotonicMs;
    const time: unknown = await client.command('eval', `return redis.call('TIME')`, 1, key);
    const [seconds = NaN, micros = NaN] = (Array.isArray(time) ? time : []).map(Number);
    const serverUs = seconds * 1_000_000 + micros;
    if (serverUs > 0) nodeClock.learn(serverUs, sentAt, clock.now().monotonicMs);
    return time;
  });
  return reply;
}

/** What is left of the quarantine, in ms. */
async function lookAtGuard(
  connection: RedisConnection,
  { name, epoch, timeLimitMs, isStart }: Subject,
  { maxTtlMs, bootstrap }: RestartGuard,
): Promise<number | Finding> {
  const guard = { maxTtlMs, bootstrap: bootstrap && isStart };
  const left = await quarantinedForMs(connection, epoch, timeLimitMs, guard);
  if (typeof left === 'number') return left;
  const message = left.nodes[0]?.message ?? 'no answer';
  if (left.transient)
    return { kind: 'refuses', problem: `cannot tell whether it was restarted: ${message}` };
  throw new LockConfigurationError(
    `"restartGuard" cannot see whether Redis at ${name} was restarted: ${message}. ` +
      'Allow the Redis user the command INFO, in scripts too, or leave the guard out.',
  );
}

/** The rest of a server's quarantine, in ms, or why it is unknown. */
export async function quarantinedForMs(
  connection: RedisConnection,
  epoch: string,
  timeLimitMs: number,
  { maxTtlMs, bootstrap }: RestartGuard,
): Promise<number | Exclude<Reply, { status: 'answered' }>> {
  const call = quarantineScript.encode({
    epoch,
    maxTtlMs,
    unknownServer: bootstrap ? 'is new' : 'forgot',
  });
  const reply = await connection.look(timeLimitMs, ({ client }) =>
    client.command('eval', quarantineScript.lua, ...call),
  );
  if (reply.status === 'unavailable') return reply;
  const answer = quarantineScript.decode(reply.value);
  return answer.status === 'malformed' ? connection.malformed(answer) : answer.leftMs;
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

/** What a connection to one node of a Cluster with several masters cannot do. Redis may forbid to ask. */
export async function clusterProblem(
  connection: RedisConnection,
  server: Reply,
  { hasManySlots, timeLimitMs }: Pick<Subject, 'hasManySlots' | 'timeLimitMs'>,
): Promise<string | undefined> {
  if (!hasManySlots || field(server, 'redis_mode') !== 'cluster') return undefined;
  const cluster = await connection.look(timeLimitMs, ({ client }) =>
    client.command('cluster', 'info'),
  );
  return Number(field(cluster, 'cluster_size')) > 1
    ? `grants only the locks of its own slots: it ${NODE_OF_A_CLUSTER}`
    : undefined;
}

/** The facts of an INFO, which may be forbidden. */
function field(reply: Reply | undefined, name: string): string | undefined {
  if (reply?.status !== 'answered' || typeof reply.value !== 'string') return undefined;
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(reply.value)?.[1];
}
