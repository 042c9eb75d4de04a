import {
  LockNotAcquiredError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  type HeldHere,
} from '../errors.js';
import type { Scheduler } from '../time/scheduler.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import type { Runtime } from '../time/runtime.js';
import { validityMs, type Grant, type Lease } from '../lease/lease.js';
import { PendingTasks } from '../time/pending-tasks.js';
import type { Handoff } from '../options/resolve-options.js';
import type {
  Held,
  LeaseReference,
  LineCall,
  LockStore,
  Unavailable,
} from '../store/lock-store.js';
import {
  holdModeOf,
  isOwnToken,
  newMaker,
  newOwnerToken,
  type HoldMode,
} from '../store/owner-token.js';
import { Caller, type LockRequest } from './caller.js';
import {
  contendedPauseMs,
  isContended,
  WaitingLine,
  type AttemptManner,
  type AttemptOutcome,
  type LineDependencies,
} from './waiting-line.js';

/** Whether a section around the calling code holds a key; for the message of a refusal. */
type IsHeldAround = (key: string) => boolean;

interface Dependencies {
  readonly store: LockStore;
  readonly runtime: Runtime;
  readonly scheduler: Scheduler;
  readonly clockDrift: number;
  /** Called in the same moment as the grant comes, so that no lease is ever without somebody who ends it. */
  readonly adopt: (grant: Grant, request: LockRequest) => Lease;
  /** Removes from the store what an attempt may have left there. */
  readonly discard: (lease: LeaseReference, ttlMs: number) => void;
  /** The next turn under a lease that was given back. */
  readonly takeTurn: (lease: Lease, request: LockRequest) => Lease;
  readonly release: (lease: Lease) => Promise<unknown>;
  /** Whether a token is a lease of this service. */
  readonly holds: (token: string) => boolean;
  /** The lease of this service that a key is held under, if it is. */
  readonly holderOf: (key: string) => Lease | undefined;
  readonly handoff: Handoff;
}

/** Where releases cannot be reported, we ask again this often whether they can by now. */
const LISTEN_AGAIN_MS = 5_000;

/** How often somebody who does not wait asks when several asked at once and none was granted the lock. */
const CONTENDED_TRIES = 4;

/**
 * Asks the store for locks, and lets callers wait for them. All callers of this process that wait for the same keys stand in
 * one line, first in first out, and only the first of them asks the store.
 */
