import { systemRuntime, type Runtime } from '../../time/runtime.js';
import type { LeaseStore, LockStore } from '../lock-store.js';
import type { CredentialsProvider } from './client/client-library.js';
import { redisSource, type RedisLocation } from './client/redis-location.js';
import { RedisStore } from './node/redis-store.js';
import type { RedisNodeOptions } from './node/server.js';
import { QuorumStore } from './quorum/quorum-store.js';

export interface RedisLockStoreOptions extends RedisNodeOptions {
  /** One Redis, or each of several masters. */
  readonly redis: readonly RedisLocation[];
  /** What its connections log in with. Default: what the location says at that moment. */
  readonly credentials?: CredentialsProvider | undefined;
  readonly runtime?: Runtime;
  /** How a location becomes a client. Default: with ioredis. */
  readonly sourceOf?: typeof redisSource;
}

/**
 * The store of one Redis, or over several masters. Over several there are exclusive locks, and nothing else: `options/one-redis.ts` refuses
 * the calls that need more.
 *
 * @throws LockConfigurationError when one server is listed twice
 */
export function redisLockStore({
  redis,
  credentials,
  runtime = systemRuntime,
  sourceOf = redisSource,
  ...options
}: RedisLockStoreOptions): LockStore {
  const sources = redis.map((location) => sourceOf(location, runtime, credentials));
  const [only, second] = sources;
  if (only !== undefined && second === undefined) return new RedisStore(only, options, runtime);
  const store: LeaseStore = new QuorumStore(sources, options, runtime);
  return store as LockStore;
}
