import type { RedisOptions } from 'ioredis';
import type * as redis from 'redis';
import type { Address } from './address.js';

/** `redis` in one of its versions. */
export type NodeRedis = Pick<typeof redis, 'createClient' | 'createCluster' | 'createSentinel'>;

/** A client that is never connected; `undefined` for what that version does not have: node-redis 5 has no prefix of keys. */
export const nodeRedis =
  (library: NodeRedis, major: 5 | 6) =>
  (address: Address): object | undefined => {
    if (major === 5 && prefixOf(address) !== '') return undefined;
    if (address.kind === 'cluster') return clusterAt(library, address);
    const { options } = address;
    const prefix = prefixed(prefixOf(address));
    if (address.kind === 'single')
      return library.createClient({ ...loginOf(options), ...prefix, socket: socketOf(options) });
    const { name = '', sentinels = [], sentinelUsername, sentinelPassword } = options;
    return library.createSentinel({
      name,
      ...prefix,
      sentinelRootNodes: sentinels.map(({ host = 'localhost', port = 26_379 }) => ({ host, port })),
      nodeClientOptions: loginOf(options),
      sentinelClientOptions: loginOf({
        username: sentinelUsername,
        password: sentinelPassword ?? undefined,
      }),
    });
  };

const prefixOf = (address: Address): string =>
  (address.kind === 'cluster'
    ? (address.options.keyPrefix ?? address.options.redisOptions?.keyPrefix)
    : address.options.keyPrefix) ?? '';

const prefixed = (keyPrefix: string): { keyPrefix?: string } =>
  keyPrefix === '' ? {} : { keyPrefix };

function clusterAt(
  { createCluster }: NodeRedis,
  { nodes, options }: Extract<Address, { kind: 'cluster' }>,
): object | undefined {
  const { redisOptions = {}, natMap } = options;
  // A function of ioredis has other arguments.
  if (typeof natMap === 'function') return undefined;
  return createCluster({
    ...prefixed(prefixOf({ kind: 'cluster', nodes, options })),
    rootNodes: nodes.map((node) => ({ socket: socketOf(node) })),
    defaults: {
      ...loginOf({ ...nodes[0], ...redisOptions }),
      ...(redisOptions.tls && { socket: { ...redisOptions.tls, tls: true as const } }),
    },
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
