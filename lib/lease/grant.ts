import type { HoldingOptions } from '../options/acquire-options.js';
import type { SeveralLeases } from '../store/lock-store.js';
import type { Instant } from '../time/clock.js';
import type { CallSite } from './call-site.js';

/** What a lock is called by in the store: its keys, and the token that holds each of them. */
export type LockReference = Omit<SeveralLeases, 'ttlMs'>;

/** What the store granted, and when it was asked. */
export interface Grant extends SeveralLeases {
  readonly fencingToken: number;
  /** The moment the request was sent: validity counts from here (Redlock, "safety arguments"). */
  readonly sentAt: Instant;
  /** As in `Granted`. */
  readonly isFromClock?: boolean | undefined;
  /** As in `Granted`. */
  readonly isPlain?: boolean | undefined;
  /** Whether others stood in line for the keys when it was granted. */
  readonly othersWait?: boolean | undefined;
}

/** The decorated method that asks for a lock. */
export interface LockOrigin {
  /** `OrdersService.pay` */
  readonly method?: string;
  /** The key templates, joined by `, `; missing when a function makes its keys. */
  readonly template?: string;
  /** The text before the first value of `lockKey`: not enumerable, so that events do not have it. */
  readonly byHand?: string;
}

/** What messages call the lock. It names no value. */
export const lockNameOf = (origin: LockOrigin | undefined): string | undefined =>
  origin?.template ?? (origin?.method === undefined ? origin?.byHand : `of ${origin.method}`);

/** How a lease is held, and where it was asked for. */
export interface LeaseOptions extends HoldingOptions {
  /** The decorated method that asked for it, if one did. */
  readonly origin?: LockOrigin | undefined;
  /** Where it was asked for, if that is known. */
  readonly site?: CallSite | undefined;
  /** The limit may change while the key is held: the store is asked who is next. */
  readonly isAdjustable?: boolean | undefined;
}

/** Whether the keys may be granted to another caller as soon as the holder is done with them. */
export const endsWhenDone = ({
  minHoldMs,
  release,
}: Pick<HoldingOptions, 'minHoldMs' | 'release'>): boolean =>
  minHoldMs === 0 && release === 'when-done';
