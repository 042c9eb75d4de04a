import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { LockConfigurationError } from '../../../errors.js';
import { describe } from '../../../options/describe.js';
import { isRedisClient } from '../../../options/location.js';
import { redact } from '../../../options/redact.js';
import { backOffMs, type BackOff } from '../../../time/back-off.js';
import type { Clock } from '../../../time/clock.js';
import type { Runtime } from '../../../time/runtime.js';
import ioredis from './ioredis.cjs';

/** Where Redis is: a URL, ioredis options, or an ioredis client of the application's, which is asked for its address only. */
export type RedisLocation = string | RedisOptions | Redis | Cluster;

/** Opens connections of our own; the application's client is never used, changed or closed. */
export interface RedisSource {
  /** For messages: address, never credentials. */
  readonly name: string;
  /** The `keyPrefix` of the application's client: it becomes part of ours. */
  readonly keyPrefix: string;
  readonly isCluster: boolean;
  /** The number of the database that locks go to. */
  readonly database: number;
  connect(): Redis | Cluster;
  /**
   * A connection to where `client`'s messages can be heard: to itself, or to one master of its Cluster.
   *
   * @param address of that master, as `client.slots` has it; any of them will do for messages that reach all
   */
  connectSubscriber(client: Redis | Cluster, address?: string): Redis;
  redact(text: string): string;
}

/** Between two tries to connect. */
const RETRY: BackOff = { firstMs: 50, longestMs: 500 };

/** Processes that lost one server together do not all come back in one moment. */
const RETRY_SPREAD_MS = 25;

const retryDelay =
  (runtime: Runtime) =>
  (times: number): number =>
    backOffMs(RETRY, times - 1) + runtime.random() * RETRY_SPREAD_MS;

/** ioredis ends a connection for good when its strategy answers with anything but a number. */
const noRetry = (): null => null;

/** Of every connection of ours, to a node of a Cluster too: no limits but our own, and no command is sent twice. */
const OWN_NODE = {
  lazyConnect: true,
  // ioredis would repeat unanswered commands after a reconnect: a release would then be told that the lock is not its own.
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  commandTimeout: undefined,
  // We notice silence ourselves: the timer of ioredis 5 outlives its connection and ends the next one.
  socketTimeout: undefined,
  disconnectTimeout: 250,
  keyPrefix: '',
  stringNumbers: false,
  connectionName: 'holdfast',
} satisfies RedisOptions as RedisOptions;

/** Of a connection to one server: nothing queues up, unanswered commands fail at once, and a demoted master is left at once. */
const ownOptions = (runtime: Runtime): RedisOptions => ({
  ...OWN_NODE,
  enableOfflineQueue: false,
  enableReadyCheck: true,
  enableAutoPipelining: false,
  maxRetriesPerRequest: 0,
  readOnly: false,
  role: 'master',
  // A sentinel that hangs must not keep us from asking the next one.
  sentinelCommandTimeout: 1_000,
  retryStrategy: retryDelay(runtime),
  sentinelRetryStrategy: retryDelay(runtime),
});

/** A replica refuses every request, and a new connection may lead to another replica. */
const LEAVES_AGAIN_AFTER_MS = 1_000;

/** Leaves a master that was demoted at once, and after that once a second at the most. */
function leavesReplicas(clock: Clock): NonNullable<RedisOptions['reconnectOnError']> {
  let leftAt = -Infinity;
  return (error) => {
    // Redis before 7 puts the error of a command behind that of the script.
    if (!error.message.includes('READONLY')) return false;
    const now = clock.now().monotonicMs;
    if (now - leftAt < LEAVES_AGAIN_AFTER_MS) return false;
    leftAt = now;
    return true;
  };
}

/** The subscriber is replaced, not reconnected: see `Subscriber`. Messages belong to no database, so it selects none. */
const subscriberOptions = (runtime: Runtime): RedisOptions => ({
  ...ownOptions(runtime),
  db: 0,
  retryStrategy: noRetry,
  sentinelRetryStrategy: noRetry,
});

const isCluster = (client: Redis | Cluster): client is Cluster => client.isCluster;

/** @throws LockConfigurationError for a location that leads nowhere */
export function redisSource(location: RedisLocation, runtime: Runtime): RedisSource {
  if (isRedisClient(location))
    return isCluster(location) ? clusterSource(location, runtime) : singleSource(location, runtime);
  // Never connected. Read first and duplicated then, because what a URL says in its query would win over options beside it.
  const template =
    typeof location === 'string'
      ? fromUrl(location)
      : new ioredis.Redis({ ...location, lazyConnect: true });
  template.disconnect();
  return singleSource(
    template,
    runtime,
    typeof location === 'string' ? pathOf(location) : undefined,
  );
}

