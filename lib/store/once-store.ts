import type { Unavailable } from './unavailable.js';

/** One caller's try at work that is to be done once. */
export interface OnceReference {
  /** Without `keyPrefix`: the key of the lock that it runs under, and of what is kept about the work. */
  readonly key: string;
  /** The owner token of that lock. */
  readonly token: string;
  /** Names this try. Not the token: callers of one process take turns under one token. */
  readonly owner: string;
  /**
   * The fencing token of that lock; 0 for a caller that does not hold it and only asks for the state of the work.
   */
  readonly fencingToken: number;
}

export interface BeginRequest extends OnceReference {
  /** How many attempts there may be. */
  readonly attempts: number;
  /** How long the record of the attempt is kept unless it is extended, in ms. */
  readonly lifeMs: number;
  /** How long it is recorded, in ms, that there are no attempts left. */
  readonly keepMs: number;
}

export type BeginOutcome =
  /** The number of this attempt. */
  | { readonly status: 'begun'; readonly attempt: number }
  | { readonly status: 'done'; readonly attempts: number; readonly value?: string | undefined }
  | { readonly status: 'exhausted'; readonly attempts: number; readonly error?: string | undefined }
  /** The lock is not the caller's, so nothing has begun. `attempts` is the number that others have begun. */
  | { readonly status: 'lost'; readonly attempts: number }
  | Unavailable;

export interface KeepRequest extends OnceReference {
  readonly attempt: number;
  readonly lifeMs: number;
}

/**
 * How an attempt ended. `'failed'`: the next one may begin. `'final'`: it failed, and no other is to begin. `'returned'`: it does not
 * count.
 */
export type AttemptEnd = 'done' | 'failed' | 'final' | 'returned';

export interface FinishRequest extends OnceReference {
  /** The number does not matter for an attempt that is returned: its owner may not know it. */
  readonly attempt: number;
  readonly end: AttemptEnd;
  /** The value of work that is done, as JSON; the text of the error of work that failed. */
  readonly text?: string | undefined;
  /** How long that is recorded, in ms. */
  readonly lifeMs: number;
}

export type FinishOutcome =
  | { readonly status: 'accepted' }
  /** Another attempt has begun since, or the work is over: nothing was changed. */
  | { readonly status: 'superseded' }
  | Unavailable;

/**
 * The records of work that is to be done once: an optional part of a `LockStore`. As there, no method rejects for a
 * fault of the store. Every request is idempotent by its owner, and settles within a time limit.
 */
export interface OnceStore {
  /**
   * Begins the next attempt, for the holder of the lock. An attempt of another owner that has not ended counts as
   * failed: its owner no longer holds the lock. Called by any other caller, it changes nothing and returns the state of
   * the work.
   */
  begin(request: BeginRequest): Promise<BeginOutcome>;
  /** Extends the record of a long attempt. */
  keep(request: KeepRequest): Promise<FinishOutcome>;
  /** Ends an attempt, if no other has begun, even after the lock was lost. */
  finish(request: FinishRequest): Promise<FinishOutcome>;
}
