/** One term of a leader: what `onElected` and a `@Leader` method are given. */
export interface Lead {
  /** What is led. */
  readonly name: string;
  /**
   * The fencing token of the lock: larger than in all terms before. Send it along to resources, so that they refuse a leader which does not
   * know yet that another one was elected.
   */
  readonly term: number;
  /** Aborts when the lead is over: with a `LockLostError` when it was lost, with an `AbortError` when this instance steps down. */
  readonly signal: AbortSignal;
  /** Throws a `LockLostError` unless this instance leads now. Call it right before a step that cannot be undone. */
  assertLeading(): void;
  /** Gives the lead to another instance. The next one is elected when the work of this one has ended. */
  stepDown(): void;
}

/**
 * Why a lead is over. `'stepped-down'`: by hand; `'rotated'`: by `rotateEvery`; `'stopped'`: by `stop()` or the shutdown; `'failed'`:
 * `onElected` threw; `'lost'`: the lock was lost.
 */
export type LeadEnd = 'stepped-down' | 'rotated' | 'stopped' | 'failed' | 'lost';

/** What `onLost` is told. */
export interface LeadEnded {
  readonly name: string;
  readonly term: number;
  readonly reason: LeadEnd;
  /** The `LockLostError` of a lead that was lost, what `onElected` threw, or the `AbortError` of the signal. */
  readonly error: unknown;
}

/** Who leads, as `getLeader` tells. */
export interface LeaderInfo {
  /** Whether it is this service. */
  readonly isSelf: boolean;
  /** What `LockAdmin` calls the instance; missing for a lock that other software made. */
  readonly id?: string;
  readonly application?: string;
  readonly host?: string;
  readonly pid?: number;
  readonly version?: string;
  /** Since when, by the clock of the store; missing where that is not known. */
  readonly since?: Date;
  /** The fencing token; missing where the leader was asked and did not answer within 250 ms. */
  readonly term?: number;
  /** Milliseconds until another one can be elected if this one is dead. */
  readonly remainingMs: number;
}
