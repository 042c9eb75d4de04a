import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { LockConfigurationError } from '../../../errors.js';
import { describe } from '../../../errors/describe.js';
import { isRedisClient } from './is-redis-client.js';
import { redact } from '../../../errors/redact.js';
import type { Runtime } from '../../../time/runtime.js';
import ioredis from './ioredis.cjs';
import { IoredisCluster, IoredisSingle } from './ioredis-client.js';
import {
  addressOf,
  leavesReplicas,
  OWN_NODE,
  ownOptions,
  retryDelay,
  subscriberOptions,
} from './ioredis-options.js';
import type { RedisSource } from './redis-client.js';

/** Where Redis is: a URL, ioredis options, or an ioredis client of the application's, which is asked for its address only. */
export type RedisLocation = string | RedisOptions | Redis | Cluster;

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

/** A Cluster, from the URLs of some of its nodes: user, password and TLS of the first of them are those of all. Not connected. */
export function clusterAt(urls: readonly string[]): Cluster {
  const nodes = urls.map((url) => {
    const template = fromUrl(url);
    template.disconnect();
    return template.options;
  });
  const { username, password, tls } = nodes[0] ?? {};
  return new ioredis.Cluster(
    nodes.map(({ host, port, db }) => ({ host, port, db })),
    {
      lazyConnect: true,
      redisOptions: {
        ...(username && { username }),
        ...(password && { password }),
        ...(tls && { tls }),
      },
      // Certificates name hosts, and not what they resolve to.
      ...(tls && {
        dnsLookup: (address, callback) => {
          callback(null, address);
        },
      }),
    },
  );
}

/** Not connected. What Node and ioredis throw of a URL holds all of it, the password too: it goes nowhere, not even as `cause`. */
function fromUrl(url: string): Redis {
  try {
    return new ioredis.Redis(url, { lazyConnect: true });
  } catch {
    // Without an @, the text at the position of the port may be the password.
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
  const name = addressOf(options);
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
    connect: (events) => {
      const own = { db: database, reconnectOnError: leavesReplicas(runtime) };
      return new IoredisSingle(template.duplicate({ ...ownOptions(runtime), ...own }), events, () =>
        template.duplicate(subscriberOptions(runtime)),
      );
    },
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
  const name = `cluster ${nodes.map(addressOf).join(', ')}`;
  // ioredis ignores it, or continues in database 0.
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
    connect: (events) => new IoredisCluster(cluster.duplicate([], options), events, runtime),
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
