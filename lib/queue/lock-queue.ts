import {
  LockNotAcquiredError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  type HeldHere,
} from '../errors.js';
import { BriefMap } from '../collections/brief-map.js';
import { RecentMap } from '../collections/recent-map.js';
import { Lease } from '../lease/lease.js';
import type { Successors } from '../lease/lease-keeper.js';
import type { LockRequest } from '../lease/lock-request.js';
import type { Held, LineCall, Unavailable } from '../store/lock-store.js';
import type { HoldTerms } from '../store/owner-token.js';
import type { Instant } from '../time/clock.js';
import { Caller, type CallerDependencies, type IsHeldAround, type RefusedCall } from './caller.js';
import { Contention } from './contention.js';
import { LastHour } from './last-hour.js';
import { ReleaseSubscription, type ReleaseHandler } from './release-subscription.js';
import { LockRequests, type QueueFoundation } from './requests.js';
import { contendedPauseMs, isContended } from './line-sleep.js';
import { WaitingLine, type LineDependencies } from './waiting-line.js';

/** At most this many keys are remembered as slow. */
const MOST_SLOW = 1_000;

/** How often a call that does not wait tries when several asked at once and none was granted the lock. */
const CONTENDED_TRIES = 4;

/**
 * Asks the store for locks, and lets callers wait for them. All callers of this process that wait for the same keys stand in
 * one line, first in first out, and only the first of them asks the store.
 */
export class LockQueue implements Successors, ReleaseHandler {
  /** Which keys were waited for, and refused. */
  readonly contention: Contention;
  readonly lastHour = new LastHour();
  readonly #deps: QueueFoundation;
  /** Asks the store. */
  readonly requests: LockRequests;
  readonly #forCallers: CallerDependencies;
  /** What all lines need. */
  readonly #forLines: LineDependencies;
  /** The lines that want a key: one for each combination of keys, mode and places. */
  readonly #lines = new BriefMap<string, readonly WaitingLine[]>();
  #state: 'open' | 'no-waiting' | 'closed' = 'open';
  readonly #closing = new AbortController();

