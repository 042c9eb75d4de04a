import { LockConfigurationError, type LockNotAcquiredError } from '../../errors.js';
import { describe } from '../../errors/describe.js';
import { forbiddenIn } from '../../key/check-key.js';
import { ONCE, STAND_BY } from '../../once/once-options.js';
import {
  HOLD,
  holdModeFrom,
  LEASE,
  NESTING,
  placesFrom,
  placesWithoutLimit,
  refuseLongMinHold,
  refuseReplacement,
  REPLACEMENT,
} from '../../options/acquire-options.js';
import {
  count,
  duration,
  oneOf,
  serviceName,
  tested,
  wait,
  wholeDurationOrZero,
} from '../../options/checks.js';
import {
  optional,
  resolve,
  withDefault,
  type OneSchema,
  type OptionsOf,
  type Resolved,
  type Schema,
} from '../../options/schema.js';

/** What an `onLocked` function is given about the call that did not get its lock. */
export interface LockedContext {
  readonly keys: readonly string[];
  /**
   * The arguments of the call. Empty for a handler whose keys need only the request, because such a call is refused
   * before it has arguments.
   */
  readonly args: readonly unknown[];
  /** Milliseconds until the holder's lease ends if it is not renewed. */
  readonly retryAfterMs: number;
  /** The error that would be thrown without `onLocked`. */
  readonly error: LockNotAcquiredError;
}

export const SERVICE = {
  /**
   * The `name` under which the `LockService` was registered.
   *
   * @defaultValue the service without a name
   */
  instance: optional(serviceName),
};

const WAIT = {
  /**
   * How long a call waits in line for the lock; 0 does not wait, `'forever'` has no limit.
   *
   * With `'forever'`, the wait ends when the lock is granted, the client disconnects or the service shuts down.
   *
   * @defaultValue the module's, or else 0
   */
  wait: optional(wait),
};

/** What `onLocked` may be besides a function. */
const ANSWERS: readonly unknown[] = ['throw', 'skip', 'replace'];

const RESULT = {
  /**
   * What a call does if it does not get the lock. `'throw'`: it rejects with `LockNotAcquiredError`. `'skip'`: it
   * returns `undefined`, or an empty stream. A function: it returns the value of that function. `'replace'`: the newest
   * call wins, and the `signal` of the holder aborts.
   *
   * The value of a function must fit the method's own result. With `'replace'`, the call of the holder rejects with
   * `LockLostError` (code `LOCK_REPLACED`), and this call runs when the work of the holder has ended. For one exclusive
   * key on one Redis.
   *
   * @defaultValue `'throw'`
   */
  onLocked: withDefault(
    tested<'throw' | 'skip' | 'replace' | ((context: LockedContext) => unknown)>(
      "'throw', 'skip', 'replace' or a function",
      (given) => ANSWERS.includes(given) || typeof given === 'function',
    ),
    'throw',
  ),
  /**
   * What the method returns: `'promise'`, which includes `async *` methods, `'observable'` or `'iterable'`.
   *
   * The lock is held to the end of a stream. Unsubscribing from an Observable releases the lock. A promise behind the
   * Observable then continues without the lock: use an async method.
   *
   * In a handler, the lock is released when the source ends, even if a timeout or the client has unsubscribed. Endless
   * sources need `maxHold`. In an `@Sse` handler, and over RPC and WebSocket, unsubscribing releases the lock.
   *
   * @defaultValue `'promise'`
   */
  returns: withDefault(oneOf('promise', 'observable', 'iterable'), 'promise'),
};

/** How many places a call takes, by its arguments. It may take fewer arguments than the method. Declare their types. */
export type PlacesFunction = (...args: never) => number;

const isPlaces = (given: unknown): boolean =>
  typeof given === 'function' || (Number.isSafeInteger(given) && Number(given) >= 1);

const PLACES = {
  /**
   * How many places of the `limit` a call takes: a number, or a function of the method's arguments that returns a number.
   *
   * The number is whole, from 1 to `limit`. The option is only for calls with a `limit`. The call gets all of its places
   * or none, with one lease and one fencing token. Calls that want fewer places do not overtake it.
   *
   * @defaultValue 1
   */
  places: optional(
    tested<number | PlacesFunction>(
      'a whole number from 1, or a function of the arguments',
      isPlaces,
    ),
  ),
};

/** What a `places` function has returned. */
export const returnedPlaces = count();

export const WITH_LOCK = {
  ...LEASE,
  ...WAIT,
  ...REPLACEMENT,
  ...HOLD,
  ...PLACES,
  ...NESTING,
  ...RESULT,
  ...SERVICE,
};

