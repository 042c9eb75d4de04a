import { LockConfigurationError } from '../errors.js';
import type { HoldMode } from '../store/owner-token.js';
import {
  abortSignal,
  count,
  duration,
  flag,
  oneOf,
  ttl,
  wait,
  wholeDurationOrZero,
} from './checks.js';
import { ttlWithin, type ResolvedOptions } from './resolve-options.js';
import {
  optional,
  resolve,
  withDefault,
  without,
  type OneSchema,
  type OptionsOf,
} from './schema.js';
import { needsOneRedis } from './one-redis.js';
import { OTHER_WORDS, type Kind } from './unknown-option.js';

/** Options of every lease. */
export const LEASE = {
  /**
   * How long the lease lasts unless it is renewed. If a process dies, its keys stay taken for that long.
   *
   * The shortest TTL is 50 ms.
   *
   * @defaultValue the module's
   */
  ttl: optional(ttl),
  /**
   * Whether Holdfast renews the lease for as long as the lock is held.
   *
   * @defaultValue the module's
   */
  autoExtend: optional(flag),
  /**
   * The longest time that the lock may be held, renewals included. Then the lock is lost and released.
   *
   * This protects from work that hangs.
   *
   * @defaultValue no limit
   */
  maxHold: optional(duration()),
};

/** Options of how other callers see a lock. */
export const HOLD = {
  /**
   * `'exclusive'`: no other caller holds the keys. `'shared'`: all callers with this mode hold the keys together. Over
   * several masters: `'exclusive'` only.
   *
   * An exclusive caller waits until the shared holders are done, and later callers wait behind it.
   *
   * @defaultValue `'exclusive'`
   */
  mode: optional(oneOf('exclusive', 'shared')),
  /**
   * How many callers may hold the keys at once. Not available together with `mode`, or with several masters.
   *
   * Each caller has a lease of its own. The limit is a whole number from 1. If a holder dies, its place is free after its
   * TTL. All callers should use the same number. Each call is compared with its own number, unless `setLimit` of a
   * limiter has set one for all.
   */
  limit: optional(count()),
  /**
   * The shortest time for which the keys stay taken after the lock was acquired, even if the work is shorter. At most
   * the `ttl`.
   *
   * If the lock ends earlier, for any reason, no other caller gets it until this time is over. Use it for short jobs on
   * machines whose clocks differ.
   *
   * @defaultValue 0
   */
  minHold: withDefault(wholeDurationOrZero, 0),
  /**
   * When the keys become free. `'when-done'`: as soon as the lock is released. `'on-expiry'`: one `ttl` after the
   * release, even if the work failed.
   *
   * With `'on-expiry'`, the work runs at most once in that time.
   *
   * @defaultValue `'when-done'`
   */
  release: withDefault(oneOf('when-done', 'on-expiry'), 'when-done'),
};

/** Options of a call that a limit counts. */
const PLACES = {
  /**
   * How many places of the `limit` this call takes. It gets all of them or none, with one lease and one fencing token. A
   * whole number from 1 to `limit`; only together with `limit`. Calls that want fewer places do not overtake it in line.
   *
   * @defaultValue 1
   */
  places: optional(count()),
};

/** Options of work under a lock. */
export const NESTING = {
  /**
   * Whether a nested call for the same keys reuses the lock of the outer call. With `false`, this call fails if an outer
   * call holds the keys.
   *
   * @defaultValue `true`
   */
  reentrant: withDefault(flag, true),
};

/** Options of a call that may replace the holder. */
export const REPLACEMENT = {
  /**
   * For how long the work of the holder may continue after its `signal` has aborted. Then the key is taken by force.
   *
   * Only with `onLocked: 'replace'`. 0 does not wait for the work of the holder.
   *
   * @defaultValue 1 s
   */
  replaceWait: optional(wholeDurationOrZero),
};

const ACQUIRE = {
  ...LEASE,
  /**
   * How long to wait for the lock; 0 does not wait. `'forever'` waits until the lock is granted, `signal` aborts or the
   * service shuts down.
   *
   * @defaultValue the module's, or else 10 s
   */
  wait: optional(wait),
  /**
   * Aborts the wait: the call then rejects with the reason of the signal.
   *
   * The signal does not affect a lock that is granted.
   */
  signal: optional(abortSignal),
  /**
   * What the call does when another caller holds the key. `'throw'`: it waits for `wait`, and then rejects with
   * `LockNotAcquiredError`. `'replace'`: the newest call wins, and the `signal` of the holder aborts.
   *
   * With `'replace'`, the call of the holder rejects with `LockLostError` (`reason: 'replaced'`), and this call has the
   * key when the work of the holder has ended. For one exclusive key on one Redis.
   *
   * @defaultValue `'throw'`
   */
  onLocked: withDefault(oneOf('throw', 'replace'), 'throw'),
  ...REPLACEMENT,
  ...HOLD,
  ...PLACES,
};
const RUN = { ...ACQUIRE, ...NESTING };

