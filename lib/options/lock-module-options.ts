import type { LockError, LockErrorBody } from '../errors.js';
import type { LockStore } from '../store/lock-store.js';
import type { RedisLocation } from '../store/redis/redis-source.js';
import type { Duration } from './duration.js';

/** How lock errors answer. */
export interface LockErrorOptions {
  /** Adds `keys` to the body of responses. Default `false`: a key can tell a stranger what exists. */
  exposeKeys?: boolean;
  /** Changes the body, and with its `statusCode` the status, of any lock error of this service. */
  body?: (error: LockError, body: LockErrorBody) => LockErrorBody;
}

/** Options of `RedisLockModule.forRoot`. One of `redis` and `store` is needed; everything else has a default. */
export interface LockModuleOptions {
  /**
   * Where Redis is: a URL, ioredis options (Sentinel too), or an ioredis `Redis` or `Cluster`, which is asked for its address only:
   * Holdfast opens connections of its own and leaves yours alone.
   *
   * A list is the form for a quorum of independent masters; this version refuses it.
   */
  redis?: RedisLocation | readonly RedisLocation[];
  /** `'memory'`: locks inside this process, for development and unit tests. Or a store of your own. */
  store?: 'memory' | LockStore;
  /** What every key in the store begins with. Default `'lock:'`. */
  keyPrefix?: string;
  /** How long a lease lasts unless it is renewed. Default 30 s, at least 50 ms. A dead holder blocks the key for so long. */
  ttl?: Duration;
  /** How long `acquire` and `run` wait for a lock. Default 10 s. `@WithLock`, `tryAcquire` and `tryRun` do not wait unless told. */
  wait?: Duration;
  /** Whether leases are renewed for as long as the holder holds them. Default `true`. */
  autoExtend?: boolean;
  /** The fraction of a TTL that is not relied on, because clocks differ in speed. Default 0.01, at most 0.5. */
  clockDrift?: number;
  /** The longest time one request to Redis may take. Default 1 s; never longer than the TTL asked for. */
  nodeTimeout?: Duration;
  /**
   * The largest step back of a Redis server's clock that fencing tokens survive: the last token of a key is kept for so long after its
   * lease. Default 10 min.
   */
  maxClockStep?: Duration;
  /** How long a shutdown waits for holders before it takes their locks away. Default 10 s. */
  shutdownTimeout?: Duration;
  /** How lock errors answer. */
  errors?: LockErrorOptions;
}

/** For `forRootAsync({ useClass })` and `useExisting`. */
export interface LockOptionsFactory {
  createLockOptions(): LockModuleOptions | Promise<LockModuleOptions>;
}
