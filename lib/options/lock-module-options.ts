import type { LockError, LockErrorBody } from '../errors.js';
import type { LockStore } from '../store/lock-store.js';
import type { RedisLocation } from '../store/redis/client/redis-source.js';
import type { Duration } from './duration.js';

/** How lock errors answer. */
export interface LockErrorOptions {
  /** Adds `keys` to the body of responses. Default `false`: a key can tell a stranger what exists. */
  exposeKeys?: boolean;
  /** Changes the body, and with its `statusCode` the status, of any lock error of this service. */
  body?: (error: LockError, body: LockErrorBody) => LockErrorBody;
}

/** No votes from a server that may have forgotten leases; see `LockModuleOptions.restartGuard`. */
export interface RestartGuardOptions {
  /** The longest TTL of any lease that any application takes in this Redis under this `keyPrefix`. Longer ones are refused. */
  maxTtl: Duration;
  /**
   * Says that a server which was never seen before is a new one, so that it need not wait for `maxTtl` first. Only looked at when the
   * service starts, and only for the first deployment: leave it out after that, because a server that lost all its data looks new.
   */
  bootstrap?: boolean;
}

/** What replicas have to say before a lease counts; see `LockModuleOptions.replicas`. */
export interface ReplicaGuardOptions {
  /** How many replicas have to have a lease, or its renewal. At least 1. */
  ack: number;
  /** How long to wait for them. Default 50 ms; has to be shorter than `nodeTimeout`. */
  timeout?: Duration;
}

/** How callers of one process take turns under one lease; see `LockModuleOptions.handoff`. */
export interface HandoffOptions {
  /** How many callers at the most while another process waits for the key. Default 16. */
  turns?: number;
  /** For how long at the most. Default 20 ms. */
  tenure?: Duration;
}

/** Options of `RedisLockModule.forRoot`. One of `redis` and `store` is needed; everything else has a default. */
export interface LockModuleOptions {
  /**
   * Where Redis is: a URL, ioredis options (Sentinel too), or an ioredis `Redis` or `Cluster`, which is asked for its address only:
   * Holdfast opens connections of its own and leaves yours alone. Locks go to the database of the URL or the options, or to the one that
   * the client has selected when it is handed over. Where the server refuses that database, calls fail with 503.
   *
   * A list makes a quorum of independent masters (Redlock): a lock is held by whoever has a majority of them. Take an odd number, three
   * or more, that fail independently of each other.
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
  /**
   * The longest time one request to one Redis may take. Default 1 s; never longer than the TTL asked for. Of several masters, those that
   * do not answer in this time are done without, and not waited for again until they have answered. While the event loop is blocked no
   * answer can be read: a block uses up a quarter of this time at most.
   */
  nodeTimeout?: Duration;
  /**
   * The largest step back of a Redis server's clock that fencing tokens survive: the last token of a key is kept for so long after its
   * lease. Default 10 min.
   */
  maxClockStep?: Duration;
  /**
   * Keeps a server that may have forgotten leases (restarted without its data, emptied, or a replica promoted in its place) from
   * granting locks until every lease it may have forgotten is over: Redlock's "delayed restarts", done by the servers themselves. Each of
   * them has to allow INFO, and must not evict keys. Not for Cluster. Default: none.
   */
  restartGuard?: RestartGuardOptions;
  /**
   * For one Redis with replicas (Sentinel, Cluster): a lease counts, and is renewed, only when so many replicas have it too, so that it
   * survives a fail-over. Costs a round trip to the replicas. Default: none.
   */
  replicas?: ReplicaGuardOptions;
  /**
   * Callers of this process that wait for the same keys take turns under one lease, without asking Redis in between: each has a lock
   * and a larger fencing token of its own. The lease goes back to Redis, and to other processes that wait, after so many turns or so
   * much time. `false` asks Redis for each caller. Default: 16 turns, 20 ms.
   */
  handoff?: false | HandoffOptions;
  /** How long a shutdown waits for holders before it takes their locks away. Default 10 s. */
  shutdownTimeout?: Duration;
  /** How lock errors answer. */
  errors?: LockErrorOptions;
}

/** For `forRootAsync({ useClass })` and `useExisting`. */
export interface LockOptionsFactory {
  createLockOptions(): LockModuleOptions | Promise<LockModuleOptions>;
}
