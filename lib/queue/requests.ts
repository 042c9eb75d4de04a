import { RecentMap } from '../collections/recent-map.js';
import type { Foundation } from '../lease/foundation.js';
import type { Lease, StoreCall } from '../lease/lease.js';
import type { LeaseKeeper } from '../lease/lease-keeper.js';
import type { LockRequest } from '../lease/lock-request.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  Held,
  LeaseRequest,
  LinePlace,
  Unavailable,
} from '../store/lock-store.js';
import {
  isOwnToken,
  limitIn,
  newMaker,
  newOwnerToken,
  tailOf,
  type HoldTerms,
} from '../store/owner-token.js';
import type { Instant } from '../time/clock.js';
import { PendingTasks } from '../time/pending-tasks.js';

/** A granted lease has no holder yet. Ask `instanceof Lease` first: its `status` is 'held', as that of a refusal. */
export type AttemptOutcome = Lease | Held | Unavailable;

/** How the store is asked. */
export type AttemptManner = Pick<AcquireRequest, 'line' | 'joins' | 'splits' | 'keeps'> & {
  /** A new one, if not given. */
  readonly token?: string;
  /** The keys in the order in which the store is to take them. Default: that of the request. */
  readonly asked?: readonly string[] | undefined;
};

/** The number of places that are remembered: a place that is forgotten costs its claim. */
const MOST_LEFT_BEHIND = 1_000;

/** The number of differences of limits that are remembered as reported. */
const MOST_DIFFERENCES = 1_000;

/** What the queue stands on. */
export interface QueueFoundation extends Foundation {
  /** Adopts a lease at the moment of its grant, so that every lease has an owner that ends it. */
  readonly keeper: LeaseKeeper;
}

/** Asks the store for locks. Nothing of a request stays behind unless it is granted, or stands in line. */
export class LockRequests {
  readonly #foundation: QueueFoundation;
  /** What the tokens of this service begin with, behind the mark of all: so it knows which orphans are its own. */
  readonly maker: string;
  /**
   * Places that were left, by the tail of their token. The store may have called them before, or write them again: a
   * request without a reply may be late.
   */
  readonly #leftBehind = new RecentMap<string, LeaseRequest>(MOST_LEFT_BEHIND);
  readonly #reportedLimits = new RecentMap<string, true>(MOST_DIFFERENCES);
  /** Requests that are on their way, and lines. */
  readonly pending = new PendingTasks();

  constructor(foundation: QueueFoundation) {
    this.#foundation = foundation;
    this.maker = newMaker(foundation.scheduler.runtime);
  }

  newToken({ mode, places }: Required<HoldTerms>): string {
    return newOwnerToken(this.#foundation.scheduler.runtime, { maker: this.maker, mode, places });
  }

  /** Whether a token was made here. */
  isOwn(token: string): boolean {
    return isOwnToken(token, this.maker);
  }

  attempt(request: LockRequest, how: AttemptManner = {}): Promise<AttemptOutcome> {
    const { store, scheduler } = this.#foundation;
    const { token = this.newToken(request.options), line, joins, splits, keeps } = how;
    const { asked: keys = request.keys } = how;
    const { ttlMs } = request.options;
    const asked = { token, sentAt: scheduler.runtime.now() };
    return store
      .acquire({ keys, token, ttlMs, line, joins, splits, keeps })
      .then((outcome) => this.#judged(request, asked, outcome));
  }

  #judged(request: LockRequest, asked: StoreCall, outcome: AcquireOutcome): AttemptOutcome {
    const { keeper, scheduler } = this.#foundation;
    if (outcome.status === 'unavailable') {
      const { keys, options } = request;
      if (outcome.sent !== false) keeper.discard({ keys, token: asked.token }, options.ttlMs);
      return outcome;
    }
    this.#compareLimits(request, outcome.otherLimit);
    if (outcome.status === 'held') return outcome;
    const now = scheduler.runtime.now();
    const lease = keeper.granted(request, asked, outcome, now);
    if (lease.validForMsAt(now) > 0) return lease;
    this.giveBack(lease);
    return tooLate(lease, now);
  }

  /** Reports that callers give different limits for one key, once for each difference. */
  #compareLimits(request: LockRequest, otherLimit: number | undefined) {
    const { keys, options } = request;
    const limit = limitIn(options.mode);
    if (otherLimit === undefined || limit === undefined) return;
    const difference = [...keys, limit, otherLimit].join('\0');
    if (this.#reportedLimits.has(difference)) return;
    this.#reportedLimits.set(difference, true);
    this.#foundation.recorder.emit('limitMismatch', request, { limit, otherLimit });
  }

  /** What the store gave is not wanted any more. */
  giveBack(lease: Lease): void {
    this.#foundation.keeper.discard(lease, lease.ttlMs, 0, lease.fencingToken);
  }

  /** Leaves the store's line. */
  leave(lease: LeaseRequest, place: LinePlace): Promise<void> {
    this.#leftBehind.set(tailOf(lease.token), lease);
    return this.pending.add(this.#foundation.store.leave(lease, place));
  }

  /** Releases keys of a call that waits. Resolves with the outage after which its line leaves, and takes another token. */
  async giveUp(lease: LeaseRequest): Promise<Unavailable | undefined> {
    const outcome = await this.pending.add(this.#foundation.store.release(lease));
    if (outcome.status !== 'unavailable') return undefined;
    // A request before this one was sent, so something may be left, even if the release never left the process.
    const { sent: _, ...outage } = outcome;
    return outage;
  }

  /** The store calls a place that no caller here stands at: what it was given is for the next in line. */
  passOn(to: string): void {
    const tail = tailOf(to) || to;
    const lease = this.#leftBehind.get(tail);
    if (lease === undefined) return;
    this.#leftBehind.delete(tail);
    void this.leave(lease, { id: lease.token, ttlMs: lease.ttlMs });
  }
}

/** Granted, but over before the reply arrived: no lock is returned (Redlock's validity check). */
export function tooLate(lease: Lease, now: Instant): Unavailable {
  const elapsed = lease.sinceSentMs(now).toFixed(0);
  const message = `answered after ${elapsed} ms, when a TTL of ${String(lease.ttlMs)} ms was over already`;
  return {
    status: 'unavailable',
    nodes: [{ node: 'store', kind: 'timeout', message }],
    transient: true,
  };
}