/** @throws LockConfigurationError */
export function checkedOptions(schema: Schema, given: object): MethodOptions {
  const options: MethodOptions = resolve(schema, given);
  holdModeFrom(options);
  const { limit, places } = options;
  // What a function returns is checked at each call.
  if (typeof places !== 'function') placesFrom({ limit, places });
  else if (limit === undefined) throw placesWithoutLimit('a function');
  refuseLongMinHold(options.minHoldMs ?? 0, options.ttlMs ?? Infinity);
  refuseReplacement(options);
  return options;
}

/** Options of `@WithLock`. Options that are left out come from the module's defaults. */
export interface WithLockOptions
  extends
    OptionsOf<typeof LEASE>,
    OptionsOf<typeof WAIT>,
    OptionsOf<typeof REPLACEMENT>,
    OptionsOf<typeof HOLD>,
    OptionsOf<typeof PLACES>,
    OptionsOf<typeof NESTING>,
    OptionsOf<typeof RESULT>,
    OptionsOf<typeof SERVICE> {}

export const RUN_ONCE_METHOD = { ...ONCE, ...LEASE, ...STAND_BY, ...SERVICE };

/** Options of `@RunOnce`. Options of its lock that are left out come from the module's options. */
export interface RunOnceMethodOptions
  extends
    OptionsOf<typeof ONCE>,
    OptionsOf<typeof LEASE>,
    OptionsOf<typeof STAND_BY>,
    OptionsOf<typeof SERVICE> {}

const JOB = {
  /**
   * For how long the key stays taken after a run began, even if the run is shorter. Choose more than any process is late.
   *
   * ShedLock calls this option `lockAtLeastFor`.
   *
   * @defaultValue with `@Cron` the time between two runs, from 1 min to 10 min; with `@Interval` nine tenths of it
   */
  atLeast: optional(wholeDurationOrZero),
  /**
   * The longest time that a run may hold the lock. After that, the `signal` aborts, and the call rejects with
   * `LockLostError`.
   *
   * ShedLock calls this option `lockAtMostFor`.
   *
   * @defaultValue with `@Cron` the time between two runs, at least 1 min; otherwise no limit
   */
  atMost: optional(duration()),
};

export const CRON_LOCK = { ...JOB, ...SERVICE };

/** Options of `@CronLock`. */
export interface CronLockOptions extends OptionsOf<typeof JOB>, OptionsOf<typeof SERVICE> {}

/** What decorators and definitions have in common: each lacks some of it. */
export type MethodOptions = Partial<Resolved<typeof WITH_LOCK> & Resolved<typeof CRON_LOCK>>;

/** In UTF-16 code units, a fourth of what a key may have. */
const LONGEST_PREFIX = 256;

export const FEATURE = {
  ...LEASE,
  /**
   * How long decorated methods wait for their lock; 0 does not wait.
   *
   * @defaultValue that of `forRoot`
   */
  wait: optional(wait),
  /**
   * The prefix of the keys of decorated methods. It follows the `keyPrefix` of `forRoot`. In errors and events, keys have
   * this prefix.
   *
   * @defaultValue nothing
   */
  keyPrefix: optional(
    tested<string>(
      "a text of at most 256 characters that a key may begin with, such as 'orders:'",
      (given) =>
        typeof given === 'string' &&
        given !== '' &&
        given.length <= LONGEST_PREFIX &&
        forbiddenIn(given) === undefined,
    ),
  ),
};

/** Options of `LockModule.forFeature`: the defaults of the decorated methods of a module. */
export interface LockFeatureOptions extends OptionsOf<typeof FEATURE>, OneSchema {}

/** What TypeScript checks of the key of a decorator: JavaScript passes anything. */
export function refuseNoKey(where: string, key: unknown, called: string): void {
  if (typeof key === 'function' || typeof key === 'string') return;
  if (Array.isArray(key) && key.length > 0) {
    const at = (key as unknown[]).findIndex((each) => typeof each !== 'string');
    if (at === -1) return;
    throw new LockConfigurationError(
      `${where} has a list of keys with ${describe(key[at])} in it. A list holds templates; a function takes the place of the whole list.`,
    );
  }
  if (key === undefined || Array.isArray(key)) {
    throw new LockConfigurationError(
      `${where} has no key. Name what to lock: ${called}('order:<orderId>').`,
    );
  }
  throw new LockConfigurationError(
    `${where} needs its key as the first argument, received ${describe(key)}. Options come second: ` +
      `${called}('order:<orderId>', { wait: '5s' }).`,
  );
}

/** What to write instead of options that are no object. */
export function optionsRemedy(options: unknown, called: string): string {
  const mayBeKey = called === '@WithLock' && typeof options !== 'number';
  const several = mayBeKey ? ` Several keys are one list: ${called}(['a', 'b']).` : '';
  return `Write ${called}('order:<orderId>', { wait: '5s' }).${several}`;
}
