import type { Grant } from '../lease/grant.js';
import type { LeaseKeeper } from '../lease/lease-keeper.js';
import { validityMs } from '../options/validity.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  Held,
  LeaseRequest,
  LinePlace,
  LockStore,
  Unavailable,
} from '../store/lock-store.js';
import {
  isOwnToken,
  newMaker,
  newOwnerToken,
  tailOf,
  type HoldTerms,
} from '../store/owner-token.js';
import { elapsedMs } from '../time/clock.js';
import { PendingTasks } from '../time/pending-tasks.js';
import type { Scheduler } from '../time/scheduler.js';
import type { LockRequest } from './caller.js';
import type { LimitDifferences } from './limit-differences.js';

export type AttemptOutcome =
  { readonly status: 'granted'; readonly grant: Grant } | Held | Unavailable;

/** How the store is asked. */
export type AttemptManner = Pick<AcquireRequest, 'line' | 'joins' | 'splits' | 'keeps'> & {
  /** A new one, if not given. */
  readonly token?: string;
  /** The keys in the order in which the store is to take them. Default: that of the request. */
  readonly asked?: readonly string[] | undefined;
};

/** The number of places that are remembered: a place that is forgotten costs its claim. */
const MOST_LEFT_BEHIND = 1_000;

interface Dependencies {
  readonly store: LockStore;
  readonly keeper: LeaseKeeper;
  readonly scheduler: Scheduler;
  readonly clockDrift: number;
  readonly differences: LimitDifferences;
}

/** Asks the store for locks. Nothing of a request stays behind unless it is granted, or stands in line. */
export class LockRequests {
  readonly #deps: Dependencies;
  /** Marks the tokens of this service, so that it knows which orphans are its own. */
  readonly #maker: string;
  readonly #leftBehind = new LeftBehind();
  /** Requests that are on their way, and lines. */
  readonly pending = new PendingTasks();

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
    this.#maker = newMaker(dependencies.scheduler.runtime);
  }

  /** What its tokens begin with, behind the mark of all. */
  get maker(): string {
    return this.#maker;
  }

  newToken({ mode, places }: Required<HoldTerms>): string {
    return newOwnerToken(this.#deps.scheduler.runtime, { maker: this.#maker, mode, places });
  }

  /** Whether a token was made here. */
  isOwn(token: string): boolean {
    return isOwnToken(token, this.#maker);
  }

  attempt(request: LockRequest, how: AttemptManner = {}): Promise<AttemptOutcome> {
    const { store, scheduler } = this.#deps;
    const { token = this.newToken(request), line, joins, splits, keeps } = how;
    const { asked: keys = request.keys } = how;
    const { ttlMs } = request;
    const sentAt = scheduler.runtime.now();
    return store
      .acquire({ keys, token, ttlMs, line, joins, splits, keeps })
      .then((outcome) => this.#judged(request, { token, sentAt }, outcome));
  }

  #judged(
    request: LockRequest,
    { token, sentAt }: Pick<Grant, 'token' | 'sentAt'>,
    outcome: AcquireOutcome,
  ): AttemptOutcome {
    const { keeper, scheduler, clockDrift, differences } = this.#deps;
    const { keys, ttlMs } = request;
    if (outcome.status === 'unavailable') {
      if (outcome.sent !== false) keeper.discard({ keys, token }, ttlMs);
      return outcome;
    }
    differences.found(request, outcome.otherLimit);
    if (outcome.status === 'held') return outcome;
    const { fencingToken, turns, othersWait } = outcome;
    const grant: Grant = { keys, token, ttlMs, sentAt, fencingToken, turns, othersWait };
    const elapsed = elapsedMs(sentAt, scheduler.runtime.now());
    if (elapsed < validityMs(ttlMs, clockDrift)) return { status: 'granted', grant };
    keeper.discard(grant, ttlMs, 0, fencingToken);
    return tooLate(elapsed, ttlMs);
  }

  /** What the store gave is not wanted any more. */
  giveBack(grant: Grant): void {
    this.#deps.keeper.discard(grant, grant.ttlMs, 0, grant.fencingToken);
  }

  /** Leaves the store's line. */
  leave(lease: LeaseRequest, place: LinePlace): Promise<void> {
    this.#leftBehind.remember(lease);
    return this.pending.add(this.#deps.store.leave(lease, place));
  }

  /** Releases keys of a call that waits. Resolves with the outage after which its line leaves, and takes another token. */
  async giveUp(lease: LeaseRequest): Promise<Unavailable | undefined> {
    const outcome = await this.pending.add(this.#deps.store.release(lease));
    if (outcome.status !== 'unavailable') return undefined;
    // A request before this one was sent, so something may be left, even if the release never left the process.
    const { sent: _, ...outage } = outcome;
    return outage;
  }

  /** The store calls a place that no caller here stands at: what it was given is for the next in line. */
  passOn(to: string): void {
    const lease = this.#leftBehind.take(tailOf(to) || to);
    if (lease === undefined) return;
    void this.leave(lease, { id: lease.token, ttlMs: lease.ttlMs });
  }
}

/** Places that were left. The store may have called them before, or write them again: a request without a reply may be late. */
class LeftBehind {
  readonly #byTail = new Map<string, LeaseRequest>();

  remember(lease: LeaseRequest): void {
    const [oldest] = this.#byTail.keys();
    if (oldest !== undefined && this.#byTail.size >= MOST_LEFT_BEHIND) this.#byTail.delete(oldest);
    this.#byTail.set(tailOf(lease.token), lease);
  }

  take(tail: string): LeaseRequest | undefined {
    const lease = this.#byTail.get(tail);
    this.#byTail.delete(tail);
    return lease;
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
