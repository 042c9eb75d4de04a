import type { RedisOptions } from 'ioredis';
import type * as redis from 'redis';
import type { Address } from './address.js';

/** `redis` in one of its versions. */
export type NodeRedis = Pick<typeof redis, 'createClient' | 'createCluster' | 'createSentinel'>;

/** A client that is never connected; `undefined` for a prefix of keys, which node-redis does not have. */
export const nodeRedis =
  (library: NodeRedis) =>
  (address: Address): object | undefined => {
    if (address.kind === 'cluster') return clusterAt(library, address);
    const { options } = address;
    if ((options.keyPrefix ?? '') !== '') return undefined;
    if (address.kind === 'single')
      return library.createClient({ ...loginOf(options), socket: socketOf(options) });
    const { name = '', sentinels = [], sentinelUsername, sentinelPassword } = options;
    return library.createSentinel({
      name,
      sentinelRootNodes: sentinels.map(({ host = 'localhost', port = 26_379 }) => ({ host, port })),
      nodeClientOptions: loginOf(options),
      sentinelClientOptions: loginOf({
        username: sentinelUsername,
        password: sentinelPassword ?? undefined,
      }),
    });
  };

function clusterAt(
  { createCluster }: NodeRedis,
  { nodes, options }: Extract<Address, { kind: 'cluster' }>,
): object | undefined {
  const { redisOptions = {}, keyPrefix = '', natMap } = options;
  if (keyPrefix !== '' || (redisOptions.keyPrefix ?? '') !== '') return undefined;
  // A function of ioredis has other arguments.
  if (typeof natMap === 'function') return undefined;
  return createCluster({
    rootNodes: nodes.map((node) => ({ socket: socketOf(node) })),
    defaults: loginOf({ ...nodes[0], ...redisOptions }),
    ...(natMap && { nodeAddressMap: natMap }),
  });
}

function loginOf({ username, password, db }: RedisOptions): {
  username?: string;
  password?: string;
  database?: number;
} {
  return {
    ...(username != null && { username }),
    ...(password != null && { password }),
    ...(db !== undefined && db !== 0 && { database: db }),
  };
}

function socketOf({
  host,
  port,
  path,
  tls,
  family,
}: RedisOptions): NonNullable<redis.RedisClientOptions['socket']> {
  if (path != null) return { path, tls: false };
  const plain = { host: host ?? 'localhost', port: port ?? 6379, ...(family && { family }) };
  return tls === undefined ? plain : { ...plain, ...tls, tls: true };
}
