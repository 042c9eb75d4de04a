import { holdModeOf } from '../owner-token.js';
import { systemClock, type Clock } from '../../time/clock.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  ExtendOutcome,
  LeaseReference,
  LeaseRenewal,
  LeaseRequest,
  LineCall,
  LockStore,
  ReleaseListener,
  ReleaseOutcome,
  SetLimitOutcome,
  StoreHealth,
  TransferOutcome,
  TransferRequest,
  WriteOutcome,
} from '../lock-store.js';
import type { AdminStore, FoundKey } from '../admin-store.js';
import { MemoryAdminStore } from './memory-admin-store.js';
import { MemoryHolds } from './memory-holds.js';
import { LONGEST_CLAIM_MS } from '../claim.js';
import { MemoryLines } from './memory-lines.js';
import { MemoryOnceStore } from './memory-once-store.js';
import type { OnceStore } from '../once-store.js';

/**
 * Locks in the memory of this process, with the semantics of the Redis store: expiry, fencing tokens, waiting. For development
 * and unit tests: other processes do not see these locks. Modules that are to exclude each other share one store object.
 */
export class MemoryLockStore implements LockStore {
  readonly admin: AdminStore;
  readonly #once: MemoryOnceStore;
  readonly #holds: MemoryHolds;
  readonly #lines: MemoryLines;
  readonly #listeners = new Set<ReleaseListener>();

