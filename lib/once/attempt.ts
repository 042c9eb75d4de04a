import type { Lock } from '../lease/lock.js';

/** One attempt at work that is to be done once: what the work of `runOnce` is given, and `locks.currentAttempt()` tells. */
export interface OnceAttempt {
  /** The number of this attempt, over all processes, from 1. */
  readonly attempt: number;
  /** Whether no other follows if this one fails. */
  readonly isLastAttempt: boolean;
  /** The lock that the work runs under. */
  readonly lock: Lock;
  /** Aborts when the lock is lost, or the `signal` of the options aborts: stop what can be stopped. */
  readonly signal: AbortSignal;
}

/** What `runOnce` did. `attempts` is how many have been begun, by everybody. */
export type RunOnceResult<T> =
  /** This call has done the work, and marked it done. */
  | { readonly outcome: 'completed'; readonly attempts: number; readonly value: T }
  /** It was done already; with its value where that was kept, as JSON brings it back. */
  | { readonly outcome: 'done-elsewhere'; readonly attempts: number; readonly value?: T }
  /** It has failed too often, or for good, and is not tried any more. */
  | {
      readonly outcome: 'exhausted';
      readonly attempts: number;
      readonly value?: undefined;
      /** The message of the error that the last attempt ended with, shortened; none if it died. */
      readonly lastError?: string;
    }
  /** This call's work returned, but it had lost its lock, and another attempt has begun since: that one decides. */
  | { readonly outcome: 'superseded'; readonly attempts: number; readonly value?: undefined }
  /** Somebody else was at it for as long as this call waited. */
  | { readonly outcome: 'busy'; readonly attempts: number; readonly value?: undefined };
