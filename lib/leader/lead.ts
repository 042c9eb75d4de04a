/** One term of a leader. `onElected` and a `@Leader` method receive it. */
export interface Lead {
  /** The name that instances compete for. */
  readonly name: string;
  /**
   * The fencing token of the lock: larger than in all earlier terms. Send it to resources, so that they refuse a leader
   * which does not know yet that another one was elected.
   */
  readonly term: number;
  /**
   * Aborts when the term is over. Its reason is a `LockLostError` if the lock was lost, the error that `onElected`
   * threw, or an `AbortError` if this instance steps down or stops.
   */
  readonly signal: AbortSignal;
  /**
   * Throws a `LockLostError`, or the reason of `signal`, unless this instance currently leads. Call it right before a
   * step that cannot be undone.
   */
  assertLeading(): void;
  /** Lets another instance lead. The next leader is elected when the work of this one has ended. */
  stepDown(): void;
}

/**
 * Why a term is over:
 * - `'stepped-down'`: `stepDown()` was called
 * - `'rotated'`: by `rotateEvery`
 * - `'stopped'`: by `stop()` or the shutdown
 * - `'failed'`: `onElected` threw
 * - `'lost'`: the lock was lost
 */
export type LeadEnd = 'stepped-down' | 'rotated' | 'stopped' | 'failed' | 'lost';

/** What `onLost` receives. */
export interface LeadEnded {
  readonly name: string;
  readonly term: number;
  readonly reason: LeadEnd;
  /** The `LockLostError` of a lost lock, the error that `onElected` threw, or the `AbortError` of the signal. */
  readonly error: unknown;
}

/** The result of `getLeader`. */
export interface LeaderInfo {
  /** Whether it is this service. */
  readonly isSelf: boolean;
  /** The id of the instance, as in `LockAdmin`; missing for a lock that other software made. */
  readonly id?: string;
  readonly application?: string;
  readonly host?: string;
  readonly pid?: number;
  readonly version?: string;
  /** Since when, by the clock of the store; missing if it is unknown. */
  readonly since?: Date;
  /** The fencing token; missing if the leader was asked and did not reply within 250 ms. */
  readonly term?: number;
  /** Milliseconds until another instance can be elected if this one is dead. */
  readonly remainingMs: number;
}
