import type * as valkeyGlide from '@valkey/valkey-glide';
import type { RedisOptions } from 'ioredis';
import type { Address } from './address.js';

type Glide = Pick<typeof valkeyGlide, 'GlideClient' | 'GlideClusterClient' | 'Logger'>;

/**
 * A client as far as the library reads it: GLIDE makes whole ones only later. `undefined` for what GLIDE does not have: Sentinel, a prefix of
 * keys, Unix sockets and certificates of its own.
 */
export const glide =
  ({ GlideClient, GlideClusterClient, Logger }: Glide) =>
  (address: Address): object | undefined => {
    // It writes to the output, which child processes use for their results.
    Logger.init('off');
    if (address.kind === 'sentinel') return undefined;
    const isCluster = address.kind === 'cluster';
    const places = isCluster ? address.nodes : [address.options];
    const { redisOptions = {}, natMap, keyPrefix = '' } = isCluster ? address.options : {};
    if (natMap !== undefined || keyPrefix !== '' || [redisOptions, ...places].some(isOther))
      return undefined;
    const { username, password, db } = { ...places[0], ...redisOptions };
    const config = {
      addresses: places.map(({ host = 'localhost', port = 6379 }) => ({ host, port })),
      databaseId: db ?? 0,
      ...(password != null && { credentials: { ...(username != null && { username }), password } }),
    };
    const { prototype } = isCluster ? GlideClusterClient : GlideClient;
    return Object.assign(Object.create(prototype as object) as object, { config });
  };

const isOther = ({ keyPrefix, path, tls }: RedisOptions): boolean =>
  (keyPrefix ?? '') !== '' || path != null || tls !== undefined;