/** Options of `acquire`. Options that are left out come from the module's options. */
export interface AcquireOptions extends OptionsOf<typeof ACQUIRE>, OneSchema {}

/** What calls lack that leave the holder alone. */
type Waiting = 'wait' | 'onLocked' | 'replaceWait';

export type TryAcquireOptions = Omit<AcquireOptions, Waiting>;

/** Options of `run`. */
export interface RunOptions extends OptionsOf<typeof RUN>, OneSchema {}

/** How long calls by hand wait if nothing is said of it, in ms. */
const WAIT_OF_CALLS_MS = 10_000;

/** How long the work of a holder that is replaced may continue if nothing is said of it, in ms. */
const REPLACE_WAIT_MS = 1_000;

/** What only decorators say. */
export interface MethodRunOptions extends RunOptions {
  /** Whether the call does not wait if nothing is said of it. */
  readonly isMethod?: boolean;
  /** Whether the TTL is at least `minHold`. */
  readonly ttlCoversMinHold?: boolean;
}

export type TryRunOptions = Omit<RunOptions, Waiting>;

/** Options of `defineLock`: the defaults of every lock of the definition. */
export interface LockDefinitionOptions
  extends Omit<AcquireOptions, 'signal' | 'onLocked' | 'replaceWait'>, OneSchema {}

const ONLY_OF_WORK = {
  reentrant: 'It is an option of run() and tryRun(): acquire() never reuses a lock.',
};

const doesNotWait = (call: string, other: string) => {
  const remedy = `use ${other}() for it, or leave it out.`;
  const leaves = `${call}() leaves the holder alone: ${remedy}`;
  return { wait: `${call}() does not wait: ${remedy}`, onLocked: leaves, replaceWait: leaves };
};

/** The calls of `LockService` that lock. */
export const CALLS = {
  acquire: {
    called: 'acquire()',
    options: ACQUIRE,
    elsewhere: { ...OTHER_WORDS, ...ONLY_OF_WORK },
  },
  tryAcquire: {
    called: 'tryAcquire()',
    options: without(ACQUIRE, 'wait', 'onLocked', 'replaceWait'),
    elsewhere: { ...OTHER_WORDS, ...ONLY_OF_WORK, ...doesNotWait('tryAcquire', 'acquire') },
  },
  run: { called: 'run()', options: RUN, elsewhere: OTHER_WORDS },
  tryRun: {
    called: 'tryRun()',
    options: without(RUN, 'wait', 'onLocked', 'replaceWait'),
    elsewhere: { ...OTHER_WORDS, ...doesNotWait('tryRun', 'run') },
  },
} satisfies Record<string, Kind>;

export const LOCK_DEFINITION = {
  called: 'defineLock()',
  options: without(ACQUIRE, 'signal', 'onLocked', 'replaceWait'),
  elsewhere: {
    ...OTHER_WORDS,
    onLocked:
      "It belongs to a call: locks.for(definition).run(value, { onLocked: 'replace' }, work).",
    signal: 'It belongs to a call: locks.for(definition).run(value, { signal }, work).',
    reentrant: 'It belongs to a call: locks.for(definition).run(value, { reentrant }, work).',
    instance:
      "Use the service of that name: locks.for(definition). On a method: WithLock({ instance: 'jobs' }).",
  },
} satisfies Kind;

/** The options of a call, checked, in the units of the library, with the defaults of its service. */
export type ResolvedAcquireOptions = Readonly<ReturnType<typeof checkedAcquireOptions>>;

/** For constant options: what they resolve to with the defaults of a service. */
const ofConstants = new WeakMap<RunOptions, WeakMap<ResolvedOptions, ResolvedAcquireOptions>>();

/** Options that are given for many calls: they are resolved once for each service. */
export function constantOptions(options: MethodRunOptions): RunOptions {
  const constant = Object.freeze({ ...options });
  ofConstants.set(constant, new WeakMap());
  return constant;
}

/**
 * The options of one call, and those of all calls where it says nothing. `undefined` says nothing. A call that replaces the holder waits
 * for the end of its work only, so the `wait` of all calls does not count.
 */
export function optionsOver(all: RunOptions, given: RunOptions): RunOptions {
  const said = Object.entries(given).filter(([, value]) => value !== undefined);
  const { wait: _, ...others } = all;
  return { ...(given.onLocked === 'replace' ? others : all), ...Object.fromEntries(said) };
}

export const NO_OPTIONS = constantOptions({});
export const NO_WAIT = constantOptions({ wait: 0 });

/** @throws LockConfigurationError */
export function resolveAcquireOptions(
  options: RunOptions,
  defaults: ResolvedOptions,
): ResolvedAcquireOptions {
  const known = ofConstants.get(options);
  if (known === undefined) return checkedAcquireOptions(options, defaults);
  let resolved = known.get(defaults);
  if (resolved === undefined) {
    resolved = checkedAcquireOptions(options, defaults);
    known.set(defaults, resolved);
  }
  return resolved;
}

