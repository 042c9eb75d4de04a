import { LockConfigurationError } from '../errors.js';
import type { HoldingOptions } from '../lease/grant.js';
import type { HoldMode } from '../store/owner-token.js';
import { describe } from './describe.js';
import { toMs, type Duration } from './duration.js';
import { booleanOf, ttlToMs, type ResolvedOptions } from './resolve-options.js';
import { hintFor, LOCK_ELSEWHERE } from './unknown-option.js';

/** Options of `acquire`. What is left out comes from the module's options. */
export interface AcquireOptions {
  /** How long the lease lasts unless it is renewed. */
  ttl?: Duration;
  /** How long to wait for the lock; 0 does not wait. */
  wait?: Duration;
  /** Ends the wait when it aborts, and with its reason. A lock that was granted is not affected. */
  signal?: AbortSignal | undefined;
  /** Whether the lease is renewed until it is released. */
  autoExtend?: boolean;
  /** The longest time that the lock may be held, renewals included; after it the lock is lost and given back. Default: no limit. */
  maxHold?: Duration;
  /**
   * `'exclusive'` (default): nobody else holds the keys. `'shared'`: others who ask for `'shared'` hold them, too; whoever wants them
   * alone waits until all of them are done, and who comes after him waits behind him.
   */
  mode?: 'exclusive' | 'shared';
  /**
   * So many may hold the keys at once, each with a lease of its own, so that the place of one that died comes back. All have to name the
   * same number; who names another one, or wants the keys alone, waits until they are done. Not over several masters.
   */
  limit?: number;
  /**
   * The shortest time, from when it was acquired, that the keys stay taken: a lock that ends before that, however it does, is over for
   * its holder, and nobody else gets it until then. For short jobs on machines whose clocks differ. At most the `ttl`, for which a
   * process that dies leaves it. Default: 0.
   */
  minHold?: Duration;
  /**
   * When the keys are free: `'when-done'` (default), as soon as the lock is released; `'on-expiry'`, a whole TTL after that, also when
   * the work failed: at most one run in that time.
   */
  release?: 'when-done' | 'on-expiry';
}

export type TryAcquireOptions = Omit<AcquireOptions, 'wait'>;

/** Options of `run`. */
export interface RunOptions extends AcquireOptions {
  /** Whether a call from inside a `run` or `@WithLock` that holds the same keys goes through (default); else it is an error. */
  reentrant?: boolean;
}

export type TryRunOptions = Omit<RunOptions, 'wait'>;

export interface ResolvedAcquireOptions extends HoldingOptions {
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  readonly reentrant: boolean;
  readonly mode: HoldMode;
}

const NAMES = new Set([
  'ttl',
  'wait',
  'signal',
  'autoExtend',
  'maxHold',
  'minHold',
  'release',
  'reentrant',
  'mode',
  'limit',
] satisfies (keyof RunOptions)[] as string[]);

const MODES: readonly unknown[] = [undefined, 'exclusive', 'shared'];

/**
 * @throws LockConfigurationError for what is neither, or both
 */
export function holdModeFrom({ mode, limit }: Pick<AcquireOptions, 'mode' | 'limit'>): HoldMode {
  if (!MODES.includes(mode)) {
    throw new LockConfigurationError(
      `Option "mode" must be 'exclusive' or 'shared', received ${describe(mode)}.`,
    );
  }
  if (limit === undefined) return mode ?? 'exclusive';
  if (!Number.isSafeInteger(limit) || limit < 1) {
    throw new LockConfigurationError(
      `Option "limit" must be a whole number from 1 on, received ${describe(limit)}.`,
    );
  }
  if (mode === undefined) return `limit:${limit}`;
  throw new LockConfigurationError(
    `Option "limit" goes without "mode", which is '${mode}': a lock is exclusive, shared, or limited.`,
  );
}

/** Three who ask for a place each could get two of three masters each, and none of them a majority that excludes the others. */
function refuseLimitOnQuorum(mode: HoldMode, { location }: ResolvedOptions): void {
  if (!mode.startsWith('limit') || location.kind !== 'redis' || location.redis.length === 1) return;
  throw new LockConfigurationError(
    `Option "limit" works on one Redis, and option "redis" lists ${String(location.redis.length)}: of three masters any two are a ` +
      "majority, so three callers could each get two of them where two are allowed. Use one Redis for it, or mode: 'shared'.",
  );
}

export function resolveAcquireOptions(
  options: RunOptions,
  defaults: ResolvedOptions,
): ResolvedAcquireOptions {
  const { ttl, wait, signal, autoExtend, maxHold, minHold, release, reentrant } = options;
  const mode = holdModeFrom(options);
  if (mode !== 'exclusive') refuseLimitOnQuorum(mode, defaults);
  for (const name of Object.keys(options)) {
    if (!NAMES.has(name))
      throw new LockConfigurationError(
        `There is no option "${name}" of a lock.${hintFor(name, [...NAMES], LOCK_ELSEWHERE)} The options are ${[...NAMES].join(', ')}.`,
      );
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new LockConfigurationError(
      `Option "signal" must be an AbortSignal, received ${typeof signal}.`,
    );
  }
  const ttlMs = ttl === undefined ? defaults.ttlMs : ttlToMs(ttl, defaults.restartGuard);
  return {
    ttlMs,
    waitMs: wait === undefined ? defaults.waitMs : toMs(wait, 'wait'),
    autoExtend: booleanOf(autoExtend ?? defaults.autoExtend, 'autoExtend'),
    maxHoldMs: maxHold === undefined ? Infinity : toMs(maxHold, 'maxHold', 1),
    minHoldMs: minHold === undefined ? 0 : minHoldToMs(minHold, ttlMs),
    release: releaseOf(release ?? 'when-done'),
    reentrant: booleanOf(reentrant ?? true, 'reentrant'),
    signal,
    mode,
  };
}

/**
 * @param ttlMs of the same lock, where that is known
 * @throws LockConfigurationError
 */
export function minHoldToMs(value: unknown, ttlMs = Infinity): number {
  const minHoldMs = Math.ceil(toMs(value, 'minHold'));
  if (minHoldMs <= ttlMs) return minHoldMs;
  const [longest, ttl] = [String(minHoldMs), String(ttlMs)];
  throw new LockConfigurationError(
    `"minHold" (${longest} ms) is longer than the TTL of the lock (${ttl} ms): a process that dies leaves the lock for its TTL, and that ` +
      `must cover it. Give a "ttl" of at least ${longest} ms; a lock that is released is not kept for longer than "minHold".`,
  );
}

/** @throws LockConfigurationError */
export function releaseOf(value: unknown): 'when-done' | 'on-expiry' {
  if (value === 'when-done' || value === 'on-expiry') return value;
  throw new LockConfigurationError(
    `Option "release" must be 'when-done' or 'on-expiry', received ${describe(value)}.`,
  );
}
