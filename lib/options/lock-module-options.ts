import type { LockError, LockErrorBody } from '../errors.js';
import { RESERVED_TOKENS } from '../store/owner-token.js';
import {
  clockDrift,
  count,
  duration,
  flag,
  group,
  keyPrefix,
  oneOf,
  serviceName,
  shortText,
  tested,
  timerDuration,
  ttl,
  wait,
  wholeDuration,
} from './checks.js';
import { lockStore, redisLocations } from './location.js';
import { optional, required, withDefault, type Check, type OptionsOf } from './schema.js';
import { OTHER_WORDS, type Kind } from './unknown-option.js';

const RESTART_GUARD = {
  /**
   * The longest TTL of any lease that any application takes in this Redis under this `keyPrefix`. Longer TTLs are
   * refused.
   */
  maxTtl: required(ttl),
  /**
   * Declares that a server which was never seen before is new, so that it need not wait for `maxTtl` first. It is read
   * only when the service starts. Give it for the first deployment only: a server that lost all its data looks new.
   *
   * @defaultValue `false`
   */
  bootstrap: withDefault(flag, false),
};

/** Accepts no votes from a server that may have forgotten leases: see `LockModuleOptions.restartGuard`. */
export interface RestartGuardOptions extends OptionsOf<typeof RESTART_GUARD> {}

const REPLICAS = {
  /** How many replicas must have a lease, or its renewal. At least 1. */
  ack: required(count()),
  /**
   * How long to wait for the replicas. Must be shorter than `nodeTimeout`.
   *
   * @defaultValue 50 ms
   */
  timeout: withDefault(wholeDuration(1), '50ms'),
};

/** What replicas must confirm before a lease counts: see `LockModuleOptions.replicas`. */
export interface ReplicaGuardOptions extends OptionsOf<typeof REPLICAS> {}

const HANDOFF = {
  /**
   * At most how many callers take turns while another process waits for the key, once `minTenure` has passed.
   *
   * @defaultValue 16
   */
  turns: withDefault(count(RESERVED_TOKENS), 16),
  /**
   * At most how long callers take turns.
   *
   * @defaultValue 20 ms
   */
  tenure: withDefault(duration(), '20ms'),
  /**
   * How long a tenure lasts before `turns` counts, so that a change of process is worth its cost. Without effect if
   * `turns` is 1.
   *
   * @defaultValue 2 ms
   */
  minTenure: withDefault(duration(), '2ms'),
};

/** How callers of one process take turns under one lease; see `LockModuleOptions.handoff`. */
export interface HandoffOptions extends OptionsOf<typeof HANDOFF> {}

const ERRORS = {
  /**
   * Adds `keys` to the body of responses. A key can tell a stranger what exists.
   *
   * @defaultValue `false`
   */
  exposeKeys: withDefault(flag, false),
  /** Changes the body, and with its `statusCode` the status, of any lock error of this service. */
  body: optional(
    tested<(error: LockError, body: LockErrorBody) => LockErrorBody>(
      'a function (error, body) => body',
      (given) => typeof given === 'function',
    ),
  ),
};

/** The HTTP responses of lock errors. */
export interface LockErrorOptions extends OptionsOf<typeof ERRORS> {}

const turns = group(HANDOFF, `false, or an object such as { turns: 16, tenure: '20ms' }`);
const handoff: Check<false | HandoffOptions, ReturnType<typeof turns.resolve>> = {
  unit: '',
  resolve: (given, name) =>
    given === false ? { turns: 1, tenureMs: 0, minTenureMs: 0 } : turns.resolve(given, name),
};

const INSTANCE = {
  /** The name of the application. */
  application: optional(shortText),
  version: optional(shortText),
};

/** What an instance of the application publishes about itself: see `LockModuleOptions.instance`. */
export interface InstanceOptions extends OptionsOf<typeof INSTANCE> {}

const facts = group(INSTANCE, `false, or an object such as { application: 'orders' }`);
const instance: Check<false | InstanceOptions, ReturnType<typeof facts.resolve> | undefined> = {
  unit: '',
  resolve: (given, name) => (given === false ? undefined : facts.resolve(given, name)),
};

