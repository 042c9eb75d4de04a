import type { LockLossReason, NodeFailure } from '../errors.js';
import type { ExtendOutcome } from '../store/lock-store.js';
import type { Instant } from '../time/clock.js';
import type { Runtime } from '../time/runtime.js';
import { DueTask, SLOT_MS, type Task } from '../time/scheduler.js';
import type { Foundation } from './foundation.js';
import type { Lease } from './lease.js';

/**
 * Renewal at a third of the TTL leaves time for two more tries; jitter keeps many processes from doing it in step. The scheduler
 * is up to a slot early: with that added, no TTL sees more than four renewals.
 */
const renewalDelayMs = (ttlMs: number, runtime: Runtime): number =>
  (ttlMs / 3) * (0.9 + runtime.random() * 0.1) + SLOT_MS;

/** A process that renews later than that did not run meanwhile, or could not reach the store. */
const STOOD_STILL_MS = 1_000;

/** After a failed renewal. */
const retryDelayMs = (validityMs: number): number => validityMs / 4 + SLOT_MS;

/** Renews leases in batches for as long as they are held, and sees when their time is over. */
export class Renewals {
  readonly #foundation: Foundation;
  readonly #lose: (lease: Lease, reason: LockLossReason) => void;
  #due: Lease[] = [];

  /** @param lose ends a lease whose time is over, or that the store reports as lost */
  constructor(foundation: Foundation, lose: (lease: Lease, reason: LockLossReason) => void) {
    this.#foundation = foundation;
    this.#lose = lose;
  }

  /** Plans the next renewal. Its time counts from the last request, as the TTL does: the reply may have been late. */
  add(lease: Lease, now: Instant): void {
    const delayMs = renewalDelayMs(lease.ttlMs, this.#foundation.scheduler.runtime);
    this.#plan(lease, delayMs - lease.sinceSentMs(now), now);
  }

  /** Renews one lease now, for `ttlMs`. */
  async extend(lease: Lease, ttlMs: number): Promise<ExtendOutcome | undefined> {
    return this.#send([lease], ttlMs)[0];
  }

  #plan(lease: Lease, delayMs: number, now = this.#foundation.scheduler.runtime.now()): void {
    lease.look?.cancel();
    lease.look ??= new DueTask(() => {
      this.#onDue(lease);
    });
    this.#foundation.scheduler.add(lease.look, this.#dueMs(lease, delayMs, now), now);
  }

