import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { LockConfigurationError } from '../../../../errors.js';
import { describe } from '../../../../errors/describe.js';
import { isIoredisClient, type IoredisClient, type IoredisOptions } from './ioredis-shape.js';
import type { ClientLibrary, CredentialsProvider } from '../client-library.js';
import { redact } from '../../../../errors/redact.js';
import type { Runtime } from '../../../../time/runtime.js';
import { IoredisCluster, IoredisSingle } from './ioredis-client.js';
import { addressOf, OWN_NODE, ownOptions, subscriberOptions } from './ioredis-options.js';
import { leavesReplicas } from '../leaves-replicas.js';
import { retryDelay } from '../retry-delay.js';
import { anyPackage, ioredis, learnRepliesOf } from './packages.js';
import { logsInWith, providedLogin, statedLogin, type Login, type LoginOptions } from './login.js';
import type { RedisSource } from '../redis-client.js';
import { socketAt } from '../redis-url.js';

/** Clients of ioredis. */
export const ioredisLibrary: ClientLibrary<IoredisClient> = {
  isClient: isIoredisClient,
  isCluster: (client) => client.isCluster,
  source: (client, runtime, provide) => {
    learnRepliesOf(client);
    if (client.isCluster) return clusterSource(client as Cluster, runtime, provide);
    const template = client as Redis;
    const login = loginOf(template, template, runtime, provide);
    return singleSource({ template, runtime, login, path: undefined });
  },
};

/** @throws LockConfigurationError for a URL or options that lead nowhere */
export function ioredisSourceAt(
  location: string | IoredisOptions,
  runtime: Runtime,
  provide?: CredentialsProvider,
): RedisSource {
  const template = templateOf(location);
  const isUrl = typeof location === 'string';
  const given = isUrl ? template : { options: location as RedisOptions };
  const login = loginOf(template, given, runtime, provide);
  return singleSource({ template, runtime, login, path: isUrl ? pathOf(location) : undefined });
}

function loginOf(
  like: Redis,
  given: { readonly options: RedisOptions },
  runtime: Runtime,
  provide: CredentialsProvider | undefined,
): Login {
  const stated = statedLogin(() => given.options);
  return provide === undefined ? stated : providedLogin({ provide, stated, like, runtime });
}

/** Never connected. Read first and duplicated then, because what a URL says in its query would win over options beside it. */
function templateOf(location: string | IoredisOptions): Redis {
  if (typeof location === 'string') return fromUrl(location);
  const { Redis } = ioredis('The options');
  const template = new Redis({ ...(location as RedisOptions), lazyConnect: true });
  template.disconnect();
  return template;
}