  constructor(clock: Clock = systemClock) {
    this.#holds = new MemoryHolds(clock);
    this.#lines = new MemoryLines(clock);
    this.#once = new MemoryOnceStore(
      clock,
      (key, token) => this.#holds.of(key)?.holds.has(token) === true,
    );
    this.admin = new MemoryAdminStore(clock, {
      all: () => new Set([...this.#holds.keys(), ...this.#lines.keys(), ...this.#once.keys()]),
      look: (key) => this.look(key),
      forgetOnce: (key) => this.#once.forget(key),
    });
  }

  /** What operators see of a key. */
  protected look(key: string): FoundKey {
    const [line, once] = [this.#lines.found(key), this.#once.found(key)];
    return { key, ...this.#holds.found(key), line, once };
  }

  get once(): OnceStore {
    return this.#once;
  }

  /** Nothing is known any more of work that is to be done once. */
  protected forgetWork(): void {
    this.#once.forgetAll();
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    const { key, token, line } = request;
    const before = line?.ticket ?? Infinity;
    const otherLimit = this.#holds.otherLimit(request);
    this.#give(key, { token, before });
    if (!this.#mayHave(request, before)) {
      const keptForMs = this.#holds.of(key) ? 0 : this.#keptForMs(key, token, before);
      const ticket = line && this.#lines.stand(key, token, line);
      const remainingMs = keptForMs || this.#holds.remaining(key, token);
      const heldForMs = this.#holds.heldForMs(key);
      return Promise.resolve({
        ...{ status: 'held', key, remainingMs, checkAgainMs: remainingMs },
        ...{ ticket, otherLimit, heldForMs },
      });
    }
    this.#lines.forget(key, token);
    this.#holds.put(request);
    // The first in line until now may be followed by others that may hold the key, too.
    if (holdModeOf(token) !== 'exclusive') this.#give(key);
    this.#holds.sweep();
    const fencingToken = this.#holds.fencingToken(request);
    return Promise.resolve({ status: 'granted', fencingToken, otherLimit });
  }

  /** One by one is no slower here. */
  acquireTogether(): Promise<AcquireOutcome | undefined> {
    return Promise.resolve(undefined);
  }

  extend(leases: readonly LeaseRenewal[]): Promise<readonly ExtendOutcome[]> {
    return Promise.resolve(leases.map((lease) => this.#extend(lease)));
  }

  release({ key, token }: LeaseReference, _last?: number, keepMs = 0): Promise<ReleaseOutcome> {
    const wasHeld = keepMs > 0 ? this.#keep(key, token, keepMs) : this.#holds.drop(key, token);
    if (keepMs === 0) this.#handOn(key);
    return Promise.resolve({ status: wasHeld ? 'released' : 'not-held' });
  }

  transfer({ key, token, to, ttlMs, lastToken }: TransferRequest): Promise<TransferOutcome> {
    const entry = this.#holds.of(key);
    if (entry?.holds.has(token) !== true && entry?.holds.has(to) !== true) {
      const isFree = entry === undefined || !this.#holds.isInTheWay(key, token);
      if (isFree) this.#give(key);
      const taken = (entry?.fencingToken ?? Infinity) > lastToken ? 'stolen' : 'attached';
      return Promise.resolve({ status: 'lost', reason: isFree ? 'gone' : taken });
    }
    this.#holds.rename(key, token, to);
    this.#holds.put({ key, token: to, ttlMs });
    this.#warn(key);
    return Promise.resolve({ status: 'transferred' });
  }

  setLimit(key: string, limit: number | undefined): Promise<SetLimitOutcome> {
    this.#holds.setLimit(key, limit);
    this.#give(key);
    return Promise.resolve({ status: 'set' });
  }

  write(): Promise<WriteOutcome> {
    const problem =
      'it runs commands on the Redis that has the lock, and these locks are in memory. Give "redis", or in a test a stub in its place.';
    return Promise.resolve({ status: 'refused', problem });
  }

  listen(listener: ReleaseListener): Promise<'listening'> {
    this.#listeners.add(listener);
    return Promise.resolve('listening');
  }

  async leave(lease: LeaseReference): Promise<void> {
    this.#lines.forget(lease.key, lease.token);
    await this.release(lease);
  }

  health(): Promise<StoreHealth> {
    const node = { node: 'store', reachable: true, latencyMs: 0, quarantinedForMs: 0 };
    return Promise.resolve({ nodes: [node], quorum: 1, hasQuorum: true });
  }

  /** Nothing to close: another module may use the same store object. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  #extend(lease: LeaseRenewal): ExtendOutcome {
    const reason = this.#holds.lossOf(lease);
    if (reason !== undefined) return { status: 'lost', reason };
    this.#holds.put(lease);
    this.#holds.used(lease);
    if (holdModeOf(lease.token) !== 'exclusive') this.#warn(lease.key);
    return { status: 'extended' };
  }

  /** Takes the key from any holder, ahead of all that wait. */
  protected seize(lease: LeaseRequest): void {
    this.#holds.clear(lease.key);
    this.#holds.put(lease);
  }

  #mayHave({ key, token, joins }: AcquireRequest, before: number): boolean {
    const entry = this.#holds.of(key);
    if (entry?.holds.has(token) === true) return true;
    if (this.#holds.isInTheWay(key, token)) return false;
    return (
      (joins !== undefined && (entry?.fencingToken ?? Infinity) <= joins) ||
      this.#keptForMs(key, token, before) === 0
    );
  }

  /** For how many ms an earlier caller keeps others from joining the holders. */
  #keptForMs(key: string, mine: string, before: number): number {
    const [first] = this.#lines.of(key);
    return first === undefined || first.token === mine || first.ticket >= before
      ? 0
      : LONGEST_CLAIM_MS;
  }

  #handOn(key: string): void {
    this.#give(key);
    this.#warn(key);
  }

  /** The lease is over for its holder, and the key stays taken for so long. */
  #keep(key: string, token: string, keepMs: number): boolean {
    if (this.#holds.of(key)?.holds.has(token) !== true) return false;
    this.#holds.put({ key, token, ttlMs: keepMs });
    this.#warn(key);
    return true;
  }

  /** The first in line waits for an end that may be no longer true. */
  #warn(key: string): void {
    const [first] = this.#lines.of(key);
    if (first === undefined || this.#holds.of(key) === undefined) return;
    this.#tell(key, { to: first.token, inMs: Math.ceil(this.#holds.remaining(key, first.token)) });
  }

  /**
   * Grants a free key to the first in line. Callers behind it that may hold it together with that one get it too. It
   * goes no further than to the caller that asks.
   */
  #give(key: string, asking?: { readonly token: string; readonly before: number }): void {
    // Callers that are admitted leave the line.
    for (const waiter of [...this.#lines.of(key)]) {
      const { token, ticket, claimMs } = waiter;
      if (token === asking?.token || ticket >= (asking?.before ?? Infinity)) return;
      if (this.#holds.isInTheWay(key, token)) return;
      this.#lines.forget(key, token);
      this.#holds.put({ key, token, ttlMs: claimMs });
      this.#tell(key, { to: token, inMs: 0 });
      const [next] = this.#lines.of(key);
      if (next !== undefined) this.#tell(key, { to: next.token, inMs: claimMs });
      if (holdModeOf(token) === 'exclusive') return;
    }
  }

  #tell(key: string, call: LineCall): void {
    for (const listener of this.#listeners) {
      // No queueMicrotask: the fake timers of a test hold that back.
      void Promise.resolve().then(() => {
        listener(key, call);
      });
    }
  }
}
