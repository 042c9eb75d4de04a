import { LockConfigurationError } from '../errors.js';
import type { LockDriver } from '../store/driver/lock-driver.js';
import type { LeaseStore, LockStore } from '../store/lock-store.js';
import { isMockedClient } from '../store/redis/client/ioredis/ioredis-shape.js';
import { unusableNodeRedis } from '../store/redis/client/node-redis/node-redis-shape.js';
import { isLocatedClient, type RedisLocation } from '../store/redis/client/redis-location.js';
import { isRedisUrl, urlsIn } from '../store/redis/client/redis-url.js';
import { wrong } from './checks.js';
import type { Check } from './schema.js';

/** Where the locks are kept. */
export type Location =
  | { readonly kind: 'redis'; readonly redis: readonly RedisLocation[] }
  | { readonly kind: 'memory' }
  | { readonly kind: 'driver'; readonly driver: LockDriver }
  /** A store of ours that a test gives. */
  | { readonly kind: 'store'; readonly store: LockStore };

/**
 * Where the locks of a service are kept, as far as this can be described without the names of servers: a server may
 * have several.
 */
export const placeOf = ({ kind }: Location, keyPrefix: string): string =>
  kind === 'redis' ? `Redis, keyPrefix ${JSON.stringify(keyPrefix)}` : kind;

/** One Redis, or the masters of a quorum. */
export const redisLocations: Check<
  RedisLocation | readonly RedisLocation[],
  readonly RedisLocation[]
> = {
  unit: '',
  resolve: (redis, option) => {
    if (!Array.isArray(redis)) return [nodeOf(redis, option)];
    if (redis.length > 0)
      return redis.map((node, index) => nodeOf(node, `redis[${String(index)}]`));
    throw new LockConfigurationError(
      `Option "redis" is an empty list. Give one Redis, or an odd number of independent masters: redis: ['redis://a', 'redis://b', 'redis://c'].`,
    );
  },
};

const DRIVER_METHODS: readonly (keyof LockDriver)[] = ['acquire', 'extend', 'release'];

type Store = 'memory' | LockDriver;

/** A driver of the application's own, or the store in memory. */
export const lockStore: Check<Store, Store> = {
  unit: '',
  resolve: (store, option) => {
    if (store === 'memory') return store;
    const missing = DRIVER_METHODS.filter(
      (name) => typeof (store as Record<string, unknown> | null)?.[name] !== 'function',
    );
    if (missing.length === 0) return store as LockDriver;
    const isOther = missing.length === DRIVER_METHODS.length;
    const lacks = isOther ? '' : ` (it has no ${missing.join(', ')})`;
    const methods = DRIVER_METHODS.join(', ');
    throw wrong(
      option,
      store,
      `'memory' or a LockDriver, an object with the methods ${methods}${lacks}`,
    );
  },
};

const ofTests = new WeakMap<LockDriver, LockStore>();

/**
 * For `LockTestingModule` and our tests: a store of ours as an option that takes a driver. It may lack what the test does
 * not use.
 */
export function storeOption(store: LeaseStore): LockDriver {
  const option = store as unknown as LockDriver;
  ofTests.set(option, store as LockStore);
  return option;
}

/**
 * @param given the options as they were given: an option with the value `undefined` is a mistake of its own
 * @throws LockConfigurationError unless exactly one of both is given
 */
export function locationOf(
  { redis, store }: { redis: readonly RedisLocation[] | undefined; store: Store | undefined },
  given: object,
): Location {
  if (redis !== undefined && store !== undefined) {
    throw new LockConfigurationError(
      'LockModule was given both "redis" and "store". Give one of them.',
    );
  }
  if (redis !== undefined) return { kind: 'redis', redis };
  if (store === 'memory') return { kind: 'memory' };
  if (store !== undefined) {
    const ours = ofTests.get(store);
    return ours === undefined ? { kind: 'driver', driver: store } : { kind: 'store', store: ours };
  }
  const problem = Object.hasOwn(given, 'redis')
    ? 'Option "redis" is undefined: is the environment variable that contains it set? There is no silent default.'
    : 'LockModule was given neither "redis" nor "store", and there is no silent default.';
  throw new LockConfigurationError(
    `${problem} Give redis: 'redis://localhost:6379', or store: 'memory' for development and tests.`,
  );
}

/** A space may follow a comma, and a password may have one. */
const SPLIT = String.raw`text.split(/\s*,\s*(?=[a-z+]+:\/\/)/)`;

function nodeOf(redis: unknown, option: string): RedisLocation {
  if (typeof redis === 'string' && urlsIn(redis).length > 1) {
    throw new LockConfigurationError(
      `Option "${option}" holds several URLs in one text. Give a list of them: ${SPLIT}.`,
    );
  }
  if (typeof redis === 'string') {
    if (isRedisUrl(redis)) return redis;
    throw wrong(option, redis, `a URL such as 'redis://localhost:6379'`);
  }
  if (typeof redis === 'object' && redis !== null && !Array.isArray(redis)) {
    if (isMockedClient(redis)) {
      throw new LockConfigurationError(
        `Option "${option}" is a client of ioredis-mock, which does not run the scripts of locks. In tests import LockTestingModule of ` +
          "'nestjs-holdfast/testing' in place of LockModule: it needs no Redis.",
      );
    }
    if (isLocatedClient(redis)) return redis;
    const unusable = unusableNodeRedis(redis);
    if (unusable !== undefined) throw new LockConfigurationError(`Option "${option}" ${unusable}`);
    const { url, duplicate } = redis as { url?: unknown; duplicate?: unknown };
    if (url !== undefined) {
      throw new LockConfigurationError(
        `Option "${option}" has a property "url", which ioredis does not know. Give the URL itself: redis: '…'.`,
      );
    }
    if (typeof duplicate === 'function') {
      throw new LockConfigurationError(
        `Option "${option}" is a client of a library that Holdfast does not know. Give its URL, or a client of ioredis, iovalkey, ` +
          'node-redis 5 or 6, or valkey-glide.',
      );
    }
    return plainOptionsOf(redis, option);
  }
  throw wrong(option, redis, `a URL, ioredis options, or a client of ${PACKAGES}`);
}

const PACKAGES = 'ioredis, iovalkey, node-redis or valkey-glide';
const ADDRESSES = ['host', 'port', 'path', 'sentinels'];

/** Whatever ioredis does not find an address in means localhost to it. */
function plainOptionsOf(redis: object, option: string): RedisLocation {
  const isPlain = [Object.prototype, null].includes(Object.getPrototypeOf(redis) as object | null);
  if (!isPlain || !ADDRESSES.some((name) => Object.hasOwn(redis, name))) {
    throw new LockConfigurationError(
      `Option "${option}" must say where Redis is: a URL as text, a client of ${PACKAGES}, or ioredis options with one of ` +
        `${ADDRESSES.join(', ')}. Give clients themselves, such as createClient(…) of node-redis returns, and not their options.`,
    );
  }
  const { host, path } = redis as Readonly<Record<string, unknown>>;
  if ([host, path].some((value) => typeof value === 'string' && /:\/\/|@/.test(value))) {
    throw new LockConfigurationError(
      `Option "${option}" has a URL, or a part of one, as its host or path. Give the URL itself: redis: 'redis://…'.`,
    );
  }
  return redis;
}