const MODULE = {
  /**
   * Where Redis is: a URL, ioredis options (Sentinel too), an ioredis `Redis` or `Cluster`, or a list of independent
   * masters. `redis` or `store` is required.
   *
   * Holdfast reads only the address of a client. It opens its own connections and does not use yours. Locks are kept in
   * the database of the URL or the options, or in the one that the client has selected when you pass it. If the server
   * refuses that database, calls fail with 503.
   *
   * A list makes a quorum of independent masters (Redlock): the caller that has a majority of them holds the lock. Use
   * an odd number of masters, at least three, that fail independently of each other.
   */
  redis: optional(redisLocations),
  /**
   * `'memory'`: locks inside this process, for development and unit tests. Or an object that implements `LockStore`,
   * such as one `MemoryLockStore` for two modules. In a custom store, `holdModeOf(token)` tells whether a lock is
   * shared.
   */
  store: optional(lockStore),
  /**
   * The prefix of every key in the store. The `keyPrefix` of your ioredis client goes before it. Applications with the
   * same Redis database and prefix share their locks.
   *
   * @defaultValue `'lock:'`
   */
  keyPrefix: withDefault(keyPrefix, 'lock:'),
  /**
   * How long a lease lasts unless it is renewed. A dead holder blocks its key for that long. At least 50 ms.
   *
   * @defaultValue 30 s
   */
  ttl: withDefault(ttl, '30s'),
  /**
   * How long `acquire` and `run` wait for a lock. `@WithLock`, `tryAcquire` and `tryRun` do not wait by default.
   * `'forever'`: without a limit.
   *
   * @defaultValue 10 s
   */
  wait: withDefault(wait, '10s'),
  /**
   * Whether leases are renewed for as long as they are held.
   *
   * @defaultValue `true`
   */
  autoExtend: withDefault(flag, true),
  /**
   * The fraction of a TTL that Holdfast does not rely on, because clocks differ in speed. At most 0.5.
   *
   * @defaultValue 0.01
   */
  clockDrift: withDefault(clockDrift, 0.01),
  /**
   * The longest time that one request to one Redis may take; never longer than the TTL asked for.
   *
   * Of several masters, requests do without those that do not reply in this time, and do not wait for them again until
   * they have replied. While the event loop is blocked, no reply can be read: a block uses up a quarter of this time at
   * most.
   *
   * @defaultValue 1 s
   */
  nodeTimeout: withDefault(timerDuration(1), '1s'),
  /**
   * The largest backward step of a Redis server's clock after which fencing tokens still grow: the last token of a key
   * is kept for that long after its lease.
   *
   * @defaultValue 10 min
   */
  maxClockStep: withDefault(wholeDuration(), '10min'),
  /**
   * `{ maxTtl }`: no new locks from a server that may have forgotten some, until every lease that it may have forgotten
   * is over. Such a server was restarted without its data, emptied, or replaced by a promoted replica. Not for Cluster.
   *
   * These are Redlock's "delayed restarts", done by the servers themselves. Each server must allow INFO and must not
   * evict keys.
   */
  restartGuard: optional(group(RESTART_GUARD, `an object such as { maxTtl: '1m' }`)),
  /**
   * `{ ack, timeout }`: for one Redis with replicas (Sentinel, Cluster). A lease counts, and is renewed, only when
   * `ack` replicas have it too, so that it survives a fail-over. Costs a round trip to the replicas.
   */
  replicas: optional(group(REPLICAS, `an object such as { ack: 1, timeout: '50ms' }`)),
  /**
   * How long callers of this process that wait for the same keys may take turns under one lease: at most for `tenure`.
   * While other processes wait, at most for `turns` turns or `minTenure` (2 ms), whichever is longer. `false`: one
   * lease for each caller.
   *
   * Redis is not asked between turns. Each caller has a lock and a larger fencing token of its own. Afterwards the
   * lease is released, and other processes that wait get the keys.
   *
   * @defaultValue `{ turns: 16, tenure: '20ms', minTenure: '2ms' }`
   */
  handoff: withDefault(handoff, {}),
  /**
   * How long a shutdown waits for holders before it takes their locks away.
   *
   * @defaultValue 10 s
   */
  shutdownTimeout: withDefault(timerDuration(), '10s'),
  /**
   * What happens to a lock of `acquire` that was never released and whose handle is garbage. `'release'` releases it,
   * and logs a warning that names the place where it was acquired. `'sample'` does so for up to 20 locks a second.
   * `'keep'` renews it until the process ends.
   *
   * @defaultValue `'release'`; with `NODE_ENV` `production` or `test` `'keep'`
   */
  forgottenLocks: optional(oneOf('release', 'sample', 'keep')),
  /**
   * What this instance of the application publishes about itself in the store: `{ application, version }`, host and
   * process id. It shows operators which instance holds a lock. It is written when the service opens, and every 5 s.
   * `false`: nothing is written, and operators cannot ask the instance.
   *
   * @defaultValue from the environment of `npm`
   */
  instance: withDefault(instance, {}),
  /**
   * The HTTP responses of lock errors: `exposeKeys: true` adds `keys` to bodies; `body: (error, body) => body` changes
   * body and status.
   */
  errors: withDefault(group(ERRORS, 'an object { exposeKeys?, body? }'), {}),
};

/** Options of `LockModule.forRoot`. One of `redis` and `store` is required; every other option has a default. */
export interface LockModuleOptions extends OptionsOf<typeof MODULE> {}

/** For `forRootAsync({ useClass })` and `useExisting`. */
export interface LockOptionsFactory {
  createLockOptions(): LockModuleOptions | Promise<LockModuleOptions>;
}

/** What `forRoot` takes in addition, and `forRootAsync` beside the factory. */
export const REGISTRATION = {
  /**
   * Whether all modules of the application get the service without importing this one.
   *
   * @defaultValue `true`
   */
  isGlobal: withDefault(flag, true),
  /**
   * The name of a service in addition to the default one: `@InjectLockService(name)`, `getLockServiceToken(name)`,
   * `@WithLock(…, { instance: name })`.
   */
  name: optional<string | symbol | undefined, string | symbol, ''>(serviceName),
};

export interface RegistrationOptions extends OptionsOf<typeof REGISTRATION> {}

const BESIDE_THE_FACTORY =
  'It goes beside "useFactory" in forRootAsync, not into what that returns.';
const INTO_REDIS = "It goes into the options of Redis: redis: { host: 'localhost', … }.";

export const LOCK_MODULE: Kind<typeof MODULE> = {
  called: 'LockModule',
  options: MODULE,
  elsewhere: {
    ...OTHER_WORDS,
    driftFactor: 'Give "clockDrift".',
    name: BESIDE_THE_FACTORY,
    isGlobal: BESIDE_THE_FACTORY,
    url: "Give the URL itself: redis: 'redis://localhost:6379'.",
    host: INTO_REDIS,
    port: INTO_REDIS,
    password: INTO_REDIS,
  },
};