function checkedAcquireOptions(options: RunOptions, defaults: ResolvedOptions) {
  const resolved = resolve(RUN, options);
  const { maxHoldMs = Infinity } = resolved;
  const { isMethod = false, ttlCoversMinHold = false }: MethodRunOptions = options;
  const ttlMs = Math.max(
    resolved.ttlMs ?? defaults.ttlMs,
    ttlCoversMinHold ? resolved.minHoldMs : 0,
  );
  const replaceWaitMs =
    resolved.onLocked === 'replace' ? (resolved.replaceWaitMs ?? REPLACE_WAIT_MS) : undefined;
  const waitMs =
    replaceWaitMs !== undefined
      ? 0
      : (resolved.waitMs ?? defaults.waitMs ?? (isMethod ? 0 : WAIT_OF_CALLS_MS));
  const mode = holdModeFrom(resolved);
  const places = placesFrom(resolved);
  if (mode !== 'exclusive')
    needsOneRedis(`Option "${options.limit === undefined ? 'mode' : 'limit'}"`, defaults.location);
  refuseLongMinHold(resolved.minHoldMs, ttlMs);
  refuseReplacement(resolved);
  if (replaceWaitMs !== undefined)
    needsOneRedis('Option "onLocked": \'replace\'', defaults.location);
  return {
    ttlMs: ttlWithin(ttlMs, defaults.restartGuard),
    waitMs,
    /** With a number, the call replaces the holder. */
    replaceWaitMs,
    autoExtend: resolved.autoExtend ?? defaults.autoExtend,
    maxHoldMs,
    minHoldMs: resolved.minHoldMs,
    release: resolved.release,
    reentrant: resolved.reentrant,
    signal: resolved.signal,
    mode,
    places,
  };
}

/** @throws LockConfigurationError when both are given */
export function holdModeFrom({ mode, limit }: Pick<AcquireOptions, 'mode' | 'limit'>): HoldMode {
  if (limit === undefined) return mode ?? 'exclusive';
  if (mode === undefined) return `limit:${limit}`;
  throw new LockConfigurationError(
    `Option "limit" goes without "mode", which is '${mode}': a lock is exclusive, shared, or limited.`,
  );
}

/** @throws LockConfigurationError for places without a limit, and for more places than the limit */
export function placesFrom({ limit, places }: Pick<AcquireOptions, 'limit' | 'places'>): number {
  if (places === undefined) return 1;
  if (limit === undefined) throw placesWithoutLimit(String(places));
  if (places > limit)
    throw new LockConfigurationError(
      `Option "places", ${String(places)}, is more than "limit", ${String(limit)}: no caller could ever have that many. Give fewer "places", or a ` +
        'larger "limit".',
    );
  return places;
}

export const placesWithoutLimit = (given: string): LockConfigurationError =>
  new LockConfigurationError(
    `Option "places", ${given}, goes only with "limit", which says how many places there are. Write { limit: 10, places: 3 }.`,
  );

interface Replacing extends Pick<AcquireOptions, 'mode' | 'limit'> {
  readonly onLocked?: unknown;
  readonly waitMs?: number | undefined;
  readonly replaceWaitMs?: number | undefined;
}

/** @throws LockConfigurationError for options that do not go with that of a replacement */
export function refuseReplacement({
  onLocked,
  mode,
  limit,
  waitMs,
  replaceWaitMs,
}: Replacing): void {
  if (onLocked !== 'replace') {
    if (replaceWaitMs === undefined) return;
    throw new LockConfigurationError(
      `Option "replaceWait" goes only with { onLocked: 'replace' }.`,
    );
  }
  const other = limit !== undefined ? 'limit' : mode === 'shared' ? 'mode' : undefined;
  if (other !== undefined)
    throw new LockConfigurationError(
      `Option "${other}" does not go with { onLocked: 'replace' }: one caller replaces one holder, so the lock is exclusive.`,
    );
  if (waitMs !== undefined && waitMs > 0)
    throw new LockConfigurationError(
      `Option "wait" does not go with { onLocked: 'replace' }, which waits for the work of the holder to end: give "replaceWait".`,
    );
}

/** @throws LockConfigurationError */
export function refuseSeveral(keys: readonly string[]): void {
  if (keys.length > 1)
    throw new LockConfigurationError(
      `Option "onLocked": 'replace' goes with one key, and there are ${String(keys.length)}: their holders could be several.`,
    );
}

/** @throws LockConfigurationError */
export function refuseLongMinHold(minHoldMs: number, ttlMs: number): void {
  if (minHoldMs <= ttlMs) return;
  const [longest, ttlText] = [String(minHoldMs), String(ttlMs)];
  throw new LockConfigurationError(
    `"minHold" (${longest} ms) is longer than the TTL of the lock (${ttlText} ms): a process that dies leaves the lock for its TTL, and that ` +
      `must cover it. Give a "ttl" of at least ${longest} ms; a lock that is released is not kept for longer than "minHold".`,
  );
}
