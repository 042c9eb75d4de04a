import { LockConfigurationError } from '../../../errors.js';
import type { Runtime } from '../../../time/runtime.js';
import type { CredentialsProvider } from './client-library.js';
import installed from './installed.cjs';
import type { IoredisClient, IoredisOptions } from './ioredis/ioredis-shape.js';
import { ioredisClusterAt, ioredisSourceAt } from './ioredis/redis-source.js';
import type { NodeRedisClient } from './node-redis/node-redis-shape.js';
import { nodeRedisLibrary } from './node-redis/node-redis-source.js';
import type { RedisSource } from './redis-client.js';
import { socketAt, type SocketLocation } from './redis-url.js';

/**
 * With ioredis. A URL also with node-redis, if only that is installed.
 *
 * @throws LockConfigurationError for a URL or options that lead nowhere, and where no client is installed
 */
export function sourceAt(
  location: string | IoredisOptions,
  runtime: Runtime,
  provide?: CredentialsProvider,
): RedisSource {
  if (typeof location !== 'string' || installed('ioredis') !== undefined)
    return ioredisSourceAt(location, runtime, provide);
  const found = nodeRedis();
  const socket = socketAt(location);
  const client = made(location, () =>
    found.createClient(socket === undefined ? { url: location } : optionsAt(socket)),
  );
  return nodeRedisLibrary.source(client, runtime, provide);
}

/** The parts of a URL, because only node-redis 6 reads that of a Unix socket. */
const optionsAt = ({ path, database = '0', ...login }: SocketLocation): object => ({
  ...login,
  socket: { path },
  database: database === '' ? NaN : Number(database),
});

/** A Cluster, from the URLs of some of its nodes: user, password and TLS of the first of them are those of all. Not connected. */
export function clusterAt(urls: readonly string[]): IoredisClient | NodeRedisClient {
  if (installed('ioredis') !== undefined) return ioredisClusterAt(urls);
  const found = nodeRedis();
  const [first = ''] = urls;
  return made(first, () => {
    const { username, password, protocol } = new URL(first);
    return found.createCluster({
      rootNodes: urls.map((url) => ({ url })),
      defaults: {
        ...(username && { username: decodeURIComponent(username) }),
        ...(password && { password: decodeURIComponent(password) }),
        ...(protocol === 'rediss:' && { socket: { tls: true } }),
      },
    });
  });
}

function nodeRedis(): NonNullable<ReturnType<typeof installed<'redis'>>> {
  const found = installed('redis') ?? installed('@redis/client');
  if (found !== undefined) return found;
  throw new LockConfigurationError(
    'Option "redis" is a URL, and no client for Redis is installed: npm install ioredis, or npm install redis',
  );
}

/** What Node and node-redis throw of a URL holds all of it, the password too: it goes nowhere, not even as `cause`. */
function made(url: string, make: () => object): NodeRedisClient {
  try {
    return make() as NodeRedisClient;
  } catch {
    const shown = url
      .replace(/:\/\/.*@/s, '://***@')
      .replace(/:(?!\/\/|\d{1,5}(?:[/?#]|$)).*/s, ':***');
    throw new LockConfigurationError(
      `Option "redis" must be a URL such as 'redis://:password@localhost:6379/0', received '${shown}'. ` +
        'Ports end at 65535, and encodeURIComponent makes any password fit for a URL.',
    );
  }
}
