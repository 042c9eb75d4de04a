import {
  GuardedCommandError,
  LockConfigurationError,
  type Intervention,
  type LockLossReason,
  type NodeFailure,
} from '../errors.js';
import { BriefMap } from '../collections/brief-map.js';
import { Chain } from '../collections/chain.js';
import type { HoldEnd } from '../observe/recorder.js';
import type { Duration } from '../options/duration.js';
import { placeOf } from '../options/location.js';
import { needsOneRedis } from '../options/one-redis.js';
import { ttlToMs } from '../options/resolve-options.js';
import { CleanUp } from '../store/clean-up.js';
import type {
  Granted,
  LeaseReference,
  ReleaseOutcome,
  Unavailable,
  WriteCommand,
} from '../store/lock-store.js';
import { digestOf } from '../store/owner-token.js';
import { elapsedMs, within, type Instant } from '../time/clock.js';
import { PendingTasks } from '../time/pending-tasks.js';
import { toDetached } from './detached-lock.js';
import type { Foundation } from './foundation.js';
import { Lease, type StoreCall } from './lease.js';
import type { LockRequest } from './lock-request.js';
import { PastHolds } from './past-holds.js';
import { Renewals } from './renewals.js';

/** The callers after a lease, as far as the lease has to know them. */
export interface Successors {
  /**
   * Passes a lease that its holder releases to the next caller of this process that waits for it. Returns whether there
   * was one.
   */
  passOn(lease: Lease, now: Instant): boolean;
  /** The keys were released, or may have been. Callers that wait for one of them ask the store again. */
  wake(keys: readonly string[]): void;
}

/** A lease that an operator ends. */
export interface EndedLease {
  readonly key: string;
  /** The digest of its owner token (`digestOf`): only a client that may read the key in Redis can know it. */
  readonly digest: string;
  /** The fencing token that the operator saw; missing if it was unknown. */
  readonly fencingToken?: number | undefined;
}

/** `'passed-on'`: another caller of this process has the lease by now, with another fencing token. It keeps the lease. */
export type LeaseEnding = 'ended' | 'passed-on' | 'unknown';

/** A lease whose holder was replaced, and the end of its work. */
interface Replaced {
  readonly lease: Lease;
  readonly digest: string;
  /** When its signal has aborted. */
  readonly since: Instant;
  readonly done: Promise<void>;
}

const RELEASED = { status: 'released' } as const;

/**
 * Keeps all leases of a service. It has them renewed, ends them at their deadline and releases them. It cleans up what
 * an unanswered request may have left in the store. It has one scheduler, so one timer for all leases.
 */
export class LeaseKeeper {
  readonly #foundation: Foundation;
  /** The leases that have not ended, by their tokens. */
  readonly #leases = new BriefMap<string, Lease>();
  /** The lease of a key; if several hold it together, the one that came last. */
  readonly #byKey = new BriefMap<string, Lease>();
  /** The locks that were held last. */
  readonly past: PastHolds;
  readonly #renewals: Renewals;
  readonly #cleanUp: CleanUp;
  /** The leases that have not ended, for a shutdown. */
  readonly #held = new PendingTasks();
  /** Releases and other ends of leases that a shutdown waits for. */
  readonly #endings = new PendingTasks();
  #successors: Successors | undefined;
  /** On their way back to the store; an operator may end them meanwhile. */
  readonly #givenBack = new Chain<Lease>();
  /** The holders that were replaced, and whose work has not ended, by the digests of their tokens. */
  readonly #replaced = new Map<string, Replaced>();

