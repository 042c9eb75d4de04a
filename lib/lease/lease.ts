import {
  LockLostError,
  LockStoreUnavailableError,
  type Intervention,
  type LockLossReason,
  type LockLostReason,
  type NodeFailure,
} from '../errors.js';
import type { Chain, Linked } from '../collections/chain.js';
import type { HoldContext, LockSubject } from '../observe/contexts.js';
import type { Granted, LeaseReference } from '../store/lock-store.js';
import type { DueTask } from '../time/scheduler.js';
import { lockNameOf, type LockRequest } from './lock-request.js';
import type { HoldMode } from '../store/owner-token.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import type { Foundation } from './foundation.js';

/** One process's unbroken ownership of keys in the store, while turns pass between its own callers. */
export class Tenure {
  readonly since: Instant;
  /** Whether callers of other processes wait for the keys, or may. */
  othersWait: boolean;
  /** The turn that is being taken. */
  current: Lease;
  /** Turns that were taken, this one too. */
  turns = 1;
  /** When the event loop last continued, as far as is known. */
  yieldedAt: Instant;
  /** How many writes the store may still carry out. All turns have one owner token, so it cannot refuse those of an earlier one. */
  writes = 0;
  readonly #granted: Granted;

  constructor(first: Lease, granted: Granted, now: Instant) {
    this.current = first;
    this.since = now;
    this.yieldedAt = now;
    this.othersWait = granted.othersWait ?? true;
    this.#granted = granted;
  }

  /** Whether the store knows the last token that was used, and nothing else has to be done at the end. */
  get isPlain(): boolean {
    return this.#granted.isPlain === true && this.turns === 1;
  }

  /**
   * The fencing token of one more turn, if there is one. Holders of a key together have the same one, and so do their
   * turns. A turn has the token of the turn before, and one more, and there are fewer turns than µs since the grant. So the
   * clock is past these tokens when the key is granted again, even if the store does not know them then.
   */
  nextToken(now: Instant): number | undefined {
    const { mode, fencingToken } = this.current;
    if (mode !== 'exclusive') return fencingToken;
    const usSince = (now.monotonicMs - this.since.monotonicMs) * 1_000;
    const isPast = this.#granted.isFromClock === true && this.turns <= usSince / 2;
    return isPast ? fencingToken + 1 : undefined;
  }
}

/**
 * In `'jeopardy'`, a renewal failed or is late; the lease is still held until the deadline. In `'detached'`, it can be
 * attached, here or in another process.
 */
export type LeaseStatus = 'held' | 'jeopardy' | 'released' | 'detached' | 'lost';

/** How the store was asked. */
export interface StoreCall {
  readonly token: string;
  /** When the request was sent: validity counts from here (Redlock, "safety arguments"). */
  readonly sentAt: Instant;
}

/** The controllers of signals that their leases no longer keep. */
const controllers = new WeakMap<AbortSignal, AbortController>();

/** The fencing token of a lock that has none: one of a driver, which `DriverLockService` types so. */
const NONE = undefined as unknown as number;

/**
 * Ownership as this process knows it: held → jeopardy → held again, until it is released or lost. It keeps time and state; renewing and
 * ending it is the keeper's work.
 */
export class Lease implements LeaseReference, Linked<Lease> {
  /** The keeper's: the leases on their way back to the store. */
  chain: Chain<Lease> | undefined;
  before: Lease | undefined;
  after: Lease | undefined;
  readonly keys: readonly string[];
  readonly token: string;
  readonly fencingToken: number;
  readonly heldSince: Instant;
  /** When the store replied, or the turn before ended. */
  readonly grantedAt: Instant;
  /** The call that holds it. */
  request: LockRequest;
  readonly tenure: Tenure;
  readonly #foundation: Foundation;
  /** The TTL in force. */
  ttlMs: number;
  /** The longest TTL that may be in force in the store: of what it confirmed last, and of what was sent since. */
  longestTtlMs: number;
  #sentAt: Instant;
  #status: LeaseStatus = 'held';
  #loss:
    | { readonly reason: LockLossReason; readonly intervention: Intervention | undefined }
    | undefined;
  #abort: AbortController | undefined;
  /** In its place, while only the code that has the signal keeps it. */
  #looseAbort: WeakRef<AbortController> | undefined;
  /** Whether it is renewed for as long as it is held. Otherwise it is renewed by hand only. */
  isRenewed: boolean;

