import type { LockError, LockErrorBody } from '../errors.js';
import type { CredentialsProvider } from '../store/redis/client/client-library.js';
import {
  clockDrift,
  count,
  duration,
  flag,
  group,
  keyPrefix,
  LONG_ENOUGH_OR_ZERO,
  oneOf,
  serviceName,
  shortText,
  tested,
  timerDuration,
  ttl,
  wait,
  wholeDuration,
  wholeDurationOrZero,
} from './checks.js';
import { lockStore, redisLocations } from './location.js';
import {
  optional,
  required,
  withDefault,
  type Check,
  type OneSchema,
  type OptionsOf,
} from './schema.js';
import type { Duration } from './duration.js';
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

const REPLICAS = {
  /** How many replicas must have a lease, or its renewal. At least 1. */
  ack: required(count()),
  /**
   * How long to wait for the replicas. Must be shorter than `nodeTimeout`.
   *
   * @defaultValue 50 ms
   */
  timeout: withDefault(wholeDuration({ atLeastMs: 1 }), '50ms'),
};

/** More turns take longer than any tenure should. */
const MOST_TURNS = 1_024;

const HANDOFF = {
  /**
   * At most how many callers take turns while another process waits for the key. In the first 2 ms turns are not
   * counted, unless this is 1.
   *
   * @defaultValue 16
   */
  turns: withDefault(count(MOST_TURNS), 16),
  /**
   * At most how long callers take turns.
   *
   * @defaultValue 20 ms
   */
  tenure: withDefault(duration({ atLeastMs: 0 }), '20ms'),
};

/** How callers of one process take turns under one lease; see `LockModuleOptions.handoff`. */
export interface HandoffOptions extends OptionsOf<typeof HANDOFF>, OneSchema {}

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
  /**
   * When a client that was refused a lock is to try again, in `Retry-After` and its like. `'estimate'`: after the time
   * that sections of this key template, or decorated method, took lately in this process (a decaying 95th percentile),
   * at most what is left of the lease. `'lease'`: after what is left of the lease, which also counts until a section has
   * ended.
   *
   * @defaultValue `'estimate'`
   */
  retryAfter: withDefault(oneOf('estimate', 'lease'), 'estimate'),
};

/** The HTTP responses of lock errors. */
export interface LockErrorOptions extends OptionsOf<typeof ERRORS>, OneSchema {}

const turns = group(HANDOFF, `false, or an object such as { turns: 16, tenure: '20ms' }`);
const handoff: Check<false | HandoffOptions, ReturnType<typeof turns.resolve>> = {
  unit: '',
  resolve: (given, name) =>
    given === false ? { turns: 1, tenureMs: 0 } : turns.resolve(given, name),
};

const INSTANCE = {
  /** The name of the application. */
  application: optional(shortText),
  version: optional(shortText),
};

/** What an instance of the application publishes about itself: see `LockModuleOptions.instance`. */
export interface InstanceOptions extends OptionsOf<typeof INSTANCE>, OneSchema {}

const facts = group(INSTANCE, `false, or an object such as { application: 'orders' }`);
const instance: Check<false | InstanceOptions, ReturnType<typeof facts.resolve> | undefined> = {
  unit: '',
  resolve: (given, name) => (given === false ? undefined : facts.resolve(given, name)),
};