  #dueMs(lease: Lease, delayMs: number, now: Instant): number {
    const isRenewed = lease.isRenewed && lease.renewing === undefined;
    // A timer counts the time of the monotonic clock, which stands still while the machine sleeps: the end may come before it.
    return Math.min(lease.endsInMs(now), isRenewed ? delayMs : lease.ttlMs / 3);
  }

  #onDue(lease: Lease): void {
    const now = this.#foundation.scheduler.runtime.now();
    if (lease.request.options.maxHoldMs - lease.heldForMs(now) <= SLOT_MS)
      this.#lose(lease, 'max-hold');
    else if (lease.validForMsAt(now) <= SLOT_MS) {
      const silent = lease.renewing !== undefined || lease.status === 'jeopardy';
      const reason = silent ? 'store-unavailable' : 'expired';
      if (lease.validForMsAt(now) > -SLOT_MS) this.#lose(lease, reason);
      else this.#loseLate(lease, reason);
    } else if (!lease.isRenewed || lease.renewing !== undefined) this.#plan(lease, Infinity, now);
    else {
      // No queueMicrotask: the fake timers of a test hold that back.
      if (this.#due.length === 0) void Promise.resolve().then(() => this.#renewDue());
      this.#due.push(lease);
    }
  }

  #renewDue(): void {
    // A lease may have been released, or extended by hand, since it was due.
    const batch = this.#due.filter((lease) => !lease.isOver && lease.renewing === undefined);
    this.#due = [];
    if (batch.length > 0) void this.#send(batch);
  }

  /** One renewal for each lease: none waits for the others. They never reject. */
  #send(batch: readonly Lease[], ttlMs?: number): readonly Promise<ExtendOutcome>[] {
    const { store, scheduler, recorder } = this.#foundation;
    const sentAt = scheduler.runtime.now();
    const requests = batch.map((lease) => ({
      keys: lease.keys,
      token: lease.token,
      ttlMs: ttlMs ?? lease.ttlMs,
      fencingToken: lease.tenure.current.fencingToken,
      validForMs: lease.validForMsAt(sentAt),
    }));
    const decisions: ((outcome: ExtendOutcome) => void)[] = [];
    let answerMs = Infinity;
    const renewals = batch.map((lease) => {
      const sentTtlMs = ttlMs ?? lease.ttlMs;
      const renewal = new Promise<ExtendOutcome>((decide) => decisions.push(decide)).then(
        (outcome) => {
          // The lease may have been passed on meanwhile.
          const { current } = lease.tenure;
          current.renewing = undefined;
          this.#settle(current, outcome, {
            sentAt,
            ttlMs: sentTtlMs,
            now: scheduler.runtime.now(),
          });
          return outcome;
        },
      );
      lease.renewing = renewal;
      lease.renewalSent(sentAt, sentTtlMs);
      lease.look?.cancel();
      answerMs = Math.min(answerMs, this.#dueMs(lease, Infinity, sentAt));
      return renewal;
    });
    const asked = recorder.renewal(batch, () =>
      store.extend(requests, (index, outcome) => decisions[index]?.(outcome)),
    );
    const late = this.#watch(batch, renewals, answerMs);
    void asked.then((outcomes) => {
      late.cancel();
      outcomes.forEach((outcome, index) => decisions[index]?.(outcome));
    });
    return renewals;
  }

  /** One scheduled task for the whole batch. Nearly always the replies arrive long before. */
  #watch(batch: readonly Lease[], renewals: readonly Promise<unknown>[], answerMs: number): Task {
    return this.#foundation.scheduler.schedule(answerMs, () => {
      batch.forEach(({ tenure: { current: lease } }, index) => {
        const isOpen = !lease.isOver && lease.renewing === renewals[index];
        if (isOpen && lease.look?.isPlanned !== true) this.#onDue(lease);
      });
    });
  }

  #settle(lease: Lease, outcome: ExtendOutcome, sent: Sent): void {
    if (lease.isOver) return;
    // A reply after the old deadline revives nothing: another caller may have held the lock in between.
    if (lease.validForMsAt(sent.now) <= 0) this.#lose(lease, 'store-unavailable');
    else if (outcome.status === 'lost') this.#lost(lease, outcome.reason, sent);
    else if (outcome.status === 'extended') {
      lease.renewed(sent.sentAt, sent.ttlMs);
      const { recorder } = this.#foundation;
      if (recorder.isHeard('renewed'))
        recorder.emit('renewed', lease, { remainingMs: remainingMs(lease, sent.now) });
      this.add(lease, sent.now);
    } else {
      this.#endanger(lease, outcome.nodes, sent.now);
      this.#plan(lease, retryDelayMs(lease.fullValidityMs), sent.now);
    }
  }

  /**
   * An operator that ended the lease sends the reason over another connection. After the process stood still, both
   * messages have arrived, and this one may be read first.
   */
  #lost(lease: Lease, reason: LockLossReason, { sentAt }: Pick<Sent, 'sentAt'>): void {
    const stoodStill = lease.sinceSentMs(sentAt) >= lease.ttlMs / 3 + STOOD_STILL_MS;
    if (stoodStill) this.#loseLate(lease, reason);
    else this.#lose(lease, reason);
  }

  /**
   * The process stood still, or was suspended: unread messages may name the operator that ended the lease, and the
   * reason.
   */
  #loseLate(lease: Lease, reason: LockLossReason): void {
    this.#foundation.scheduler.runtime.afterInput(() => {
      if (!lease.isOver) this.#lose(lease, reason);
    });
  }

  #endanger(lease: Lease, nodes: readonly NodeFailure[], now: Instant): void {
    const isNew = lease.status === 'held';
    lease.endanger();
    if (!isNew) return;
    const facts = { remainingMs: remainingMs(lease, now), nodes };
    this.#foundation.recorder.emit('jeopardy', lease, facts);
  }
}

const remainingMs = (lease: Lease, now: Instant): number =>
  Math.max(0, Math.floor(lease.validForMsAt(now)));

/** A renewal that was sent. */
interface Sent {
  readonly sentAt: Instant;
  readonly ttlMs: number;
  /** When it was answered. */
  readonly now: Instant;
}
