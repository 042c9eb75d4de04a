import type { AcquireContext, LockSubject } from '../observe/contexts.js';
import type { ResolvedAcquireOptions } from '../options/acquire-options.js';
import type { CallSite } from './call-site.js';

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

/** The origin of a call, as far as its own process knows it. */
export interface CallFacts {
  readonly method?: string | undefined;
  readonly template?: string | undefined;
  /** File and line of a call by hand, where it was recorded. */
  readonly place?: string | undefined;
}

export const callFacts = ({ origin, site }: Pick<LockRequest, 'origin' | 'site'>): CallFacts => ({
  method: origin?.method,
  template: origin?.template,
  place: site?.place,
});

/** The origin of a call for a lock. */
export interface CallOrigin {
  /** The decorated method, if it is one. */
  readonly origin?: LockOrigin | undefined;
  /** The line of code that asks for the lock, if it is known. */
  readonly site?: CallSite | undefined;
  /** Ends the wait for the lock, instead of that of the options. */
  readonly signal?: AbortSignal | undefined;
  /** The limit of the key may change while it is held: the store is asked who is next. */
  readonly isAdjustable?: boolean | undefined;
  /** The caller competes for a leadership. */
  readonly isCandidate?: true | undefined;
}

/** A call for a lock, from its options to the end of the lease that it is granted. */
export class LockRequest {
  readonly keys: readonly string[];
  readonly options: ResolvedAcquireOptions;
  origin: LockOrigin | undefined;
  readonly site: CallSite | undefined;
  readonly signal: AbortSignal | undefined;
  readonly isAdjustable: boolean;
  readonly isCandidate: true | undefined;
  /** What diagnostics channels publish of the call while they have subscribers. */
  observed: AcquireContext | undefined;

  constructor(keys: readonly string[], options: ResolvedAcquireOptions, from: CallOrigin) {
    this.keys = keys;
    this.options = options;
    this.origin = from.origin;
    this.site = from.site;
    this.signal = from.signal ?? options.signal;
    this.isAdjustable = from.isAdjustable === true;
    this.isCandidate = from.isCandidate;
  }

  /** For events and traces: built when a subscriber exists. */
  get subject(): LockSubject {
    const { keys, isCandidate } = this;
    const { mode, places } = this.options;
    return {
      keys,
      mode,
      ...(places > 1 && { places }),
      ...(isCandidate && { isCandidate }),
      ...this.origin,
    };
  }

  /** Whether the keys may be granted to another caller as soon as the holder is done with them. */
  get endsWhenDone(): boolean {
    const { minHoldMs, release } = this.options;
    return minHoldMs === 0 && release === 'when-done';
  }
}
