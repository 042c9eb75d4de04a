import type { LockLossReason, NodeFailure } from '../errors.js';

/** What an event or a trace is about. Owner tokens are in none of them. */
export interface LockSubject {
  /** The `name` of the service, if it has one. */
  readonly service?: string | undefined;
  /** Without `keyPrefix`. */
  readonly keys: readonly string[];
  readonly mode: 'exclusive' | 'shared' | 'upgradeable' | `limit:${number}`;
  /** How many of the places that a limit counts; missing for one place, and without a limit. */
  readonly places?: number | undefined;
  /** The key templates of the decorated method, joined by `, `; missing for a lock by hand and for a key function. */
  readonly template?: string | undefined;
  /** `OrdersService.pay`; missing for a lock by hand. */
  readonly method?: string | undefined;
}

/** Events and traces have the places of those who take several. */
export const inPlaces = ({ places }: { readonly places: number }): Pick<LockSubject, 'places'> =>
  places === 1 ? {} : { places };

/** The message of `holdfast:acquire`. What is not `readonly` is set when it is known, at the end at the latest. */
export interface AcquireContext extends LockSubject {
  /** A section around the call holds the keys: no store was asked. */
  nested: boolean;
  /** The call had to wait, or waits now. */
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
  /** What the call rejects with. */
  error?: unknown;
}

/** The message of `holdfast:hold` and `holdfast:work`. */
export interface HoldContext extends LockSubject {
  readonly fencingToken: number;
  /** The hold before, in the same process, that handed this one on; until this one ends. */
  follows?: HoldContext | undefined;
  outcome?: 'released' | 'detached' | 'lost' | undefined;
  /** Why it was lost. */
  reason?: LockLossReason | undefined;
  /** In milliseconds. */
  heldMs?: number | undefined;
  /** What the work threw, or the `LockLostError`. */
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