/** What stands behind the host: the database. A password may hold slashes, so it counts from the last `@`. */
const pathOf = (url: string): string | undefined =>
  socketAt(url)?.database ??
  /^(?:\w+:\/\/)?[^/?#]*\/([^?#]+)/.exec(url.slice(url.lastIndexOf('@') + 1))?.[1];

/** A Cluster, from the URLs of some of its nodes: user, password and TLS of the first of them are those of all. Not connected. */
export function ioredisClusterAt(urls: readonly string[]): Cluster {
  const nodes = urls.map((url) => fromUrl(url).options);
  const { username, password, tls } = nodes[0] ?? {};
  const socket = nodes.find(({ path }) => path != null)?.path;
  if (socket != null)
    throw new LockConfigurationError(
      `The nodes of a Cluster have hosts and ports, and no Unix socket: received the path ${describe(socket)}.`,
    );
  const { Cluster } = ioredis('The URLs');
  return new Cluster(
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

/** Never connected. What Node and ioredis throw of a URL holds all of it, the password too: it goes nowhere, not even as `cause`. */
function fromUrl(url: string): Redis {
  const socket = socketAt(url);
  if (socket !== undefined) {
    const { database = '0', ...options } = socket;
    return templateOf({ ...options, db: database === '' ? NaN : Number(database) });
  }
  const { Redis } = ioredis('The URL');
  try {
    const template = new Redis(url, { lazyConnect: true });
    template.disconnect();
    return template;
  } catch {
    // Without an @, the text at the position of the port may be the password.
    const shown = url.includes('@') ? url : url.replace(/:(?!\/\/|\d{1,5}(?:[/?#]|$)).*/s, ':***');
    throw new LockConfigurationError(
      `Option "redis" must be a URL such as 'redis://:password@localhost:6379/0', received ${describe(shown)}. ` +
        'Ports end at 65535, and encodeURIComponent makes any password fit for a URL.',
    );
  }
}

interface SingleSource {
  readonly template: Redis;
  readonly runtime: Runtime;
  readonly login: Login;
  /** What names the database in its URL. */
  readonly path: string | undefined;
}

function singleSource({ template, runtime, login, path }: SingleSource): RedisSource {
  const { options } = template;
  const name = addressOf(options);
  const database = databaseOf(template);
  if (!Number.isInteger(database) || database < 0) {
    const given = path === undefined ? String(database) : describe(path);
    throw new LockConfigurationError(
      `Option "redis" names the database ${given} of ${name}. Databases have numbers from 0 on: 'redis://localhost:6379/5'.`,
    );
  }
  const connection = (own: RedisOptions): Redis => {
    const client = template.duplicate({ ...own, ...login.options });
    logsInWith(login, client);
    return client;
  };
  return {
    name,
    keyPrefix: options.keyPrefix ?? '',
    isCluster: false,
    database,
    connect: (events) => {
      const delay = retryDelay(runtime);
      const own: RedisOptions = {
        ...ownOptions(runtime),
        db: database,
        reconnectOnError: leavesReplicas(runtime),
        sentinelRetryStrategy: (times) => {
          login.beforeRetry?.();
          return delay(times);
        },
      };
      return new IoredisSingle(connection(own), events, () =>
        connection(subscriberOptions(runtime)),
      );
    },
    redact: (text) => redact(text, login.secrets()),
  };
}

/** Private to ioredis, which remembers there what was selected since it connected. */
interface Selected {
  readonly condition?: { readonly select?: number } | null;
  /** The `condition` of the connection that broke, until the next one is ready: ioredis then selects the same database again. */
  readonly prevCondition?: { readonly select?: number } | null;
}

/** What is selected now, which may be another one than its options say. */
function databaseOf(client: Redis): number {
  const { condition, prevCondition } = client as unknown as Selected;
  return prevCondition?.select ?? condition?.select ?? client.options.db ?? 0;
}

function clusterSource(
  cluster: Cluster,
  runtime: Runtime,
  provide: CredentialsProvider | undefined,
): RedisSource {
  const redisOptions = cluster.options.redisOptions ?? {};
  const nodes = startupNodesOf(cluster);
  const stated = statedLogin(() => statedOf([cluster.options.redisOptions ?? {}, ...nodes]));
  const login =
    provide === undefined
      ? stated
      : providedLogin({
          ...{ provide, stated, runtime },
          like: new (anyPackage('The Cluster').Redis)({ ...redisOptions, lazyConnect: true }),
        });
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
    // Nodes are connected to when they are first needed, and what comes meanwhile has to wait. While the Cluster as a
    // whole is not ready we send nothing.
    enableOfflineQueue: true,
    enableAutoPipelining: false,
    shardedSubscribers: false,
    keyPrefix: '',
    scaleReads: 'master',
    // 0 turns it off: ioredis would repeat commands that were not answered when a connection broke.
    retryDelayOnFailover: 0,
    clusterRetryStrategy: retryDelay(runtime),
    clusterNodeRetryStrategy: null,
    redisOptions: { ...redisOptions, ...OWN_NODE, ...login.options },
  };
  return {
    name,
    keyPrefix: cluster.options.keyPrefix ?? redisOptions.keyPrefix ?? '',
    isCluster: true,
    database: 0,
    connect: (events) => {
      const own = cluster.duplicate([], options);
      own.on('+node', (node: Redis) => {
        logsInWith(login, node);
      });
      return new IoredisCluster(own, events, runtime);
    },
    redact: (text) => redact(text, login.secrets()),
  };
}

/** Private to ioredis, but nowhere else are the addresses and passwords of nodes that it has not connected to. */
function startupNodesOf(cluster: Cluster): readonly RedisOptions[] {
  const { startupNodes = [] } = cluster as unknown as {
    startupNodes?: readonly (string | number | RedisOptions)[];
  };
  return startupNodes.map((node) =>
    typeof node === 'object' ? node : fromUrl(String(node)).options,
  );
}

/** What the nodes of a Cluster log in with, which is the same for all of them: what is said first. */
const statedOf = (places: readonly LoginOptions[]): LoginOptions => ({
  username: places.find(({ username }) => username != null)?.username,
  password: places.find(({ password }) => password != null)?.password,
});
