import {
  LockConfigurationError,
  LockStoreUnavailableError,
  type LockLostReason,
} from '../errors.js';
import type { LockEventHub } from '../observe/lock-events.js';
import type { Duration } from '../options/duration.js';
import type { ExtendOutcome, LeaseReference, LockStore } from '../store/lock-store.js';
import { SLOT_MS, type Scheduler } from '../time/scheduler.js';
import { CleanUp } from '../store/clean-up.js';
import type { Instant } from '../time/clock.js';
import type { Runtime } from '../time/runtime.js';
import { Lease, type Grant, type HoldingOptions } from './lease.js';
import { PendingTasks } from '../time/pending-tasks.js';

/**
 * Renewal at a third of the TTL leaves time for two more tries; jitter keeps many processes from doing it in step. The scheduler
 * comes up to a slot early: with that added, no TTL sees more than four renewals.
 */
const renewalDelayMs = (ttlMs: number, runtime: Runtime): number =>
  (ttlMs / 3) * (0.9 + runtime.random() * 0.1) + SLOT_MS;

/** After a failed renewal. */
const retryDelayMs = (ttlMs: number): number => ttlMs / 4 + SLOT_MS;

interface Dependencies {
  readonly store: LockStore;
  readonly runtime: Runtime;
  readonly scheduler: Scheduler;
  readonly events: LockEventHub;
  readonly clockDrift: number;
  /** @throws LockConfigurationError */
  readonly ttlToMs: (ttl: Duration) => number;
  /** Gives a lease that ended to the next caller of this process who waits for it; answers whether there was one. */
  readonly passOn: (lease: Lease) => boolean;
  /** Applied to every error that leaves. */
  readonly present: <E>(error: E) => E;
  /** Told the keys of every lease that ends here, so that callers in line in this process look again at once. */
  readonly onEnd: (keys: readonly string[]) => void;
  /** Told of releases that the store did not confirm, so that none of them goes unseen. */
  readonly onReleaseFailed: (error: LockStoreUnavailableError) => void;
}

/**
 * Keeps all leases of a service: renews them in batches, ends them at their deadline, gives them back, and cleans up what an
 * unanswered request may have left in the store. One scheduler, so one timer, however many leases.
 */