  constructor(dependencies: QueueFoundation) {
    this.#deps = dependencies;
    const { store, scheduler, keeper } = dependencies;
    this.contention = new Contention(scheduler.runtime);
    this.requests = new LockRequests(dependencies);
    this.#forCallers = {
      ...dependencies,
      contention: this.contention,
      refusal: (...facts) => this.#refusal(...facts),
    };
    this.#forLines = {
      ...dependencies,
      requests: this.requests,
      releases: new ReleaseSubscription(store, scheduler.runtime, this),
      slow: new RecentMap(MOST_SLOW),
      isWantedInside: (keys, busy) =>
        keys.some((key) => this.waitingFor(key).some((caller) => caller.isHeldAround(busy))),
      dissolve: (line) => {
        this.#dissolve(line);
      },
    };
    keeper.isFollowedBy(this);
  }

  /** Resolves with the lease, or rejects with the refusal, the outage, the closing or the signal's reason. */
  acquire(request: LockRequest, isHeldAround: IsHeldAround, since: Instant): Promise<Lease> {
    const { signal } = request;
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    if (this.#state === 'closed') return Promise.reject(new LockServiceClosedError(request.keys));
    if (request.options.waitMs > 0 && this.#state === 'open')
      return this.#wait(request, isHeldAround, since);
    return this.requests.pending.add(this.#tryOnce(request, isHeldAround));
  }

  /** Subscribes to calls before any caller waits. Resolves with whether they are received. */
  listen(): Promise<boolean> {
    return this.#forLines.releases.open();
  }

  /** The callers that wait for a key, line by line, in the order of each line. */
  waitingFor(key: string): readonly Caller[] {
    return this.#linesFor(key).flatMap(({ callers }) => callers);
  }

  /** All callers that wait. */
  get waiting(): readonly Caller[] {
    const lines = new Set([...this.#lines.values()].flat());
    return [...lines].flatMap(({ callers }) => callers);
  }

  /** The keys were released, or may have been: lines that wait for one of them ask the store again. */
  wake(keys: readonly string[]): void {
    if (this.#lines.size === 0) return;
    for (const key of keys) for (const line of this.#linesFor(key)) line.wake();
  }

  /**
   * Passes a lease that a caller of this process releases to the next caller here that waits for the same keys, within
   * the bounds of a tenure. Returns whether it did.
   */
  passOn(lease: Lease, now: Instant): boolean {
    if (this.#lines.size === 0 || this.#state !== 'open') return false;
    const { keys, mode } = lease;
    const line = this.#lineOf(keys, nameOf(keys, lease.request.options));
    // Callers that want another number of places came before some of that line, and the store knows which is next.
    if (
      mode.startsWith('limit') &&
      keys.some((key) => this.#linesFor(key).some((other) => other !== line))
    )
      return false;
    return line?.passOn(lease, now) ?? false;
  }

  called(key: string, call: LineCall): void {
    let isKnown = false;
    for (const line of this.#linesFor(key)) isKnown = line.called(call) || isKnown;
    if (!isKnown && call.inMs === 0) this.requests.passOn(call.to);
  }

  lookAll(): void {
    for (const lines of this.#lines.values()) for (const line of lines) line.look();
  }

  /** Rejects all waiting calls, and every later call that would have to wait. */
  refuseWaiting(): void {
    if (this.#state === 'open') this.#state = 'no-waiting';
    for (const lines of this.#lines.values())
      for (const line of lines) line.sendAway((keys) => new LockServiceClosedError(keys));
  }

  /** Aborts when the queue grants nothing any more. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** The queue grants nothing any more. */
  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** Grants nothing any more. */
  close(): void {
    this.refuseWaiting();
    this.#state = 'closed';
    this.#closing.abort();
  }

  /** Resolves when no request for a lock is on its way, no line is left, and nothing of them in the store. */
  settled(): Promise<void> {
    return this.requests.pending.settled();
  }

  async #tryOnce(request: LockRequest, isHeldAround: IsHeldAround): Promise<Lease> {
    let outcome = await this.requests.attempt(request);
    for (let tries = 1; isContended(outcome) && tries < CONTENDED_TRIES; tries += 1) {
      await this.#pause(contendedPauseMs(tries, this.#deps.scheduler.runtime));
      if (!this.#isOpenTo(request)) break;
      outcome = await this.requests.attempt(request, { splits: tries });
    }
    const isOpen = this.#isOpenTo(request);
    if (outcome instanceof Lease) {
      if (isOpen) return this.#deps.keeper.adopt(outcome, request);
      this.requests.giveBack(outcome);
    } else if (isOpen || outcome.status === 'unavailable')
      throw this.#refusal({ request, waitedMs: 0, isHeldAround }, outcome);
    request.signal?.throwIfAborted();
    throw new LockServiceClosedError(request.keys);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#deps.scheduler.schedule(ms, resolve));
  }

  #now(): Instant {
    return this.#deps.scheduler.runtime.now();
  }

  #isOpenTo(request: LockRequest): boolean {
    return this.#state !== 'closed' && request.signal?.aborted !== true;
  }

  #wait(request: LockRequest, isHeldAround: IsHeldAround, since: Instant): Promise<Lease> {
    const caller = new Caller(request, this.#forCallers, isHeldAround, since);
    const { keys } = request;
    for (const key of keys)
      for (const other of this.#linesFor(key)) other.giveBackTo(keys, isHeldAround);
    const name = nameOf(keys, request.options);
    const line = this.#lineOf(keys, name);
    if (line !== undefined) line.join(caller);
    else this.#open(name, keys, caller);
    return caller.granted;
  }

  /** What a refusal by the store is called. */
  #refusal(
    { request: { keys }, waitedMs, isHeldAround }: RefusedCall,
    outcome: Held | Unavailable,
  ): Error {
    if (outcome.status === 'unavailable')
      return new LockStoreUnavailableError({ operation: 'acquire', keys, nodes: outcome.nodes });
    this.contention.refused(keys);
    this.lastHour.refused(this.#now());
    const { remainingMs: retryAfterMs } = outcome;
    const heldHere = this.#heldHere(outcome, isHeldAround);
    return new LockNotAcquiredError({ keys, retryAfterMs, waitedMs, heldHere });
  }

  /** What is known of a holder that is a caller of this service itself. */
  #heldHere({ key, holder }: Held, isHeldAround: IsHeldAround): HeldHere | undefined {
    const lease = this.#deps.keeper.holderOf(key);
    if (lease === undefined) return undefined;
    const isAnother = holder !== undefined && holder !== lease.token;
    if (isAnother && lease.mode === 'exclusive') return undefined;
    const heldMs = lease.heldForMs(this.#now());
    return { heldMs, place: lease.request.site?.place, isAround: isHeldAround(key) };
  }

  #linesFor(key: string): readonly WaitingLine[] {
    return this.#lines.get(key) ?? NO_LINES;
  }

  #lineOf([key = '']: readonly string[], name: string): WaitingLine | undefined {
    return this.#linesFor(key).find((line) => line.name === name);
  }

  #open(name: string, keys: readonly string[], first: Caller): void {
    const line = new WaitingLine(name, keys, this.#forLines);
    for (const key of keys) {
      const others = this.#lines.get(key);
      this.#lines.set(key, others === undefined ? [line] : [...others, line]);
    }
    line.join(first);
    line.serve();
  }

  #dissolve(line: WaitingLine): void {
    for (const key of line.keys) {
      const lines = this.#linesFor(key);
      if (lines.length === 1) this.#lines.delete(key);
      else
        this.#lines.set(
          key,
          lines.filter((each) => each !== line),
        );
    }
  }
}

const NO_LINES: readonly WaitingLine[] = [];

/** The name of the line of callers that want the same. */
function nameOf(keys: readonly string[], { mode, places }: Required<HoldTerms>): string {
  const name = keys.length === 1 ? (keys[0] ?? '') : keys.join('\0');
  if (mode === 'exclusive') return name;
  return places === 1 ? `${name}\0\0${mode}` : `${name}\0\0${mode}\0${String(places)}`;
}
