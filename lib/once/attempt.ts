import type { Lock } from '../lease/lock.js';

/**
 * One attempt at work that is to be done once. The work of `runOnce` is given it, and `locks.currentAttempt()` returns
 * it.
 */
export interface OnceAttempt {
  /** The number of this attempt, over all processes, from 1. */
  readonly attempt: number;
  /** Whether no further attempt follows if this one fails. */
  readonly isLastAttempt: boolean;
  /** The lock that the work runs under. */
  readonly lock: Lock;
  /** Aborts when the lock is lost, or the `signal` of the options aborts: stop what can be stopped. */
  readonly signal: AbortSignal;
}

/** The result of `runOnce`. `attempts` is the number of attempts that all processes together have begun. */
export type RunOnceResult<T> =
  /** This call did the work, and marked it as done. */
  | { readonly outcome: 'completed'; readonly attempts: number; readonly value: T }
  /** The work was already done. `value` is the kept value, if one was kept, as parsed from JSON. */
  | { readonly outcome: 'done-elsewhere'; readonly attempts: number; readonly value?: T }
  /** The work has failed too often, or with a `NonRetryableError`, and is not tried any more. */
  | {
      readonly outcome: 'exhausted';
      readonly attempts: number;
      readonly value?: undefined;
      /** The message of the error that the last attempt ended with, shortened; missing if its process died. */
      readonly lastError?: string;
    }
  /** This call's work returned, but it had lost its lock. Another attempt has begun since, and decides, or the record is lost. */
  | { readonly outcome: 'superseded'; readonly attempts: number; readonly value?: undefined }
  /** Another caller did the work for as long as this call waited. */
  | { readonly outcome: 'busy'; readonly attempts: number; readonly value?: undefined };

/**
 * The work of `runOnce` or `@RunOnce` throws it to forbid further attempts, in any process. The caller whose work threw
 * it gets it. For all other callers the work is exhausted.
 */
export class NonRetryableError extends Error {
  override readonly name: string = 'NonRetryableError';
}
