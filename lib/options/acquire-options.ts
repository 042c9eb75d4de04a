import { LockConfigurationError } from '../errors.js';
import type { HoldingOptions } from '../lease/lease.js';
import { toMs, type Duration } from './duration.js';
import { booleanOf, ttlToMs, type ResolvedOptions } from './resolve-options.js';

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
}

const NAMES = new Set(['ttl', 'wait', 'signal', 'autoExtend', 'maxHold', 'reentrant']);

export function resolveAcquireOptions(
  options: RunOptions,
  defaults: ResolvedOptions,
): ResolvedAcquireOptions {
  const { ttl, wait, signal, autoExtend, maxHold, reentrant } = options;
  for (const name of Object.keys(options)) {
    if (!NAMES.has(name))
      throw new LockConfigurationError(
        `There is no option "${name}" of a lock. The options are ttl, wait, signal, autoExtend, maxHold and reentrant.`,
      );
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new LockConfigurationError(
      `Option "signal" must be an AbortSignal, received ${typeof signal}.`,
    );
  }
  return {
    ttlMs: ttl === undefined ? defaults.ttlMs : ttlToMs(ttl, defaults.restartGuard),
    waitMs: wait === undefined ? defaults.waitMs : toMs(wait, 'wait'),
    autoExtend: booleanOf(autoExtend ?? defaults.autoExtend, 'autoExtend'),
    maxHoldMs: maxHold === undefined ? Infinity : toMs(maxHold, 'maxHold', 1),
    reentrant: booleanOf(reentrant ?? true, 'reentrant'),
    signal,
  };
}
