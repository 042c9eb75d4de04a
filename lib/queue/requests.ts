import { RecentMap } from '../collections/recent-map.js';
import type { Grant } from '../lease/grant.js';
import type { LeaseKeeper } from '../lease/lease-keeper.js';
import { inPlaces } from '../observe/contexts.js';
import type { LockEventHub } from '../observe/lock-events.js';
import type { ResolvedOptions } from '../options/resolve-options.js';
import { validityMs } from '../options/validity.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  Held,
  LeaseRequest,
  SeveralLeases,
  LinePlace,
  LockStore,
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
import { elapsedMs, type Instant } from '../time/clock.js';
import { PendingTasks } from '../time/pending-tasks.js';
import type { Scheduler } from '../time/scheduler.js';
import type { LockRequest } from './caller.js';

export interface GrantedAttempt {
  readonly status: 'granted';
  readonly grant: Grant;
  /** When the reply came. */
  readonly now: Instant;
}

export type AttemptOutcome = GrantedAttempt | Held | Unavailable;

/** How the store is asked. */
export type AttemptManner = Pick<AcquireRequest, 'line' | 'joins' | 'splits'> & {
  /** A new one, if not given. */
  readonly token?: string;
};

/** The number of places that are remembered: a place that is forgotten costs its claim. */
const MOST_LEFT_BEHIND = 1_000;

/** The number of differences of limits that are remembered as reported. */
const MOST_DIFFERENCES = 1_000;

/** What asking the store needs. */
export interface RequestDependencies {
  readonly store: LockStore;
  readonly scheduler: Scheduler;
  readonly events: LockEventHub;
  readonly options: ResolvedOptions;
  /** Adopts a grant at the moment of its reply, so that every lease has an owner that ends it. */
  readonly keeper: LeaseKeeper;
}

/** Asks the store for locks. Nothing of a request stays behind unless it is granted, or stands in line. */
export class LockRequests {
  readonly #deps: RequestDependencies;
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

  constructor(dependencies: RequestDependencies) {
    this.#deps = dependencies;
    this.maker = newMaker(dependencies.scheduler.runtime);
  }

  newToken({ mode, places }: Required<HoldTerms>): string {
    return newOwnerToken(this.#deps.scheduler.runtime, { maker: this.maker, mode, places });
  }

  /** Whether a token was made here. */
  isOwn(token: string): boolean {
    return isOwnToken(token, this.maker);
  }

  /** Asks for the key of a request for one. */
  attempt(request: LockRequest, how: AttemptManner = {}): Promise<AttemptOutcome> {
    const { store, scheduler } = this.#deps;
    const { token = this.newToken(request), line, joins, splits } = how;
    const { keys, ttlMs } = request;
    const [key = ''] = keys;
    const sentAt = scheduler.runtime.now();
    return store
      .acquire({ key, token, ttlMs, line, joins, splits })
      .then((outcome) => this.judged(request, { token, sentAt }, outcome));
  }

  /** What the reply of the store means for a request: a lock that was granted too late is none. */
  judged(
    request: LockRequest,
    { token, sentAt }: Pick<Grant, 'token' | 'sentAt'>,
    outcome: AcquireOutcome,
  ): AttemptOutcome {
    const { keeper, scheduler, options } = this.#deps;
    const { keys, ttlMs } = request;
    if (outcome.status === 'unavailable') {
      if (outcome.sent !== false) keeper.discard({ keys, token }, ttlMs);
      return outcome;
    }
    this.#compareLimits(request, outcome.otherLimit);
    if (outcome.status === 'held') return outcome;
    const { fencingToken, isFromClock, isPlain, othersWait } = outcome;
    const terms = { fencingToken, isFromClock, isPlain, othersWait };
    const grant: Grant = { keys, token, ttlMs, sentAt, ...terms };
    const now = scheduler.runtime.now();
    const elapsed = elapsedMs(sentAt, now);
    if (elapsed < validityMs(ttlMs, options.clockDrift)) return { status: 'granted', grant, now };
    keeper.discard(grant, ttlMs, 0, fencingToken);
    return tooLate(elapsed, ttlMs);
  }

  /** Reports that callers give different limits for one key, once for each difference. */
  #compareLimits({ keys, mode, places, origin }: LockRequest, otherLimit: number | undefined) {
    const limit = limitIn(mode);
    if (otherLimit === undefined || limit === undefined) return;
    const difference = [...keys, limit, otherLimit].join('\0');
    if (this.#reportedLimits.has(difference)) return;
    this.#reportedLimits.set(difference, true);
    const subject = { keys, mode, ...inPlaces({ places }), ...origin };
    this.#deps.events.emit('limitsDiffer', { ...subject, limit, otherLimit });
  }

  /** What the store gave is not wanted any more. */
  giveBack(grant: Grant): void {
    this.#deps.keeper.discard(grant, grant.ttlMs, 0, grant.fencingToken);
  }

  /** Removes what requests without a reply may have left. */
  discard(lease: SeveralLeases): void {
    this.#deps.keeper.discard(lease, lease.ttlMs);
  }

  /** Leaves the store's line. */
  leave(lease: LeaseRequest, place: LinePlace): Promise<void> {
    this.#leftBehind.set(tailOf(lease.token), lease);
    return this.pending.add(this.#deps.store.leave(lease, place));
  }

  /** The store calls a place that no caller here stands at: what it was given is for the next in line. */
  passOn(key: string, to: string): void {
    const tail = tailOf(to) || to;
    const lease = this.#leftBehind.get(tail);
    if (lease === undefined) return;
    this.#leftBehind.delete(tail);
    void this.leave({ ...lease, key }, { id: lease.token, ttlMs: lease.ttlMs });
  }
}

/** Granted, but over before the reply arrived: no lock is returned (Redlock's validity check). */
export function tooLate(elapsed: number, ttlMs: number): Unavailable {
  const message = `answered after ${elapsed.toFixed(0)} ms, when a TTL of ${String(ttlMs)} ms was over already`;
  return {
    status: 'unavailable',
    nodes: [{ node: 'store', kind: 'timeout', message }],
    transient: true,
  };
}
