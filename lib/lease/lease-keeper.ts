import {
  GuardedCommandError,
  LockConfigurationError,
  type LockStoreUnavailableError,
  type Intervention,
  type LockLossReason,
  type NodeFailure,
} from '../errors.js';
import { Chain } from '../collections/chain.js';
import type { Recorder } from '../observe/recorder.js';
import type { Duration } from '../options/duration.js';
import { placeOf } from '../options/location.js';
import { needsOneRedis } from '../options/one-redis.js';
import { ttlToMs, type ResolvedOptions } from '../options/resolve-options.js';
import type {
  Granted,
  LeaseReference,
  LockStore,
  ReleaseOutcome,
  TransferOutcome,
  WriteCommand,
} from '../store/lock-store.js';
import { digestOf } from '../store/owner-token.js';
import type { Scheduler } from '../time/scheduler.js';
import { CleanUp } from '../store/clean-up.js';
import type { Instant } from '../time/clock.js';
import { toDetached } from './detached-lock.js';
import type { LockRequest } from './lock-request.js';
import { checkCommands } from './guarded-write.js';
import { Lease, type LeaseContext, type StoreCall } from './lease.js';
import { LeaseRegistry } from './lease-registry.js';
import { Renewals } from './renewals.js';
import type { SectionTimes } from './section-times.js';
import { PendingTasks } from '../time/pending-tasks.js';

interface Dependencies {
  readonly store: LockStore;
  readonly scheduler: Scheduler;
  readonly recorder: Recorder;
  readonly options: ResolvedOptions;
  /** Missing if no hint is made of them. */
  readonly sectionTimes: SectionTimes | undefined;
  /** Applied to the errors of leases. */
  readonly present: <E>(error: E) => E;
  /** Called with releases that the store did not confirm, so that each of them is reported. */
  readonly onReleaseFailed: (error: LockStoreUnavailableError) => void;
}

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

/**
 * Keeps all leases of a service. It has them renewed, ends them at their deadline and releases them. It cleans up what
 * an unanswered request may have left in the store. It has one scheduler, so one timer for all leases.
 */