  /** The keeper's: the next look at this lease. */
  look: DueTask | undefined;
  /** The keeper's: the renewal that is on its way, if any. */
  renewing: Promise<unknown> | undefined;
  /** What diagnostics channels publish of it while they have subscribers. */
  hold: HoldContext | undefined;
  /** What is published of the turn before. */
  follows: HoldContext | undefined;
  /** The keeper's: the operator that ended it on its way back to the store. */
  endedBy: Intervention | undefined;
  /** The keeper's: called when the work of a holder that was replaced has ended. */
  onDone: (() => void) | undefined;
  /** The handle, until that is watched for being forgotten. */
  unwatched: object | undefined;
  /** The keeper's: the release that was asked for, if any. */
  releasing: Promise<boolean> | undefined;

  /** @param previous the turn before, under the same lease of the store */
  constructor(
    request: LockRequest,
    { token, sentAt }: StoreCall,
    granted: Granted,
    now: Instant,
    foundation: Foundation,
    previous?: Lease,
  ) {
    const { ttlMs, autoExtend } = request.options;
    this.keys = request.keys;
    this.token = token;
    this.fencingToken = granted.fencingToken;
    this.heldSince = previous === undefined ? sentAt : now;
    this.tenure = previous?.tenure ?? new Tenure(this, granted, now);
    this.grantedAt = now;
    this.request = request;
    this.isRenewed = autoExtend;
    this.ttlMs = ttlMs;
    this.longestTtlMs = previous?.longestTtlMs ?? ttlMs;
    this.#sentAt = sentAt;
    this.renewing = previous?.renewing;
    this.#foundation = foundation;
  }

  /** The fencing token as callers see it. */
  get shownToken(): number {
    return this.fencingToken === 0 ? NONE : this.fencingToken;
  }

  /** How its keys are held. */
  get mode(): HoldMode {
    return this.request.options.mode;
  }

  /** For events and traces: built when a subscriber exists. */
  get subject(): LockSubject & { readonly fencingToken: number } {
    return { ...this.request.subject, fencingToken: this.shownToken };
  }