  constructor(foundation: Foundation) {
    this.#foundation = foundation;
    this.past = new PastHolds(foundation.scheduler.runtime);
    this.#renewals = new Renewals(foundation, (lease, reason) => {
      this.lose(lease, reason);
    });
    const onRemoved = (keys: readonly string[]): void => this.#successors?.wake(keys);
    this.#cleanUp = new CleanUp({ ...foundation, onRemoved });
  }

  /** From here on, waiting callers are notified when a lease ends. */
  isFollowedBy(successors: Successors): void {
    this.#successors = successors;
  }

  /** The leases that have not ended, the oldest first. */
  get leases(): readonly Lease[] {
    return [...this.#leases.values()];
  }

  /** The lease of a key; if several hold it together, the one that came last. */
  holderOf(key: string): Lease | undefined {
    return this.#byKey.get(key);
  }

  /**
   * The lease that the store has granted. It has no holder before it is adopted.
   *
   * @param now when the store replied
   */
  granted(request: LockRequest, asked: StoreCall, granted: Granted, now: Instant): Lease {
    return new Lease(request, asked, granted, now, this.#foundation);
  }

  /** From here on a call holds the lease. */
  adopt(lease: Lease, request: LockRequest): Lease {
    lease.request = request;
    if (!this.#leases.has(lease.token)) this.#held.begin();
    this.#leases.set(lease.token, lease);
    for (const key of lease.keys) this.#byKey.set(key, lease);
    this.#renewals.add(lease, lease.grantedAt);
    return lease;
  }

  /** The next turn under a lease whose holder has released it. */
  takeTurn(lease: Lease, request: LockRequest, now: Instant): Lease {
    const turn = lease.passOn(request, now);
    turn.follows = lease.hold;
    this.#foundation.recorder.emit('handedOff', turn, { previousToken: lease.fencingToken });
    return this.adopt(turn, request);
  }

  /** Renews one lease now. */
  async extend(lease: Lease, ttl?: Duration): Promise<void> {
    const ttlMs = this.#ttlToMs(lease, ttl);
    this.#throwIfLost(lease);
    refuseBelowMinHold(lease, ttlMs);
    // One at a time: two replies could arrive in another order than that in which the store ran the requests.
    while (lease.renewing !== undefined) await lease.renewing;
    this.#throwIfLost(lease);
    const outcome = await this.#renewals.extend(lease, ttlMs);
    // The lease may be about to end, when what arrived meanwhile has been read.
    if (outcome?.status === 'lost' && !lease.isOver) await this.#inputIsRead();
    this.#throwIfLost(lease);
    if (outcome?.status === 'unavailable') throw lease.outageError('extend', outcome.nodes);
  }

  release(lease: Lease): Promise<boolean> {
    lease.onDone?.();
    lease.releasing ??= this.#release(lease);
    return lease.releasing;
  }

  /** Runs commands in one step with the check that the lease is held. */
  async write(lease: Lease, commands: readonly WriteCommand[]): Promise<readonly unknown[]> {
    const { store, options } = this.#foundation;
    needsOneRedis('guarded()', options.location);
    this.#throwIfLost(lease);
    const { keys, token, ttlMs, tenure } = lease;
    tenure.writes += 1;
    const outcome = await store.write({ keys, token, ttlMs, commands });
    if (outcome.status !== 'unavailable' || outcome.sent === false) tenure.writes -= 1;
    switch (outcome.status) {
      case 'written':
        return outcome.replies;
      case 'failed': {
        const [command = ''] = commands[outcome.index] ?? [];
        throw new GuardedCommandError({ ...outcome, command });
      }
      case 'refused':
        throw new LockConfigurationError(`guarded() was refused: ${outcome.problem}`);
      case 'unavailable':
        throw lease.outageError('write under', outcome.nodes);
      case 'lost':
        // The message of the operator that ended it may arrive over another connection.
        if (!lease.isOver) await this.#loseLate(lease, outcome.reason);
        throw lease.lossError(lease.notHeldReason ?? outcome.reason);
    }
  }

  /** Keeps the keys taken for the process that attaches the text with which this resolves. */
  detach(lease: Lease, ttl?: Duration): Promise<string> {
    return this.#endings.add(this.#detach(lease, ttl));
  }

  /**
   * Removes what a request without a reply may have left, or may yet leave, in the store. The removal is sent at once,
   * ahead of the next attempt. It is sent again in the rounds of the clean-up, until the store replies that nothing is
   * left or `ttlMs` have passed.
   *
   * @param keepMs for how many ms from now the keys are to stay taken
   * @param lastToken the last fencing token that was used, if it is known
   */
  discard(lease: LeaseReference, ttlMs: number, keepMs = 0, lastToken?: number): void {
    const { keys, token } = lease;
    this.#cleanUp.add({ keys, token, ttlMs, lastToken }, keepMs);
  }

  /** Resolves when no lease is held and no release is on its way. */
  async drained(): Promise<void> {
    await this.#held.settled();
    await this.#endings.settled();
  }

  /**
   * An operator ends a lease, or a newer call replaces its holder. Returns what has become of it; if the holder is
   * replaced, when its work has ended, or after `replaceWaitMs`.
   */
  endByForce(
    { key, digest, fencingToken }: EndedLease,
    intervention: Intervention,
    replaceWaitMs?: number,
  ): LeaseEnding | Promise<LeaseEnding> {
    const replaced = this.#replaced.get(digest);
    if (replaced !== undefined && replaceWaitMs !== undefined)
      return this.#afterWork(replaced, replaceWaitMs);
    const isMeant = ({ keys, token }: Lease): boolean =>
      keys.includes(key) && digestOf(token) === digest;
    if (replaceWaitMs === undefined)
      for (const lease of this.#givenBack.all) if (isMeant(lease)) lease.endedBy = intervention;
    const lease = this.leases.find(isMeant);
    if (lease === undefined) return 'unknown';
    if (fencingToken !== undefined && fencingToken !== lease.fencingToken) return 'passed-on';
    if (replaceWaitMs !== undefined)
      return this.#replace(lease, digest, intervention, replaceWaitMs);
    this.lose(lease, 'force-released', intervention);
    return 'ended';
  }

  /** The keys stay taken until the work of the lease has ended, so that no other work runs beside it. */
  #replace(
    lease: Lease,
    digest: string,
    intervention: Intervention,
    waitMs: number,
  ): Promise<LeaseEnding> {
    const done = new Promise<void>((resolve) => {
      lease.onDone = resolve;
    });
    const replaced = { lease, digest, since: this.#now(), done };
    this.#replaced.set(digest, replaced);
    this.lose(lease, 'replaced', intervention, Math.max(waitMs, lease.keepMs));
    return this.#afterWork(replaced, waitMs);
  }

  /** The store is asked once more for what is left of `minHold`, and no longer for the time of the work. */
  async #afterWork({ lease, digest, since, done }: Replaced, waitMs: number): Promise<LeaseEnding> {
    const { runtime } = this.#foundation.scheduler;
    // An earlier call may have replaced it.
    const leftMs = Math.max(0, waitMs - elapsedMs(since, this.#now()));
    await this.#endings.add(within(runtime, leftMs, done));
    this.#replaced.delete(digest);
    this.discard(lease, lease.longestTtlMs, lease.keepMs);
    return 'ended';
  }

  /** Callers that replace a holder wait for its work no more. */
  endReplaced(): void {
    for (const { lease } of [...this.#replaced.values()]) lease.onDone?.();
  }

  /**
   * Ends a lease, and notifies its holder and the store.
   *
   * @param keepMs for how many ms the keys are to stay taken
   */
  lose(
    lease: Lease,
    reason: LockLossReason,
    intervention?: Intervention,
    keepMs = lease.keepMs,
  ): void {
    lease.lose(reason, intervention);
    this.#remove(lease);
    // By the store's clock, through a renewal that is still on its way, or on others of its keys, our token may stand there yet.
    const gone = reason === 'stolen' || reason === 'released-elsewhere';
    if (!gone || lease.keys.length > 1) this.#discardLost(lease, reason, keepMs);
    this.#reportLoss(lease, reason);
    this.#successors?.wake(lease.keys);
  }

  /** How many leases are over, while the store has not confirmed it. */
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

  #remove(lease: Lease): void {
    for (const key of lease.keys) if (this.#byKey.get(key) === lease) this.#byKey.delete(key);
    if (this.#leases.delete(lease.token)) this.#held.end();
  }

  #release(lease: Lease): Promise<boolean> {
    if (lease.isOver) return Promise.resolve(false);
    const now = this.#now();
    const loss = lease.lossAt(now);
    if (loss !== undefined) return this.#endings.add(this.#loseLate(lease, loss).then(() => false));
    const heldMs = Math.round(lease.heldForMs(now));
    const isSure = lease.status === 'held';
    lease.end('released');
    // The turn that follows takes the place of this one among the leases.
    if (!isSure || lease.keepMs > 0 || this.#successors?.passOn(lease, now) !== true)
      return this.#giveBack(lease, heldMs);
    this.#released(lease, heldMs);
    return Promise.resolve(true);
  }

  /**
   * The process stood still, or was suspended: unread messages may name the operator that ended the lease, and the
   * reason.
   */
  async #loseLate(lease: Lease, reason: LockLossReason): Promise<void> {
    await this.#inputIsRead();
    if (!lease.isOver) this.lose(lease, reason);
  }

  #inputIsRead(): Promise<void> {
    return new Promise((resolve) => {
      this.#foundation.scheduler.runtime.afterInput(resolve);
    });
  }

  async #giveBack(lease: Lease, heldMs: number): Promise<boolean> {
    this.#endings.begin();
    try {
      const outcome = await this.#endInStore(lease, (isRepeated) =>
        this.#askForRelease(lease, heldMs, isRepeated),
      );
      if (outcome.status === 'released') {
        this.#released(lease, heldMs);
        return true;
      }
      if (outcome.status === 'unavailable')
        throw this.#notEnded('release', lease, outcome.nodes, heldMs);
      // The lease was lost before, and the loss was not detected.
      const { endedBy } = lease;
      const reason = endedBy === undefined ? 'released-elsewhere' : 'force-released';
      lease.lose(reason, endedBy);
      this.#reportLoss(lease, reason);
      return false;
    } finally {
      this.#endings.end();
    }
  }

  /**
   * Asks the store for the end of a lease. It asks once more while the lease is valid and the store may not have carried out the request.
   * What never left this process was waited for by the store as long as it may.
   */
  async #endInStore<Outcome extends { readonly status: string }>(
    lease: Lease,
    ask: (isRepeated: boolean) => Promise<Outcome | Unavailable>,
  ): Promise<Outcome | Unavailable> {
    this.#remove(lease);
    this.#givenBack.add(lease);
    if (mayBeProlonged(lease)) await lease.renewing;
    let outcome = await ask(false);
    const isUnsure = isOutage(outcome) && outcome.sent !== false && lease.validForMs > 0;
    if (isUnsure) outcome = await ask(true);
    this.#givenBack.delete(lease);
    this.#successors?.wake(lease.keys);
    return outcome;
  }

  #askForRelease(lease: Lease, heldMs: number, isRepeated: boolean): Promise<ReleaseOutcome> {
    const { store, recorder } = this.#foundation;
    const { keys, token, longestTtlMs: ttlMs, fencingToken, tenure } = lease;
    const asked = recorder.release(lease, heldMs, () => {
      const { keepMs } = lease;
      const isPlain = tenure.isPlain && keepMs === 0;
      return store.release({ keys, token, ttlMs, isPlain }, fencingToken, keepMs);
    });
    if (!isRepeated) return asked;
    // While it was valid, no other caller could have removed it: the first request did, and only its reply was lost.
    return asked.then((outcome) =>
      outcome.status === 'not-held' && lease.validForMs > 0 ? RELEASED : outcome,
    );
  }

  async #detach(lease: Lease, ttl: Duration | undefined): Promise<string> {
    const { store, recorder, scheduler, options } = this.#foundation;
    const { location, keyPrefix } = options;
    needsOneRedis('detach()', location);
    this.#throwIfLost(lease);
    const ttlMs = this.#ttlToMs(lease, ttl);
    const place = placeOf(location, keyPrefix);
    const { text, token: to } = toDetached(lease, { ttlMs, place, runtime: scheduler.runtime });
    const { keys, token, fencingToken: lastToken } = lease;
    const heldMs = Math.round(lease.heldForMs(this.#now()));
    // Before the store is asked: an answer that is on its way for the lease concerns this handle no more.
    lease.end('detached');
    const outcome = await this.#endInStore(lease, () =>
      store.transfer({ keys, token, to, ttlMs, lastToken }),
    );
    if (outcome.status === 'transferred') {
      recorder.emit('detached', lease, { heldMs, ttlMs });
      this.#ended(lease, { outcome: 'detached', heldMs });
      return text;
    }
    if (outcome.status === 'lost') {
      const { endedBy } = lease;
      const elsewhere = outcome.reason === 'gone' ? 'released-elsewhere' : 'stolen';
      const reason = endedBy === undefined ? elsewhere : 'force-released';
      this.lose(lease, reason, endedBy);
      throw lease.lossError(reason);
    }
    // The store may know it under either token, so both are released.
    const error = this.#notEnded('detach', lease, outcome.nodes, heldMs);
    this.discard({ keys, token: to }, ttlMs, lease.keepMs);
    throw error;
  }

  /** The store did not confirm the end of a lease, and may keep it. Returns the error for its holder. */
  #notEnded(
    operation: 'release' | 'detach',
    lease: Lease,
    nodes: readonly NodeFailure[],
    heldMs: number,
  ): Error {
    const { recorder } = this.#foundation;
    this.discard(lease, lease.longestTtlMs, lease.keepMs);
    this.#ended(lease, { outcome: 'released', heldMs });
    recorder.emit('unavailable', lease, { operation, nodes });
    return lease.outageError(operation, nodes);
  }

  #released(lease: Lease, heldMs: number): void {
    const { recorder, sectionTimes } = this.#foundation;
    sectionTimes?.add(lease.lockName, heldMs + lease.keepMs);
    recorder.emit('released', lease, { heldMs });
    this.#ended(lease, { outcome: 'released', heldMs });
  }

  #reportLoss(lease: Lease, reason: LockLossReason): void {
    const { recorder } = this.#foundation;
    const { intervention } = lease;
    recorder.emit('lost', lease, { reason, ...(intervention && { intervention }) });
    const heldMs = Math.round(lease.heldForMs(this.#now()));
    this.#ended(lease, { outcome: 'lost', heldMs, reason });
  }

  #ended(lease: Lease, end: HoldEnd): void {
    this.#foundation.recorder.holdEnded(lease, end);
    this.past.add(lease, end);
  }

  #throwIfLost(lease: Lease): void {
    const loss = lease.lossAt(this.#now());
    if (loss !== undefined && !lease.isOver) this.lose(lease, loss);
    lease.assertHeld();
  }

  #discardLost(lease: Lease, reason: LockLossReason, keepMs: number): void {
    const discard = (keptMs: number): void => {
      this.discard(lease, lease.longestTtlMs, keptMs);
    };
    // After a forced release the keys are to be free, even if they would otherwise stay taken.
    if (reason === 'force-released') discard(0);
    else if (!mayBeProlonged(lease)) discard(keepMs);
    else
      void this.#endings.add(
        lease.renewing.then(() => {
          discard(keepMs);
        }),
      );
  }

  #ttlToMs(lease: Lease, ttl: Duration | undefined): number {
    return ttl === undefined ? lease.ttlMs : ttlToMs(ttl, this.#foundation.options.restartGuard);
  }

  #now(): Instant {
    return this.#foundation.scheduler.runtime.now();
  }
}

/**
 * The keys stay taken after the end of the lease, under its token. A renewal that arrives after the release, because its script had to be
 * sent again, would keep them taken for a whole TTL.
 */
function mayBeProlonged(lease: Lease): lease is Lease & { readonly renewing: Promise<unknown> } {
  return lease.renewing !== undefined && lease.keepMs > 0 && lease.status !== 'detached';
}

const isOutage = (outcome: { readonly status: string }): outcome is Unavailable =>
  outcome.status === 'unavailable';

/** A process that dies leaves the lock for its TTL: a shorter one would not cover what is left of `minHold`. */
function refuseBelowMinHold({ request }: Lease, ttlMs: number): void {
  const { minHoldMs } = request.options;
  if (ttlMs >= minHoldMs) return;
  throw new LockConfigurationError(
    `extend(${String(ttlMs)}) is shorter than the lock's "minHold", ${String(minHoldMs)} ms: a process that dies leaves the lock for its ` +
      'TTL, and that must cover it.',
  );
}
