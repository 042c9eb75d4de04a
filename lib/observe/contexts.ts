import type { LockLossReason, NodeFailure } from '../errors.js';

/** The subject of an event or a trace. It never has owner tokens. */
export interface LockSubject {
  /** The `name` of the service, if it has one. */
  readonly service?: string | undefined;
  /** Without `keyPrefix`. */
  readonly keys: readonly string[];
  readonly mode: 'exclusive' | 'shared' | `limit:${number}`;
  /** How many of the places of a limit; missing for one place, and without a limit. */
  readonly places?: number | undefined;
  /** The key templates of the decorated method, joined by `, `; missing for a lock by hand and for a key function. */
  readonly template?: string | undefined;
  /** `OrdersService.pay`; missing for a lock by hand. */
  readonly method?: string | undefined;
  /** The call competes for a leadership (`lead`, `@Leader`); missing for all others. */
  readonly isCandidate?: true | undefined;
}

/**
 * The message of `holdfast:acquire`. Properties that are not `readonly` are set when they are known, at the end at the
 * latest.
 */
export interface AcquireContext extends LockSubject {
  /** Whether a section around the call holds the keys, so that no store was asked. */
  nested: boolean;
  /** Whether the call had to wait, or currently waits. */
  hasWaited: boolean;
  outcome?:
    | 'granted'
    | 'refused'
    | 'unavailable'
    | 'closed'
    | 'aborted'
    | 'deadlock'
    | 'failed'
    | undefined;
  /** How long the call took, in milliseconds. */
  waitedMs?: number | undefined;
  fencingToken?: number | undefined;
  /** The error that the call rejects with. */
  error?: unknown;
}

/** The message of `holdfast:hold` and `holdfast:work`. */
export interface HoldContext extends LockSubject {
  readonly fencingToken: number;
  /** The previous hold in the same process, which handed this one on; set until this one ends. */
  follows?: HoldContext | undefined;
  outcome?: 'released' | 'detached' | 'lost' | undefined;
  /** Why it was lost. */
  reason?: LockLossReason | undefined;
  /** In milliseconds. */
  heldMs?: number | undefined;
  /** The error that the work threw, or the `LockLostError`. */
  error?: unknown;
}

/** One lease of a batch of renewals. */
export interface RenewedLease extends LockSubject {
  readonly fencingToken: number;
  outcome?: 'renewed' | 'lost' | 'unavailable' | undefined;
}

/** The message of `holdfast:renew`. */
export interface RenewContext {
  readonly service?: string | undefined;
  readonly leases: readonly RenewedLease[];
  error?: unknown;
}

/** The message of `holdfast:release`. */
export interface ReleaseContext extends LockSubject {
  readonly fencingToken: number;
  readonly heldMs: number;
  outcome?: 'released' | 'lost' | 'unavailable' | undefined;
  error?: unknown;
}

/** The message of `holdfast:request`. */
export interface RequestContext {
  /** The script: `acquire`, `extend`, `release`, `once`, … */
  readonly operation: string;
  /** `host:port`, never with credentials. */
  readonly node: string;
  outcome?: 'answered' | NodeFailure['kind'] | undefined;
  /** In milliseconds. */
  durationMs?: number | undefined;
  error?: unknown;
}