/** What stands behind the host: the database. A password may hold slashes, so it counts from the last `@`. */
const pathOf = (url: string): string | undefined =>
  /^(?:\w+:\/\/)?[^/?#]*\/([^?#]+)/.exec(url.slice(url.lastIndexOf('@') + 1))?.[1];

/** Not connected. What Node and ioredis throw of a URL holds all of it, the password too: it goes nowhere, not even as `cause`. */
function fromUrl(url: string): Redis {
  try {
    return new ioredis.Redis(url, { lazyConnect: true });
  } catch {
    // Without an @, what stands in the place of a port may be the password.
    const shown = url.includes('@') ? url : url.replace(/:(?!\/\/|\d{1,5}(?:[/?#]|$)).*/s, ':***');
    throw new LockConfigurationError(
      `Option "redis" must be a URL such as 'redis://:password@localhost:6379/0', received ${describe(shown)}. ` +
        'Ports end at 65535, and encodeURIComponent makes any password fit for a URL.',
    );
  }
}

function singleSource(template: Redis, runtime: Runtime, path?: string): RedisSource {
  const { options } = template;
  const secrets = secretsOf([options.password, options.sentinelPassword]);
  const name = nameOf(options);
  const database = databaseOf(template);
  if (!Number.isInteger(database) || database < 0) {
    const given = path === undefined ? String(database) : describe(path);
    throw new LockConfigurationError(
      `Option "redis" names the database ${given} of ${name}. Databases have numbers from 0 on: 'redis://localhost:6379/5'.`,
    );
  }
  return {
    name,
    keyPrefix: options.keyPrefix ?? '',
    isCluster: false,
    database,
    connect: () =>
      template.duplicate({
        ...ownOptions(runtime),
        db: database,
        reconnectOnError: leavesReplicas(runtime),
      }),
    connectSubscriber: () => template.duplicate(subscriberOptions(runtime)),
    redact: (text) => redact(text, secrets),
  };
}

/** Private to ioredis, which remembers there what was selected since it connected. */
interface Selected {
  readonly condition?: { readonly select?: number } | null;
  /** Of a connection that broke, until the next one is ready: ioredis then selects the same again. */
  readonly prevCondition?: { readonly select?: number } | null;
}

/** What is selected now, which may be another one than its options say. */
function databaseOf(client: Redis): number {
  const { condition, prevCondition } = client as unknown as Selected;
  return prevCondition?.select ?? condition?.select ?? client.options.db ?? 0;
}

function clusterSource(cluster: Cluster, runtime: Runtime): RedisSource {
  const redisOptions = cluster.options.redisOptions ?? {};
  const nodes = startupNodesOf(cluster);
  const secrets = secretsOf([redisOptions.password, ...nodes.map(({ password }) => password)]);
  const name = `cluster ${nodes.map(nameOf).join(', ')}`;
  // ioredis leaves it out, or goes on in database 0.
  const database = [redisOptions as RedisOptions, ...nodes].find(({ db }) => (db ?? 0) !== 0);
  if (database !== undefined) {
    throw new LockConfigurationError(
      `Option "redis" names the database ${String(database.db)} of the ${name}. A Cluster has database 0 only: leave the number out, and ` +
        'tell applications apart by "keyPrefix".',
    );
  }
  const options: ClusterOptions = {
    lazyConnect: true,
    enableReadyCheck: true,
    // Its nodes are connected to when they are first needed, and what comes meanwhile has to wait. While the Cluster as a whole is
    // not ready we send nothing.
    enableOfflineQueue: true,
    enableAutoPipelining: false,
    shardedSubscribers: false,
    keyPrefix: '',
    scaleReads: 'master',
    // 0 turns it off: ioredis would repeat commands that were not answered when a connection broke.
    retryDelayOnFailover: 0,
    clusterRetryStrategy: retryDelay(runtime),
    clusterNodeRetryStrategy: null,
    redisOptions: { ...redisOptions, ...OWN_NODE },
  };
  return {
    name,
    keyPrefix: cluster.options.keyPrefix ?? redisOptions.keyPrefix ?? '',
    isCluster: true,
    database: 0,
    connect: () => cluster.duplicate([], options),
    connectSubscriber: (client, address) => {
      const masters = (client as Cluster).nodes('master');
      const node =
        address === undefined
          ? masters[Math.floor(runtime.random() * masters.length)]
          : masters.find(({ options }) => nameOf(options) === address);
      if (node === undefined) throw new Error('no master of the cluster is known yet');
      return node.duplicate(subscriberOptions(runtime));
    },
    redact: (text) => redact(text, secrets),
  };
}

/** Private to ioredis, but nowhere else are the addresses and passwords of nodes that it has not connected to. */
function startupNodesOf(cluster: Cluster): readonly RedisOptions[] {
  const { startupNodes = [] } = cluster as unknown as {
    startupNodes?: readonly (string | number | RedisOptions)[];
  };
  return startupNodes.map((node) => {
    if (typeof node === 'object') return node;
    const template = fromUrl(String(node));
    template.disconnect();
    return template.options;
  });
}

const secretsOf = (values: readonly unknown[]): readonly string[] =>
  values.filter((value) => typeof value === 'string');

function nameOf(options: RedisOptions): string {
  const sentinels = options.sentinels ?? [];
  if (sentinels.length > 0)
    return `sentinel ${options.name ?? ''} (${sentinels.map(nameOf).join(', ')})`;
  return options.path ?? `${options.host ?? 'localhost'}:${String(options.port ?? 6379)}`;
}