const MODULE = {
  /**
   * Where Redis is: a URL, ioredis options (Sentinel too), a client of ioredis, iovalkey, node-redis or valkey-glide, or
   * a list of independent masters. `redis` or `store` is required.
   *
   * Holdfast reads only the address and the credentials of a client. It opens its own connections and does not use
   * yours. Locks are kept in the database of the URL or the options, or in the one that the client has selected when you
   * pass it. If the server refuses that database, calls fail with 503.
   *
   * A list makes a quorum of independent masters (Redlock): the caller that has a majority of them holds the lock. Use
   * an odd number of masters, at least three, that fail independently of each other.
   */
  redis: optional(redisLocations),
  /**
   * `async () => ({ username, password })`: what to log in with, for passwords that change and for tokens that expire.
   *
   * The function is called before each connection, also before a new one replaces one that broke. It has 10 s. If it
   * fails, it is called again.
   *
   * Without it, each connection uses what the `redis` option says at that moment: the current `options` of your
   * client.
   */
  credentials: optional(
    tested<CredentialsProvider>(
      'a function async () => ({ username, password })',
      (given) => typeof given === 'function',
    ),
  ),
  /**
   * `'memory'`: locks inside this process, for development and unit tests. Or a `LockDriver`: locks in a database of
   * yours.
   *
   * With `NODE_ENV` `production`, the log and the health check warn of `'memory'`. A driver has exclusive locks only,
   * without fencing tokens.
   */
  store: optional(lockStore),
  /**
   * The prefix of every key in Redis. Applications with the same Redis database and prefix share their locks.
   *
   * The `keyPrefix` of your client, if any, is put before it.
   *
   * @defaultValue `'lock:'`
   */
  keyPrefix: withDefault(keyPrefix, 'lock:'),
  /**
   * How long a lease lasts unless it is renewed. If a holder dies, its key stays taken for that long.
   *
   * The shortest TTL is 50 ms.
   *
   * @defaultValue 30 s
   */
  ttl: withDefault(ttl, '30s'),
  /**
   * How long decorated methods and calls by hand wait for a lock; 0 does not wait, `'forever'` has no limit.
   *
   * `tryRun` and `tryAcquire` never wait.
   *
   * @defaultValue a method with `@WithLock` does not wait, and calls by hand wait 10 s
   */
  wait: optional(wait),
  /**
   * Whether Holdfast renews a lease for as long as the lock is held.
   *
   * @defaultValue `true`
   */
  autoExtend: withDefault(flag, true),
  /**
   * The share of a TTL that a holder does not rely on, because clocks differ in speed. At most 0.5.
   *
   * @defaultValue 0.01
   */
  clockDrift: withDefault(clockDrift, 0.01),
  /**
   * How long Holdfast waits for the answer to one request to one Redis.
   *
   * A request never waits longer than the TTL of its lock. Over several masters, requests do without the masters that do
   * not reply in this time, and do not wait for them again until they have replied. While the event loop is blocked, no
   * reply can be read: a block uses up a quarter of this time at most.
   *
   * @defaultValue 1 s
   */
  nodeTimeout: withDefault(timerDuration({ atLeastMs: 1 }), '1s'),
  /**
   * For how long Redis keeps the last fencing token of a key after its lease.
   *
   * Until then, tokens of the key grow even if the clock of the server is set back.
   *
   * @defaultValue 10 min
   */
  fencingTokenRetention: withDefault(wholeDurationOrZero, '10min'),
  /**
   * `{ maxTtl }`: if a server may have forgotten locks, it grants no new ones for `maxTtl`. Not available on a
   * Cluster.
   *
   * Then all forgotten locks are over. This concerns a server that was restarted, emptied, or replaced by a replica.
   *
   * These are Redlock's "delayed restarts", done by the servers themselves. Each server must allow INFO and must not
   * evict keys.
   */
  restartGuard: optional(group(RESTART_GUARD, `an object such as { maxTtl: '1m' }`)),
  /**
   * `{ ack, timeout }`: a lock is granted or renewed only when `ack` replicas have it, too.
   *
   * For one Redis with replicas (Sentinel, Cluster). A lock then survives a fail-over to one of them. This costs a round
   * trip to the replicas.
   */
  replicas: optional(group(REPLICAS, `an object such as { ack: 1, timeout: '50ms' }`)),
  /**
   * How callers of one process that wait for the same keys pass the lock to each other: at most for `tenure`, and at most
   * `turns` times while another process waits. `false`: each caller acquires the lock itself.
   *
   * While another process waits, `turns` are not counted in the first 2 ms, unless it is 1. Passing a lock on needs no
   * request to Redis. Each caller has a lock and a larger fencing token of its own. Afterwards the lease is released,
   * and other processes that wait get the keys.
   *
   * @defaultValue `{ turns: 16, tenure: '20ms' }`
   */
  handoff: withDefault(handoff, {}),
  /**
   * How long a shutdown waits until holders have released their locks. Then it takes the locks away.
   *
   * @defaultValue 10 s
   */
  shutdownTimeout: withDefault(timerDuration(LONG_ENOUGH_OR_ZERO), '10s'),
  /**
   * What happens to a lock of `acquire` that your code has forgotten. `'release'` releases it, and logs where it was
   * acquired. `'keep'` renews it until the process ends.
   *
   * A lock is forgotten if it was never released, and its object and its `signal` were garbage collected. `'release'`
   * also emits `lost`, and logs at most ten times a minute.
   *
   * @defaultValue `'release'`; with `NODE_ENV` `production` or `test` `'keep'`
   */
  forgottenLocks: optional(oneOf('release', 'keep')),
  /**
   * What this instance publishes about itself in Redis: `{ application, version }`, host and process id. `false`:
   * nothing.
   *
   * Operators then see which instance holds a lock. The record is written at start-up and every 5 s. With `false`,
   * operators cannot ask the instance.
   *
   * @defaultValue from the environment of `npm`
   */
  instance: withDefault(instance, {}),
  /**
   * The responses of lock errors. `exposeKeys: true` adds `keys` to the bodies. `body: (error, body) => body` changes the
   * body and, by its `statusCode`, the status. `retryAfter: 'lease'` sends the rest of the lease as `Retry-After`.
   *
   * Without it, `Retry-After` is an estimate: what sections of the key template took lately in this process, at most the
   * rest of the lease.
   */
  errors: withDefault(group(ERRORS, 'an object { exposeKeys?, body?, retryAfter? }'), {}),
};

/** Options of `LockModule.forRoot`. One of `redis` and `store` is required; every other option has a default. */
export interface LockModuleOptions extends OptionsOf<typeof MODULE>, OneSchema {
  /** @deprecated `fencingTokenRetention` is its name now. The next minor version removes this one. */
  maxClockStep?: Duration;
}

/** For `forRootAsync({ useClass })` and `useExisting`. */
export interface LockOptionsFactory {
  createLockOptions(): LockModuleOptions | Promise<LockModuleOptions>;
}

/** What `forRoot` takes in addition, and `forRootAsync` beside the factory. */
export const REGISTRATION = {
  /**
   * Whether all modules of the application can inject the service without importing this module.
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

export interface RegistrationOptions extends OptionsOf<typeof REGISTRATION>, OneSchema {}

const BESIDE_THE_FACTORY =
  'Put it beside "useFactory" in forRootAsync, not into the object that useFactory returns.';
const INTO_REDIS = "It goes into the options of Redis: redis: { host: 'localhost', … }.";

export const LOCK_MODULE: Kind<typeof MODULE> = {
  called: 'LockModule',
  options: MODULE,
  formerNames: { maxClockStep: 'fencingTokenRetention' },
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