export class LeaseKeeper {
  readonly #deps: Dependencies;
  /** The leases that have not ended. */
  readonly leases = new LeaseRegistry();
  readonly #renewals: Renewals;
  readonly #cleanUp: CleanUp;
  /** Releases and other ends of leases that a shutdown waits for. */
  readonly #endings = new PendingTasks();
  #successors: Successors | undefined;
  readonly #context: LeaseContext;
  /** On their way back to the store; an operator may end them meanwhile. */
  readonly #givenBack = new Chain<Lease>();

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
    const { store, scheduler, recorder, options, present } = dependencies;
    this.#context = { clock: scheduler.runtime, clockDrift: options.clockDrift, present };
    this.#renewals = new Renewals({
      store,
      scheduler,
      recorder,
      lose: (lease, reason) => {
        this.lose(lease, reason);
      },
    });
    const onRemoved = (keys: readonly string[]): void => this.#successors?.wake(keys);
    this.#cleanUp = new CleanUp({ store, scheduler, onRemoved });
  }

  /** From here on, waiting callers are notified when a lease ends. */
  isFollowedBy(successors: Successors): void {
    this.#successors = successors;
  }

  /**
   * The lease that the store has granted. It has no holder before it is adopted.
   *
   * @param now when the store replied
   */
  granted(request: LockRequest, asked: StoreCall, granted: Granted, now: Instant): Lease {
    return new Lease(request, asked, granted, now, this.#context);
  }

  /** From here on a call holds the lease. */
  adopt(lease: Lease, request: LockRequest): Lease {
    lease.request = request;
    this.leases.add(lease);
    this.#renewals.add(lease, lease.grantedAt);
    return lease;
  }

  /** The next turn under a lease whose holder has released it. */
  takeTurn(lease: Lease, request: LockRequest, now: Instant): Lease {
    const turn = lease.passOn(request, now);
    turn.follows = lease.hold;
    this.#deps.recorder.emit('handedOn', turn, { previousToken: lease.fencingToken });
    return this.adopt(turn, request);
  }

  /** Publishes, for traces, that a caller has the lock from now on. */
  begun(lease: Lease): void {
    this.#deps.recorder.holdBegan(lease);
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
    if (outcome?.status !== 'unavailable') return;
    throw lease.outageError('extend', outcome.nodes);
  }

  /** Throws unless the lease is held now. */
  assertHeld(lease: Lease): void {
    const { notHeldReason: reason } = lease;
    if (reason !== undefined) throw lease.lossError(reason);
  }

  release(lease: Lease): Promise<boolean> {
    lease.releasing ??= this.#release(lease);
    return lease.releasing;
  }

  /** Runs commands in one step with the check that the lease is held. */
  async write(lease: Lease, commands: readonly WriteCommand[]): Promise<readonly unknown[]> {
    const { store, options } = this.#deps;
    checkCommands(commands);
    needsOneRedis('guarded()', options.location);
    this.#throwIfLost(lease);
    const { keys, token, ttlMs } = lease;
    const outcome = await store.write({ keys, token, ttlMs, commands });
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
        if (!lease.isOver) await this.#inputIsRead();
        if (!lease.isOver) this.lose(lease, outcome.reason);
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
    await this.leases.empty();
    await this.#endings.settled();
  }

  /** An operator ends a lease. Returns what has become of it. */
  endByForce({ key, digest, fencingToken }: EndedLease, intervention: Intervention): LeaseEnding {
    const isMeant = ({ keys, token }: Lease): boolean =>
      keys.includes(key) && digestOf(token) === digest;
    for (const lease of this.#givenBack.all) if (isMeant(lease)) lease.endedBy = intervention;
    const lease = this.leases.all.find(isMeant);
    if (lease === undefined) return 'unknown';
    if (fencingToken !== undefined && fencingToken !== lease.fencingToken) return 'passed-on';
    this.lose(lease, 'force-released', intervention);
    return 'ended';
  }

  /** Ends a lease, and notifies its holder and the store. */
  lose(lease: Lease, reason: LockLossReason, intervention?: Intervention): void {
    lease.lose(reason, intervention);
    this.leases.remove(lease);
    // By the store's clock, through a renewal that is still on its way, or on others of its keys, our token may stand there yet.
    const gone = reason === 'stolen' || reason === 'released-elsewhere';
    if (!gone || lease.keys.length > 1) this.#discardLost(lease, reason);
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

  #release(lease: Lease): Promise<boolean> {
    if (lease.isOver) return Promise.resolve(false);
    const now = this.#now();
    const loss = lease.lossAt(now);
    if (loss !== undefined) return this.#endings.add(this.#lateRelease(lease, loss));
    const heldMs = Math.round(lease.heldForMs(now));
    const isSure = lease.status === 'held';
    lease.release();
    // The turn that follows takes the place of this one among the leases.
    if (!isSure || lease.keepMs > 0 || this.#successors?.passOn(lease, now) !== true) {
      this.leases.remove(lease);
      return this.#giveBack(lease, heldMs);
    }
    this.#released(lease, heldMs);
    return Promise.resolve(true);
  }

  /**
   * The process stood still, or was suspended: unread messages may name the operator that ended the lease, and the
   * reason.
   */
  async #lateRelease(lease: Lease, loss: LockLossReason): Promise<false> {
    await this.#inputIsRead();
    if (!lease.isOver) this.lose(lease, loss);
    return false;
  }

  #inputIsRead(): Promise<void> {
    return new Promise((resolve) => {
      this.#deps.scheduler.runtime.afterInput(resolve);
    });
  }

  async #giveBack(lease: Lease, heldMs: number): Promise<boolean> {
    this.#givenBack.add(lease);
    this.#endings.begin();
    try {
      if (mayBeProlonged(lease)) await lease.renewing;
      const outcome = await this.#askForRelease(lease, heldMs);
      return this.#ended(lease, heldMs, outcome);
    } finally {
      this.#endings.end();
    }
  }

  /** Asks once more where it is unsure. */
  async #askForRelease(lease: Lease, heldMs: number): Promise<ReleaseOutcome> {
    const { store, recorder } = this.#deps;
    const { keys, token, longestTtlMs: ttlMs, fencingToken, tenure } = lease;
    const ask = (): Promise<ReleaseOutcome> =>
      recorder.release(lease, heldMs, () => {
        const { keepMs } = lease;
        const isPlain = tenure.isPlain && keepMs === 0;
        return store.release({ keys, token, ttlMs, isPlain }, fencingToken, keepMs);
      });
    const outcome = await ask();
    if (!isUnsure(lease, outcome)) return outcome;
    const repeated = await ask();
    // While it was valid, no other caller could have removed it: the first request did, and only its reply was lost.
    return repeated.status === 'not-held' && lease.validForMs > 0
      ? { status: 'released' }
      : repeated;
  }

  /** The store gives the lease the token under which it waits. No other caller sends this request. */
  async #askToDetach(lease: Lease, to: string, ttlMs: number): Promise<TransferOutcome> {
    const { store } = this.#deps;
    const { keys, token, fencingToken: lastToken } = lease;
    const request = { keys, token, to, ttlMs, lastToken };
    const outcome = await store.transfer(request);
    return isUnsure(lease, outcome) ? store.transfer(request) : outcome;
  }

  /** What the store has replied to a release. */
  #ended(lease: Lease, heldMs: number, outcome: ReleaseOutcome): boolean {
    const { keys, endedBy: intervention } = lease;
    this.#givenBack.delete(lease);
    this.#successors?.wake(keys);
    if (outcome.status === 'released') {
      this.#released(lease, heldMs);
      return true;
    }
    if (outcome.status === 'not-held') {
      // The lease was lost before, and the loss was not detected.
      const reason = intervention === undefined ? 'released-elsewhere' : 'force-released';
      lease.lose(reason, intervention);
      this.#reportLoss(lease, reason);
      return false;
    }
    const error = this.#notEnded('release', lease, outcome.nodes, heldMs);
    this.#deps.onReleaseFailed(error);
    throw error;
  }

  async #detach(lease: Lease, ttl: Duration | undefined): Promise<string> {
    const { recorder, scheduler } = this.#deps;
    const { location, keyPrefix } = this.#deps.options;
    needsOneRedis('detach()', location);
    this.#throwIfLost(lease);
    const ttlMs = this.#ttlToMs(lease, ttl);
    const place = placeOf(location, keyPrefix);
    const { text, token } = toDetached(lease, { ttlMs, place, runtime: scheduler.runtime });
    const { keys } = lease;
    const heldMs = Math.round(lease.heldForMs(this.#now()));
    // Before the store is asked: an answer that is on its way for the lease concerns this handle no more.
    lease.detach();
    this.leases.remove(lease);
    this.#givenBack.add(lease);
    const outcome = await this.#askToDetach(lease, token, ttlMs);
    const { endedBy: intervention } = lease;
    this.#givenBack.delete(lease);
    this.#successors?.wake(keys);
    if (outcome.status === 'transferred') {
      recorder.emit('detached', lease, { heldMs, ttlMs });
      recorder.holdEnded(lease, { outcome: 'detached', heldMs });
      return text;
    }
    if (outcome.status === 'lost') {
      const elsewhere = outcome.reason === 'gone' ? 'released-elsewhere' : 'stolen';
      const reason = intervention === undefined ? elsewhere : 'force-released';
      this.lose(lease, reason, intervention);
      throw lease.lossError(reason);
    }
    // The store may know it under either token, so both are released.
    const error = this.#notEnded('detach', lease, outcome.nodes, heldMs);
    this.discard({ keys, token }, ttlMs, lease.keepMs);
    throw error;
  }

  /** The store did not confirm the end of a lease, and may keep it. */
  #notEnded(
    operation: 'release' | 'detach',
    lease: Lease,
    nodes: readonly NodeFailure[],
    heldMs: number,
  ): LockStoreUnavailableError {
    const { recorder } = this.#deps;
    this.discard(lease, lease.longestTtlMs, lease.keepMs);
    recorder.holdEnded(lease, { outcome: 'released', heldMs });
    recorder.emit('unavailable', lease, { operation, nodes });
    return lease.outageError(operation, nodes);
  }

  #released(lease: Lease, heldMs: number): void {
    const { recorder, sectionTimes } = this.#deps;
    sectionTimes?.add(lease.lockName, heldMs + lease.keepMs);
    recorder.emit('released', lease, { heldMs });
    recorder.holdEnded(lease, { outcome: 'released', heldMs });
  }

  #reportLoss(lease: Lease, reason: LockLossReason): void {
    const { recorder } = this.#deps;
    const { intervention } = lease;
    recorder.emit('lost', lease, { reason, ...(intervention && { intervention }) });
    const heldMs = Math.round(lease.heldForMs(this.#now()));
    recorder.holdEnded(lease, { outcome: 'lost', heldMs, reason });
  }

  #throwIfLost(lease: Lease): void {
    const loss = lease.lossAt(this.#now());
    if (loss !== undefined && !lease.isOver) this.lose(lease, loss);
    this.assertHeld(lease);
  }

  #discardLost(lease: Lease, reason: LockLossReason): void {
    const discard = (keepMs: number): void => {
      this.discard(lease, lease.longestTtlMs, keepMs);
    };
    // After a forced release the keys are to be free, even if they would otherwise stay taken.
    if (reason === 'force-released') discard(0);
    else if (!mayBeProlonged(lease)) discard(lease.keepMs);
    else
      void this.#endings.add(
        lease.renewing.then(() => {
          discard(lease.keepMs);
        }),
      );
  }

  #ttlToMs(lease: Lease, ttl: Duration | undefined): number {
    return ttl === undefined ? lease.ttlMs : ttlToMs(ttl, this.#deps.options.restartGuard);
  }

  #now(): Instant {
    return this.#deps.scheduler.runtime.now();
  }
}

/**
 * The keys stay taken after the end of the lease, under its token. A renewal that arrives after the release, because its script had to be
 * sent again, would keep them taken for a whole TTL.
 */
function mayBeProlonged(lease: Lease): lease is Lease & { readonly renewing: Promise<unknown> } {
  return lease.renewing !== undefined && lease.keepMs > 0;
}

/** A process that dies leaves the lock for its TTL: a shorter one would not cover what is left of `minHold`. */
function refuseBelowMinHold({ request }: Lease, ttlMs: number): void {
  const { minHoldMs } = request.options;
  if (ttlMs >= minHoldMs) return;
  throw new LockConfigurationError(
    `extend(${String(ttlMs)}) is shorter than the lock's "minHold", ${String(minHoldMs)} ms: a process that dies leaves the lock for its ` +
      'TTL, and that must cover it.',
  );
}

/**
 * Whether to ask once more for the end of a lease: while it is valid, and the store may not have carried out the request. What never left
 * this process was waited for by the store as long as it may.
 */
const isUnsure = (lease: Lease, outcome: ReleaseOutcome | TransferOutcome): boolean =>
  outcome.status === 'unavailable' && outcome.sent !== false && lease.validForMs > 0;
