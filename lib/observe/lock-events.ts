import type { Intervention, LockLossReason, NodeFailure } from '../errors.js';
import type { LockSubject } from './contexts.js';

/**
 * The events of a `LockService`: see `LockService.on`. Each event is also published on the channel `holdfast:<event>`
 * of Node's `diagnostics_channel`: `holdfast:lost`, `holdfast:handed-off`. Durations are in milliseconds.
 *
 * @typeParam Token `undefined` for the locks of a `LockDriver`, which have no fencing tokens
 */
export interface LockEvents<Token extends number | undefined = number> {
  /** A call begins to wait: another caller holds the lock, or the store does not reply. */
  readonly waiting: LockSubject & { readonly because: 'held' | 'unavailable' };
  /** A lock was granted. */
  readonly acquired: LockSubject & { readonly fencingToken: Token; readonly waitedMs: number };
  /** A lock was not granted, because another caller holds it. */
  readonly refused: LockSubject & { readonly retryAfterMs: number; readonly waitedMs: number };
  /** A lock was not granted, released, detached or attached, because the store did not reply. */
  readonly unavailable: LockSubject & {
    readonly operation: 'acquire' | 'release' | 'detach' | 'attach';
    readonly nodes: readonly NodeFailure[];
  };
  /** A lock was renewed. */
  readonly renewed: LockSubject & { readonly fencingToken: Token; readonly remainingMs: number };
  /** A renewal failed. The lock is still held for `remainingMs`. Then it is lost, unless a renewal succeeds before. */
  readonly jeopardy: LockSubject & {
    readonly fencingToken: Token;
    readonly remainingMs: number;
    readonly nodes: readonly NodeFailure[];
  };
  /** A lock is no longer held, although it was not released through its handle. */
  readonly lost: LockSubject & {
    readonly fencingToken: Token;
    readonly reason: LockLossReason;
    /** The operator that released it by force, and the reason, if that is why it was lost. */
    readonly intervention?: Intervention;
  };
  /** The holder released a lock. */
  readonly released: LockSubject & { readonly fencingToken: Token; readonly heldMs: number };
  /** The holder detached a lock. For `ttlMs` it can be attached. */
  readonly detached: LockSubject & {
    readonly fencingToken: Token;
    readonly heldMs: number;
    readonly ttlMs: number;
  };
  /** This service holds a lock that was detached. */
  readonly attached: LockSubject & { readonly fencingToken: Token };
  /**
   * A lock was released and granted to the next caller of this process, without the store (`handoff`). `template` and
   * `method` are those of the next caller.
   */
  readonly handedOff: LockSubject & {
    readonly fencingToken: Token;
    /** The token of the lock that was released. */
    readonly previousToken: number;
  };
  /**
   * Other callers hold the key with another limit than this call gives, and `setLimit` has set none. The process that
   * detects it emits the event once for each difference, and logs a warning.
   */
  readonly limitMismatch: LockSubject & { readonly limit: number; readonly otherLimit: number };
  /** An attempt of `runOnce` or `@RunOnce` began or ended, or was refused because none is left. */
  readonly onceAttempt: LockSubject & OnceProgress;
  /** @deprecated `handedOff` is its name now. The next minor version removes this one. */
  readonly handedOn: LockEvents<Token>['handedOff'];
  /** @deprecated `limitMismatch` is its name now. The next minor version removes this one. */
  readonly limitsDiffer: LockEvents<Token>['limitMismatch'];
  /** @deprecated `onceAttempt` is its name now. The next minor version removes this one. */
  readonly once: LockEvents<Token>['onceAttempt'];
}

/** The progress of an attempt. */
export type OnceProgress =
  | { readonly phase: 'began'; readonly attempt: number }
  | { readonly phase: 'ended'; readonly attempt: number; readonly outcome: OnceEnding }
  /** No attempt is left: `attempt` of them failed, or their processes died. */
  | { readonly phase: 'refused'; readonly attempt: number; readonly outcome: 'exhausted' };

/**
 * How an attempt ended. `'exhausted'`: it failed, and was the last one. `'final'`: it threw a `NonRetryableError`.
 * `'superseded'`: it had lost its lock, and another attempt decides.
 */
export type OnceEnding =
  'completed' | 'failed' | 'exhausted' | 'final' | 'superseded' | 'unavailable';

export type LockEventName = keyof LockEvents;
export type FormerEventName = 'handedOn' | 'limitsDiffer' | 'once';
export type CurrentEventName = Exclude<LockEventName, FormerEventName>;
export type LockEventListener<
  Name extends LockEventName,
  Token extends number | undefined = number,
> = (event: LockEvents<Token>[Name]) => void;