export class LeaseKeeper {
  readonly #deps: Dependencies;
  /** By token. */
  readonly #leases = new Map<string, Lease>();
  /** By key; of several that hold it together, the one that came last. */
  readonly #holders = new Map<string, Lease>();
  readonly #cleanUp: CleanUp;
  /** Releases that somebody waits for. */
  readonly #endings = new PendingTasks();
  #due: Lease[] = [];
  #whenIdle: (() => void)[] = [];

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
    const { store, runtime, scheduler, onEnd } = dependencies;
    this.#cleanUp = new CleanUp({ store, runtime, scheduler, onRemoved: onEnd });
  }

  adopt(grant: Grant, options: HoldingOptions): Lease {
    const { runtime, clockDrift } = this.#deps;
    const now = runtime.now();
    const lease = new Lease(grant, options, runtime, clockDrift, now);
    this.#add(lease);
    this.#plan(lease, renewalDelayMs(lease.ttlMs, runtime), now);
    return lease;
  }

  /** The next turn under a lease whose holder has given it back. */
  takeTurn(lease: Lease, options: HoldingOptions): Lease {
    const { runtime } = this.#deps;
    const now = runtime.now();
    const turn = lease.passOn(options, now);
    this.#add(turn);
    this.#plan(turn, renewalDelayMs(turn.ttlMs, runtime) - turn.sinceSentMs(now), now);
    return turn;
  }

  /** Whether this token is a lease of this service. */
  holds(token: string): boolean {
    return this.#leases.has(token);
  }

  /** The lease of this service that a key is held under, if it is. */
  holderOf(key: string): Lease | undefined {
    return this.#holders.get(key);
  }

  /** Those that have not ended, the oldest first. */
  get held(): readonly Lease[] {
    return [...this.#leases.values()];
  }

  /** Renews one lease now. */
  async extend(lease: Lease, ttl?: Duration): Promise<void> {
    const ttlMs = ttl === undefined ? lease.ttlMs : this.#deps.ttlToMs(ttl);
    this.#throwIfLost(lease);
    refuseBelowMinHold(lease, ttlMs);
    // One at a time: the answers of two could come in another order than the store did what they say.
    while (lease.renewing !== undefined) await lease.renewing;
    this.#throwIfLost(lease);
    const [outcome] = await this.#send([lease], ttlMs);
    this.#throwIfLost(lease);
    if (outcome?.status !== 'unavailable') return;
    const { keys } = lease;
    throw this.#deps.present(
      new LockStoreUnavailableError({ operation: 'extend', keys, nodes: outcome.nodes }),
    );
  }

  /** Throws unless the lease is held now. */
  assertHeld(lease: Lease): void {
    const error = lease.lostError();
    if (error !== undefined) throw this.#deps.present(error);
  }

  release(lease: Lease): Promise<boolean> {
    lease.releasing ??= this.#release(lease);
    return lease.releasing;
  }

  /**
   * Removes what a request whose answer is unknown may have left, or may yet leave, in the store. Goes out at once, ahead of the
   * next attempt, and again, in the rounds of the clean-up, until the store says that it is not there or `ttlMs` have passed.
   *
   * @param keepMs for so long from now the keys are to stay taken
   */
  discard(lease: LeaseReference, ttlMs: number, keepMs = 0): void {
    const { keys, token } = lease;
    this.#cleanUp.add({ keys, token, ttlMs }, keepMs);
  }

  /** Resolves when no lease is held and no release is on its way. */
  async drained(): Promise<void> {
    while (this.#leases.size > 0) {
      await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
    }
    await this.#endings.settled();
  }

  /** Ends the lease of a key as if the store had said so. Answers whether there was one. */
  loseKey(key: string, reason: LockLostReason): boolean {
    const lease = [...this.#leases.values()].find(({ keys }) => keys.includes(key));
    if (lease !== undefined) this.#lose(lease, reason);
    return lease !== undefined;
  }

  /** Ends all leases, at once: their holders are told, and the store is. */
  endAll(reason: LockLostReason): void {
    for (const lease of [...this.#leases.values()]) this.#lose(lease, reason);
  }

  /** Of how many leases that are over the store has not confirmed it yet. */
  get unconfirmed(): number {
    return this.#cleanUp.size;
  }

  /** Resolves when no release is on its way and the last round of the clean-up is over. */
  async finish(): Promise<void> {
    await this.#endings.settled();
    await this.#cleanUp.finish();
  }

  /** Sends nothing any more. */
  close(): void {
    this.#cleanUp.close();
  }

  #release(lease: Lease): Promise<boolean> {
    if (lease.state.status === 'lost') return Promise.resolve(false);
    const now = this.#deps.runtime.now();
    const lostReason = lease.lostReasonAt(now);
    if (lostReason !== undefined) {
      this.#lose(lease, lostReason);
      return Promise.resolve(false);
    }
    const heldMs = Math.round(lease.heldForMs(now));
    const isSure = lease.state.status === 'held';
    this.#end(lease, 'released');
    if (!isSure || lease.keepMs > 0 || !this.#deps.passOn(lease))
      return this.#endings.add(this.#giveBack(lease, heldMs));
    const { keys, fencingToken } = lease;
    this.#deps.events.emit('released', { keys, fencingToken, heldMs });
    return Promise.resolve(true);
  }

  async #giveBack(lease: Lease, heldMs: number): Promise<boolean> {
    const { keys, token, longestTtlMs: ttlMs, fencingToken } = lease;
    const { store, events } = this.#deps;
    let outcome = await store.release({ keys, token, ttlMs }, fencingToken, lease.keepMs);
    // What never left this process was waited for by the store as long as it may.
    if (outcome.status === 'unavailable' && outcome.sent !== false && lease.validForMs > 0) {
      outcome = await store.release({ keys, token, ttlMs }, fencingToken, lease.keepMs);
      // Nobody else could have removed it while it was valid: the first request did, only its answer was lost.
      if (outcome.status === 'not-held' && lease.validForMs > 0) outcome = { status: 'released' };
    }
    this.#deps.onEnd(keys);
    if (outcome.status === 'released') {
      events.emit('released', { keys, fencingToken, heldMs });
      return true;
    }
    if (outcome.status === 'not-held') {
      // Lost before, only nobody had noticed.
      lease.end('released-elsewhere');
      events.emit('lost', { keys, fencingToken, reason: 'released-elsewhere' });
      return false;
    }
    this.discard(lease, ttlMs, lease.keepMs);
    const { nodes } = outcome;
    const failure = new LockStoreUnavailableError({ operation: 'release', keys, nodes });
    const error = this.#deps.present(failure);
    this.#deps.onReleaseFailed(error);
    throw error;
  }

  #plan(lease: Lease, delayMs: number, now = this.#deps.runtime.now()): void {
    let dueMs = lease.endsInMs(now);
    if (lease.options.autoExtend && lease.renewing === undefined) dueMs = Math.min(dueMs, delayMs);
    lease.task?.cancel();
    const onDue = (): void => {
      this.#onDue(lease);
    };
    lease.task = this.#deps.scheduler.schedule(dueMs, onDue, now);
  }

  #onDue(lease: Lease): void {
    lease.task = undefined;
    if (lease.options.maxHoldMs - lease.heldForMs(this.#deps.runtime.now()) <= SLOT_MS)
      this.#lose(lease, 'max-hold');
    else if (lease.validForMs <= SLOT_MS) {
      const silent = lease.renewing !== undefined || lease.state.status === 'jeopardy';
      this.#lose(lease, silent ? 'store-unavailable' : 'expired');
    } else if (!lease.options.autoExtend || lease.renewing !== undefined)
      this.#plan(lease, Infinity);
    else {
      // No queueMicrotask: the fake timers of a test hold that back.
      if (this.#due.length === 0) void Promise.resolve().then(() => this.#renewDue());
      this.#due.push(lease);
    }
  }

  #renewDue(): void {
    // A lease may have been released, or extended by hand, since it came up.
    const batch = this.#due.filter(
      ({ state, renewing }) => state.status !== 'lost' && renewing === undefined,
    );
    this.#due = [];
    if (batch.length > 0) void this.#send(batch);
  }

  /** Never rejects. */
  #send(batch: readonly Lease[], ttlMs?: number): Promise<readonly ExtendOutcome[]> {
    const sentAt = this.#deps.runtime.now();
    const requests = batch.map((lease) => ({
      keys: lease.keys,
      token: lease.token,
      ttlMs: ttlMs ?? lease.ttlMs,
      fencingToken: lease.tenure.lastToken,
      validForMs: lease.validForMs,
    }));
    const renewal = this.#deps.store.extend(requests).then((outcomes) => {
      batch.forEach(({ tenure }, index) => {
        // It may have been passed on meanwhile.
        const lease = tenure.current;
        lease.renewing = undefined;
        const [request, outcome] = [requests[index], outcomes[index]];
        if (request && outcome) this.#settle(lease, outcome, sentAt, request.ttlMs);
      });
      return outcomes;
    });
    for (const lease of batch) {
      lease.renewing = renewal;
      lease.renewalSent(sentAt, ttlMs ?? lease.ttlMs);
      this.#plan(lease, Infinity);
    }
    return renewal;
  }

  #settle(lease: Lease, outcome: ExtendOutcome, sentAt: Instant, ttlMs: number): void {
    if (lease.state.status === 'lost') return;
    // An answer that comes after the old deadline revives nothing: somebody else may have held the lock in between.
    if (lease.validForMs <= 0) this.#lose(lease, 'store-unavailable');
    else if (outcome.status === 'lost') this.#lose(lease, outcome.reason);
    else if (outcome.status === 'extended') {
      lease.renewed(sentAt, ttlMs);
      this.#plan(lease, renewalDelayMs(ttlMs, this.#deps.runtime));
    } else {
      lease.endanger();
      this.#plan(lease, retryDelayMs(lease.ttlMs));
    }
  }

  #throwIfLost(lease: Lease): void {
    const reason = lease.lostReason;
    if (reason !== undefined && lease.state.status !== 'lost') this.#lose(lease, reason);
    this.assertHeld(lease);
  }

  #lose(lease: Lease, reason: LockLostReason): void {
    this.#end(lease, reason);
    // By the store's clock, through a renewal that is still on its way, or on others of its keys, our token may stand there yet.
    const gone = reason === 'stolen' || reason === 'released-elsewhere';
    if (!gone || lease.keys.length > 1) this.discard(lease, lease.longestTtlMs, lease.keepMs);
    const { keys, fencingToken } = lease;
    this.#deps.events.emit('lost', { keys, fencingToken, reason });
    this.#deps.onEnd(keys);
  }

  #add(lease: Lease): void {
    this.#leases.set(lease.token, lease);
    for (const key of lease.keys) this.#holders.set(key, lease);
  }

  #end(lease: Lease, reason: LockLostReason): void {
    lease.end(reason);
    this.#leases.delete(lease.token);
    for (const key of lease.keys) if (this.#holders.get(key) === lease) this.#holders.delete(key);
    if (this.#leases.size > 0) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }
}

/** A process that dies leaves the lock for its TTL: a shorter one would not cover what is left of `minHold`. */
function refuseBelowMinHold({ options: { minHoldMs } }: Lease, ttlMs: number): void {
  if (ttlMs >= minHoldMs) return;
  throw new LockConfigurationError(
    `extend(${String(ttlMs)}) is shorter than the lock's "minHold", ${String(minHoldMs)} ms: a process that dies leaves the lock for its ` +
      'TTL, and that must cover it.',
  );
}
