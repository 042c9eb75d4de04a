import { LockConfigurationError } from '../errors.js';
import type { LockHandle } from '../lease/lock-handle.js';
import type { OnceReference } from '../store/once-store.js';
import type { Task } from '../time/scheduler.js';
import type { ResolvedOnceOptions } from './once-options.js';

/**
 * The record of an attempt outlives the lease of a process that died in it by this many TTLs and `keepDone`: the next
 * caller in line has to find it.
 */
const LIFE_TTLS = 3;

/** An attempt of this process that has not ended. */
export interface Running {
  readonly reference: OnceReference;
  readonly options: ResolvedOnceOptions;
  readonly ttlMs: number;
  /** How long its record lasts unless it is extended, in ms. */
  readonly lifeMs: number;
  /** 0 until it has begun. */
  attempt: number;
  /** Whether its end is being sent, or was sent. */
  isEnding: boolean;
  wasReturned: boolean;
  /** The next extension of its record. */
  task: Task | undefined;
}

/** The attempt that may begin under a lock. */
export function attemptUnder(
  { keys, lease, fencingToken }: LockHandle,
  options: ResolvedOnceOptions,
  owner: string,
): Running {
  const [key = ''] = keys;
  if (keys.length !== 1) {
    throw new LockConfigurationError(
      `Work that is to be done once has one key, not ${String(keys.length)}: it is what the work is called by.`,
    );
  }
  const { token, ttlMs } = lease;
  return {
    reference: { key, token, owner, fencingToken },
    options,
    ttlMs,
    lifeMs: LIFE_TTLS * ttlMs + options.keepDoneMs,
    attempt: 0,
    isEnding: false,
    wasReturned: false,
    task: undefined,
  };
}