export class LockQueue {
  readonly #deps: Dependencies;
  /** What all lines need. */
  readonly #forLines: LineDependencies;
  readonly #lines = new Map<string, WaitingLine>();
  /** The lines that want a key, to be woken when it is released. */
  readonly #linesByKey = new Map<string, Set<WaitingLine>>();
  /** Marks the tokens of this service, so that it knows which orphans are its own. */
  readonly #maker: string;
  #state: 'open' | 'no-waiting' | 'closed' = 'open';
  /** Attempts that do not wait, and lines. */
  readonly #pending = new PendingTasks();
  #ear: Promise<boolean> | undefined;
  #deafSince: Instant | undefined;
  #hearing = false;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
    this.#maker = newMaker(dependencies.runtime);
    const { store, adopt, discard, takeTurn, release } = dependencies;
    const { scheduler, runtime, clockDrift, handoff } = dependencies;
    this.#forLines = {
      newToken: (mode) => this.#newToken(mode),
      isOwn: (token) => isOwnToken(token, this.#maker),
      attempt: (request, how) => this.#attempt(request, how),
      adopt,
      discard,
      takeTurn,
      release,
      isHearing: () => this.#hearing,
      listen: () => this.#listen(),
      scheduler,
      runtime,
      clockDrift,
      handoff,
      leave: (lease, place) => this.#pending.add(store.leave(lease, place)),
      end: (line) => {
        this.#dissolve(line);
      },
    };
  }

  /**
   * Resolves with the lease, or rejects with the refusal, the outage, the closing or the signal's reason.
   *
   * @throws the closing or the signal's reason, when that is known at once
   */
  acquire(request: LockRequest, isHeldAround: IsHeldAround): Promise<Lease> {
    request.signal?.throwIfAborted();
    if (this.#state === 'closed') throw new LockServiceClosedError(request.keys);
    if (request.waitMs > 0 && this.#state === 'open') return this.#wait(request, isHeldAround);
    return this.#pending.add(this.#tryOnce(request, isHeldAround));
  }

  /** The keys were released, or may have been: whoever stands in line for one of them looks again. */
  wake(keys: readonly string[]): void {
    for (const key of keys) for (const line of this.#linesByKey.get(key) ?? []) line.wake();
  }

  /**
   * Gives a lease that a caller of this process gives back to the next one here that waits for the same keys, within the bounds of a
   * tenure. Answers whether it did.
   */
  passOn(lease: Lease): boolean {
    if (this.#state !== 'open') return false;
    const line = this.#lines.get(nameOf(lease.keys, holdModeOf(lease.token)));
    return line?.passOn(lease) ?? false;
  }

  wakeAll(): void {
    for (const line of this.#lines.values()) line.look();
  }

  /** Sends everybody in line away, and lets nobody stand in line any more. */
  refuseWaiting(): void {
    if (this.#state === 'open') this.#state = 'no-waiting';
    for (const line of this.#lines.values()) {
      line.sendAway((keys) => new LockServiceClosedError(keys));
    }
  }

  /** Grants nothing any more. */
  close(): void {
    this.refuseWaiting();
    this.#state = 'closed';
  }

  /** Resolves when no request for a lock is on its way, no line is left, and nothing of them in the store. */
  settled(): Promise<void> {
    return this.#pending.settled();
  }

  async #tryOnce(request: LockRequest, isHeldAround: IsHeldAround): Promise<Lease> {
    let outcome = await this.#attempt(request);
    for (let tries = 1; isContended(outcome) && tries < CONTENDED_TRIES; tries += 1) {
      await this.#pause(contendedPauseMs(tries, this.#deps.runtime));
      if (!this.#isOpenTo(request)) break;
      outcome = await this.#attempt(request, { isSplit: true });
    }
    if (outcome.status !== 'granted') throw this.#refusal(request, outcome, 0, isHeldAround);
    if (this.#isOpenTo(request)) return this.#deps.adopt(outcome.grant, request);
    this.#deps.discard(outcome.grant, request.ttlMs);
    request.signal?.throwIfAborted();
    throw new LockServiceClosedError(request.keys);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#deps.scheduler.schedule(ms, resolve));
  }

  #isOpenTo(request: LockRequest): boolean {
    return this.#state !== 'closed' && request.signal?.aborted !== true;
  }

  #wait(request: LockRequest, isHeldAround: IsHeldAround): Promise<Lease> {
    const { runtime, scheduler } = this.#deps;
    const caller = new Caller(request, runtime, scheduler, (...facts) =>
      this.#refusal(...facts, isHeldAround),
    );
    const name = nameOf(request.keys, request.mode);
    const line = this.#lines.get(name);
    if (line !== undefined) line.join(caller);
    else this.#open(name, request.keys, caller);
    return caller.granted;
  }

  /** One request to the store; nothing of it stays behind unless it is granted, or stands in line. */
  async #attempt(request: LockRequest, how: AttemptManner = {}): Promise<AttemptOutcome> {
    const { token = this.#newToken(request.mode), line, joins, isSplit } = how;
    const { keys, ttlMs } = request;
    const sentAt = this.#deps.runtime.now();
    const outcome = await this.#deps.store.acquire({ keys, token, ttlMs, line, joins, isSplit });
    if (outcome.status === 'held') return outcome;
    if (outcome.status === 'unavailable') {
      if (outcome.sent !== false) this.#deps.discard({ keys, token }, ttlMs);
      return outcome;
    }
    const { fencingToken, turns, othersWait } = outcome;
    const grant: Grant = { keys, token, ttlMs, sentAt, fencingToken, turns, othersWait };
    const elapsed = elapsedMs(sentAt, this.#deps.runtime.now());
    if (elapsed < validityMs(ttlMs, this.#deps.clockDrift)) return { status: 'granted', grant };
    this.#deps.discard(grant, ttlMs);
    return tooLate(elapsed, ttlMs);
  }

  /** What a refusal by the store is called. */
  #refusal(
    { keys }: LockRequest,
    outcome: Held | Unavailable,
    waitedMs: number,
    isHeldAround: IsHeldAround,
  ): Error {
    if (outcome.status === 'unavailable')
      return new LockStoreUnavailableError({ operation: 'acquire', keys, nodes: outcome.nodes });
    const { remainingMs: retryAfterMs } = outcome;
    return new LockNotAcquiredError({
      keys,
      retryAfterMs,
      waitedMs,
      heldHere: this.#heldHere(outcome, isHeldAround),
    });
  }

  /** What is known of a holder that is a caller of this service itself. */
  #heldHere({ key, holder }: Held, isHeldAround: IsHeldAround): HeldHere | undefined {
    const lease = this.#deps.holderOf(key);
    if (lease === undefined) return undefined;
    const isAnother = holder !== undefined && holder !== lease.token;
    if (isAnother && holdModeOf(lease.token) === 'exclusive') return undefined;
    const heldMs = lease.heldForMs(this.#deps.runtime.now());
    return { heldMs, place: lease.options.site?.place, isAround: isHeldAround(key) };
  }

  #newToken(mode: HoldMode): string {
    return newOwnerToken(this.#deps.runtime, { maker: this.#maker, mode });
  }

  #open(name: string, keys: readonly string[], first: Caller): void {
    const line = new WaitingLine(name, keys, this.#forLines);
    this.#lines.set(name, line);
    for (const key of keys) {
      const lines = this.#linesByKey.get(key) ?? new Set();
      this.#linesByKey.set(key, lines.add(line));
    }
    line.join(first);
    void this.#pending.add(line.serve());
  }

  #dissolve(line: WaitingLine): void {
    this.#lines.delete(line.name);
    for (const key of line.keys) {
      const lines = this.#linesByKey.get(key);
      lines?.delete(line);
      if (lines?.size === 0) this.#linesByKey.delete(key);
    }
  }

  /** Opens the ear of this process: at the first wait, and now and then at a later one where it could not be opened. */
  #listen(): Promise<boolean> {
    const deafSince = this.#deafSince;
    if (deafSince && elapsedMs(deafSince, this.#deps.runtime.now()) > LISTEN_AGAIN_MS) {
      this.#deafSince = undefined;
      this.#ear = undefined;
    }
    this.#ear ??= this.#openEar();
    return this.#ear;
  }

  async #openEar(): Promise<boolean> {
    const answer = await this.#deps.store.listen(
      (key, call) => {
        if (key === undefined) this.#hear(true);
        else if (call === undefined) this.wake([key]);
        else this.#called(key, call);
      },
      () => {
        this.#hear(false);
      },
    );
    this.#hearing = answer === 'listening';
    if (!this.#hearing) this.#deafSince = this.#deps.runtime.now();
    return this.#hearing;
  }

  #called(key: string, call: LineCall): void {
    let isKnown = false;
    for (const line of this.#linesByKey.get(key) ?? []) isKnown = line.called(call) || isKnown;
    // Given to callers who have gone meanwhile: it is for the next in line.
    const isOrphan =
      !isKnown && call.inMs === 0 && isOwnToken(call.to, this.#maker) && !this.#deps.holds(call.to);
    if (!isOrphan) return;
    const lease = { keys: [key], token: call.to, ttlMs: 0 };
    void this.#pending.add(this.#deps.store.leave(lease, { id: call.to, ttlMs: 0 }));
  }

  /** The store says whether it reports releases. While it does not, lines look by themselves; when it does again, all of them do. */
  #hear(hearing: boolean): void {
    this.#hearing = hearing;
    this.#ear = Promise.resolve(hearing);
    this.#deafSince = undefined;
    this.wakeAll();
  }
}

/** What the line of those who want the same is called. */
function nameOf(keys: readonly string[], mode: HoldMode): string {
  const name = keys.length === 1 ? (keys[0] ?? '') : keys.join('\0');
  return mode === 'exclusive' ? name : `${name}\0\0${mode}`;
}

/** Granted, but over before the answer came: nothing to hand out (Redlock's validity check). */
function tooLate(elapsed: number, ttlMs: number): Unavailable {
  const message = `answered after ${elapsed.toFixed(0)} ms, when a TTL of ${String(ttlMs)} ms was over already`;
  return {
    status: 'unavailable',
    nodes: [{ node: 'store', kind: 'timeout', message }],
    transient: true,
  };
}
