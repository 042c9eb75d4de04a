import { LockConfigurationError } from '../../../errors.js';
import type { Unavailable } from '../../lock-store.js';
import type { Reply } from '../client/redis-connection.js';
import { isLoginRefusal, NODE_OF_A_CLUSTER } from '../client/reply-errors.js';
import { isOneSlot, keyPatterns } from '../scripts/key-names.js';
import { quarantineScript } from '../scripts/quarantine.js';
import type { Finding } from './node-watch.js';
import type { RedisNodeOptions, Server } from './server.js';
import type { NodeTrial } from './trial.js';

/** The release script keeps the TTL of a fence with `SET … KEEPTTL`. Valkey gives a `redis_version` that it is compatible with. */
const OLDEST_REDIS = 6;

/**
 * Looks at the server: whether it grants locks, tried on a key that no caller can lock, and what the operator should
 * know. A server that is not reachable yet does not keep the application from starting: until it is, requests are
 * `unavailable`.
 *
 * @param onEviction told with every look that gets so far whether the server may evict locks: in words, or `undefined` if not
 * @throws LockConfigurationError for a server that is too old, and for options that make the restart guard impossible
 */
export async function probe(
  server: Server,
  trial: NodeTrial,
  when: 'start' | 'later',
  onEviction: (warning: string | undefined) => void,
): Promise<Finding> {
  const { name, connection, options } = server;
  const { nodeTimeoutMs, restartGuard } = options;
  const scripting = await readTime(server, trial.main);
  if (connection.isRefused) return 'waits';
  if (scripting.status === 'unavailable') return findingOf(scripting, server);
  const [facts, memory, replication] = await Promise.all(
    ['server', 'memory', 'replication'].map((section) =>
      connection.look(nodeTimeoutMs, ({ client }) => client.command('info', section)),
    ),
  );
  const version = field(facts, 'redis_version');
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
  const problem = replicationProblem(replication, options);
  if (problem !== undefined)
    return { kind: 'refuses', problem: `cannot grant locks: it ${problem}` };
  const misplaced = await clusterProblem(server, facts);
  if (misplaced !== undefined) return { kind: 'refuses', problem: misplaced };
  const leftMs = restartGuard === undefined ? 0 : await quarantinedForMs(server, when);
  if (typeof leftMs !== 'number') return guardFinding(leftMs, name);
  if (leftMs > 0) return { kind: 'quarantined', leftMs };
  const failure = await trial.tryAll();
  if (failure !== undefined) return findingOf(failure, server);
  onEviction(
    evicts ? `${evicts} Set "noeviction", or give locks a Redis of their own.` : undefined,
  );
  return 'grants';
}

/** What Redis 7 appends to the error of a command in a script. */
const SCRIPT_PLACE = /\.? script: [0-9a-f]{40}, on @user_script.*$/;

function findingOf(
  { nodes: [failure] }: Unavailable,
  { connection: { client, isThere }, prefix }: Server,
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
  const remedy = remedyFor(message, prefix);
  return { kind: 'refuses', problem: `is not usable: ${message}`, remedy };
}

const RIGHTS =
  'see https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/redis.md#which-rights-does-the-redis-user-need';

/** What to change, by what the server says. */
export function remedyFor(message: string, prefix: string): string {
  if (isLoginRefusal(message)) return 'Check the user name and password in option "redis".';
  // Servers report it in one wording for commands of clients and in another for commands of scripts.
  if (/(NOPERM|ACL failure|can't access).*\bkeys?\b/.test(message))
    return `Allow the Redis user the keys ${keyPatterns(prefix).join(' and ')} ("keyPrefix"); ${RIGHTS}.`;
  if (/NOPERM|ACL failure|can't run this command/.test(message))
    return `Allow the Redis user the commands EVAL, EVALSHA and those that the scripts call; ${RIGHTS}.`;
  if (message.includes('scripting engine'))
    return 'Holdfast needs Lua scripts: load the module "lua" of Valkey there.';
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

/** By a script with a key that our Redis user may use: others may be forbidden. */
function readTime({ connection, runtime, clock, options }: Server, key: string): Promise<Reply> {
  return connection.look(options.nodeTimeoutMs, async ({ client }) => {
    const sentAt = runtime.now().monotonicMs;
    const time: unknown = await client.command('eval', `return redis.call('TIME')`, 1, key);
    const [seconds = NaN, micros = NaN] = (Array.isArray(time) ? time : []).map(Number);
    // NaN is no time.
    clock.learn(seconds * 1_000_000 + micros, sentAt, runtime.now().monotonicMs);
    return time;
  });
}

/** Why the guard cannot see whether its server was restarted. */
function guardFinding({ nodes: [failure], transient }: Unavailable, name: string): Finding {
  const message = failure?.message ?? 'no answer';
  if (transient)
    return { kind: 'refuses', problem: `cannot tell whether it was restarted: ${message}` };
  throw new LockConfigurationError(
    `"restartGuard" cannot see whether Redis at ${name} was restarted: ${message}. ` +
      'Allow the Redis user the command INFO, in scripts too, or leave the guard out.',
  );
}

/**
 * The rest of a server's quarantine, in ms, or why it is unknown.
 *
 * @param when only at the start of the process a server that was never seen may be a new one
 */
export async function quarantinedForMs(
  server: Server,
  when: 'start' | 'later',
): Promise<number | Unavailable> {
  const { connection, options } = server;
  const { nodeTimeoutMs, restartGuard } = options;
  const isNew = when === 'start' && restartGuard?.bootstrap === true;
  const call = quarantineScript.encode({ isNew }, server);
  const reply = await connection.look(nodeTimeoutMs, ({ client }) =>
    client.command('eval', quarantineScript.lua, ...call),
  );
  if (reply.status === 'unavailable') return reply;
  const leftMs = quarantineScript.decode(reply.value, { isNew }, server);
  return leftMs ?? connection.malformed(reply.value);
}

/** What keeps a server from granting locks, as INFO says; it may be forbidden, or asked of a node of a Cluster. */
export function replicationProblem(
  replication: Reply | undefined,
  { replicas }: Pick<RedisNodeOptions, 'replicas'>,
): string | undefined {
  if (field(replication, 'role') === 'slave') return 'is a replica: give its master';
  const connected = field(replication, 'connected_slaves');
  if (replicas === undefined || connected === undefined || Number(connected) >= replicas.ack)
    return undefined;
  return `has ${connected} of the ${String(replicas.ack)} replicas that "replicas" asks for`;
}

/** What to do about a replica. Only an operator can know which of the two servers is to be the master. */
export function replicaRemedy(replication: Reply | undefined): string | undefined {
  const [host, port] = [field(replication, 'master_host'), field(replication, 'master_port')];
  if (field(replication, 'role') !== 'slave' || host === undefined) return undefined;
  return (
    `Its master is ${host}:${String(port)}: give that address in "redis". ` +
    'If this server is to be the master, end the replication ("REPLICAOF NO ONE").'
  );
}

/** What a connection to one node of a Cluster with several masters cannot do. Redis may forbid to ask. */
export async function clusterProblem(
  { connection, prefix, options }: Server,
  facts: Reply | undefined,
): Promise<string | undefined> {
  const hasManySlots = connection.client.kind === 'single' && !isOneSlot(prefix);
  // Valkey calls it by another name.
  const mode = field(facts, 'redis_mode') ?? field(facts, 'server_mode');
  if (!hasManySlots || mode !== 'cluster') return undefined;
  const cluster = await connection.look(options.nodeTimeoutMs, ({ client }) =>
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