  /** The next turn: a lock of its own, with what is left of the validity. */
  passOn(request: LockRequest, now: Instant): Lease {
    const { token, tenure } = this;
    const fencingToken = tenure.nextToken(now) ?? this.fencingToken;
    const asked = { token, sentAt: this.#sentAt };
    const granted = { status: 'granted', fencingToken } as const;
    const turn = new Lease(request, asked, granted, now, this.#foundation, this);
    // From here on the renewal belongs to the new turn: no code reads it from this lease any more.
    this.renewing = undefined;
    tenure.current = turn;
    tenure.turns += 1;
    return turn;
  }

  /** Since the request was sent that the validity counts from. */
  sinceSentMs(now: Instant): number {
    return elapsedMs(this.#sentAt, now);
  }

  /** How much of the TTL that is in force may be relied on. */
  get fullValidityMs(): number {
    return this.#validityMs(this.ttlMs);
  }

  get status(): LeaseStatus {
    return this.#status;
  }

  /** Released, detached or lost. */
  get isOver(): boolean {
    return this.#status !== 'held' && this.#status !== 'jeopardy';
  }

  /** What is left of the validity by the clocks, whatever the state; may be negative. */
  get validForMs(): number {
    return this.validForMsAt(this.#now());
  }

  validForMsAt(now: Instant): number {
    return this.fullValidityMs - elapsedMs(this.#sentAt, now);
  }

  /** Until it is over unless it is renewed, or has been held for long enough. */
  endsInMs(now: Instant): number {
    return Math.min(
      this.validForMsAt(now),
      this.request.options.maxHoldMs - elapsedMs(this.heldSince, now),
    );
  }

  /**
   * For how long the store has to keep the keys taken if the lease ends now; 0: not at all. By the monotonic clock: a
   * step forward of the wall clock must not shorten it.
   */
  get keepMs(): number {
    if (this.request.endsWhenDone) return 0;
    const { release } = this.request.options;
    return Math.ceil(Math.max(this.minHoldLeftMs, release === 'on-expiry' ? this.ttlMs : 0));
  }

  /** What is left of the time for which the keys stay taken at the least. */
  get minHoldLeftMs(): number {
    const heldMs = this.#now().monotonicMs - this.grantedAt.monotonicMs;
    return Math.max(0, this.request.options.minHoldMs - heldMs);
  }

  heldForMs(now: Instant): number {
    return elapsedMs(this.heldSince, now);
  }

  /**
   * Created when first asked for: most locks never need one. It compares the clocks, so it is aborted even before the
   * timer that the event loop owes it.
   */
  get signal(): AbortSignal {
    this.#abort ??= this.#looseAbort?.deref() ?? new AbortController();
    const loss = this.lossAt(this.#now());
    if (loss !== undefined) this.#abortAs(loss);
    return this.#abort.signal;
  }

  /** The signal, if one was given out and still exists. */
  get givenSignal(): AbortSignal | undefined {
    return (this.#abort ?? this.#looseAbort?.deref())?.signal;
  }

  /** From here on, the signal lives only as long as other code refers to it. */
  loosenSignal(): void {
    if (this.#abort === undefined) return;
    controllers.set(this.#abort.signal, this.#abort);
    this.#looseAbort = new WeakRef(this.#abort);
    this.#abort = undefined;
  }

  /** The operator that ended it, if one did. */
  get intervention(): Intervention | undefined {
    return this.#loss?.intervention;
  }

  /** Why it was lost, by state or by the clocks; `undefined` while it is held, and of one that was released or detached. */
  lossAt(now: Instant): LockLossReason | undefined {
    if (this.#loss !== undefined) return this.#loss.reason;
    if (this.isOver || this.validForMsAt(now) > 0) return undefined;
    return this.#status === 'jeopardy' ? 'store-unavailable' : 'expired';
  }

  /** Whether it protects anything now, by state and by the clocks. */
  get isHeld(): boolean {
    return this.notHeldReason === undefined;
  }

  /** Why this lease protects nothing any more; `undefined` while it is held. */
  get notHeldReason(): LockLostReason | undefined {
    const status = this.#status;
    return status === 'released' || status === 'detached' ? status : this.lossAt(this.#now());
  }

  /** @throws LockLostError unless it is held now */
  assertHeld(): void {
    const { notHeldReason: reason } = this;
    if (reason !== undefined) throw this.lossError(reason);
  }

  /**
   * A renewal is sent. The store may carry it out without a reply. A shorter TTL counts at once, a longer one for the
   * clean-up.
   */
  renewalSent(sentAt: Instant, ttlMs: number): void {
    this.longestTtlMs = Math.max(this.longestTtlMs, ttlMs);
    if (this.#validityMs(ttlMs) >= this.validForMsAt(sentAt)) return;
    this.#sentAt = sentAt;
    this.ttlMs = ttlMs;
  }

  renewed(sentAt: Instant, ttlMs: number): void {
    this.#sentAt = sentAt;
    this.ttlMs = ttlMs;
    this.longestTtlMs = ttlMs;
    this.#status = 'held';
  }

  /** A renewal failed. */
  endanger(): void {
    this.#status = 'jeopardy';
  }

  /** The lease is over. After `'detached'`, the process that attaches it holds the keys. */
  end(status: 'released' | 'detached' | 'lost'): void {
    this.#status = status;
    this.look?.cancel();
  }

  lose(reason: LockLossReason, intervention?: Intervention): void {
    this.#loss = { reason, intervention };
    this.end('lost');
    this.#abortAs(reason);
  }

  /** What messages call it. */
  get lockName(): string | undefined {
    return lockNameOf(this.request.origin);
  }

  /** The error of a loss. */
  lossError(reason: LockLostReason): LockLostError {
    return this.#foundation.present(this.loss(reason));
  }

  /** As `lossError`, as traces have it: without what the `errors` option adds. */
  loss(reason: LockLostReason): LockLostError {
    const { keys, shownToken: fencingToken, lockName: lock } = this;
    const intervention = this.#loss?.intervention;
    return new LockLostError({ keys, fencingToken, reason, intervention, lock });
  }

  /** The error of a request about it that the store did not confirm. */
  outageError(operation: string, nodes: readonly NodeFailure[]): LockStoreUnavailableError {
    const { keys, lockName: lock } = this;
    return this.#foundation.present(
      new LockStoreUnavailableError({ operation, keys, nodes, lock }),
    );
  }

  /**
   * How much of a TTL may be relied on: clocks of client and server run at different speeds. The fraction is an option, the
   * 2 ms are what Redis' expiry resolution and small TTLs need (redis.io, "Distributed locks with Redis").
   */
  #validityMs(ttlMs: number): number {
    return ttlMs - ttlMs * this.#foundation.options.clockDrift - 2;
  }

  #now(): Instant {
    return this.#foundation.scheduler.runtime.now();
  }

  #abortAs(reason: LockLossReason): void {
    const abort = this.#abort ?? this.#looseAbort?.deref();
    if (abort === undefined || abort.signal.aborted) return;
    abort.abort(this.lossError(reason));
  }
}
