import { holdModeOf, limitIn } from '../owner-token.js';
import { systemClock, type Clock } from '../../time/clock.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  ExtendOutcome,
  LeaseReference,
  LeaseRequest,
  LineCall,
  LinePlace,
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
import { MemoryKeys } from './memory-keys.js';
import { MemoryOnceStore } from './memory-once-store.js';
import type { OnceStore } from '../once-store.js';

/**
 * Locks in the memory of this process, with the semantics of the Redis store: expiry, fencing tokens, waiting. For development
 * and unit tests: other processes do not see these locks. Modules that are to exclude each other share one store object.
 */
export class MemoryLockStore implements LockStore {
  readonly admin: AdminStore;
  readonly #clock: Clock;
  readonly #keys: MemoryKeys;
  readonly #once: OnceStore;
  readonly #listeners = new Set<ReleaseListener>();
  /** One counter for the lines of all keys. */
  #lastTicket = 0;
  /** One counter for all keys: it grows for each of them, and nothing is kept per key. */
  #lastFencingToken = 0;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
    this.#keys = new MemoryKeys(clock);
    this.#once = new MemoryOnceStore(this.#keys);
    this.admin = new MemoryAdminStore(clock, this.#keys, (key) => this.look(key));
  }

  /** What operators see of a key. */
  protected look(key: string): FoundKey {
    this.#keys.sweep();
    return { key, ...this.#keys.of(key).found() };
  }

  get once(): OnceStore {
    return this.#once;
  }

  /** Nothing is known any more of work that is to be done once. */
  forgetWork(): void {
    this.#keys.forgetWork();
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    this.#keys.sweep();
    const { keys, token, ttlMs, line } = request;
    const mode = holdModeOf(token);
    const otherLimit = this.#otherLimit(keys, limitIn(mode));
    // The ticket is of the line of the first key.
    const beforeAt = (key: string): number =>
      key === keys[0] ? (line?.ticket ?? Infinity) : Infinity;
    for (const key of keys) this.#give(key, { token, before: beforeAt(key) });
    const key = keys.find((each) => !this.#mayHave(each, request, beforeAt(each)));
    if (key !== undefined) {
      const busy = this.#keys.of(key);
      const keptForMs = busy.isHeld ? 0 : busy.keptForMs(token, beforeAt(key));
      const place = key === keys[0] ? line : line && anew(line);
      const ticket = place && busy.stand(token, place, () => this.#newTicket());
      const remainingMs = keptForMs || busy.remaining(token);
      const { heldForMs } = busy;
      const kept = this.#keepBefore(keys.indexOf(key), request, heldForMs);
      return Promise.resolve({
        ...{ status: 'held', key, remainingMs, checkAgainMs: remainingMs },
        ...{ ticket, otherLimit, heldForMs, kept },
      });
    }
    for (const each of keys) {
      this.#keys.of(each).leave(token);
      this.#keys.of(each).put(token, ttlMs);
    }
    // The first in line until now may be followed by others that may hold the keys, too.
    if (mode !== 'exclusive') for (const each of keys) this.#give(each);
    return Promise.resolve({ status: 'granted', fencingToken: this.#fence(request), otherLimit });
  }

  extend(leases: readonly LeaseRequest[]): Promise<readonly ExtendOutcome[]> {
    return Promise.resolve(leases.map((lease) => this.#extend(lease)));
  }

  release({ keys, token }: LeaseReference, _last?: number, keepMs = 0): Promise<ReleaseOutcome> {
    const given = keys.filter((key) =>
      keepMs > 0 ? this.#keep(key, token, keepMs) : this.#keys.of(key).drop(token),
    );
    if (keepMs === 0) for (const key of keys) this.#handOn(key);
    return Promise.resolve({ status: given.length === keys.length ? 'released' : 'not-held' });
  }

  transfer({ keys, token, to, ttlMs, lastToken }: TransferRequest): Promise<TransferOutcome> {
    for (const name of keys) {
      const key = this.#keys.of(name);
      if (key.isHeldBy(token) || key.isHeldBy(to)) continue;
      const taken = (key.fencingToken ?? Infinity) > lastToken ? 'stolen' : 'attached';
      const isFree = !key.isHeld || !key.isInTheWay(token);
      if (isFree) this.#give(name);
      return Promise.resolve({ status: 'lost', reason: isFree ? 'gone' : taken });
    }
    for (const name of keys) {
      const key = this.#keys.of(name);
      if (!key.isHeldBy(token)) continue;
      key.rename(token, to);
      if (key.put(to, ttlMs)) this.#warn(name);
    }
    return Promise.resolve({ status: 'transferred' });
  }

  setLimit(key: string, limit: number | undefined): Promise<SetLimitOutcome> {
    this.#keys.of(key).limit = limit;
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
    for (const key of lease.keys) this.#keys.of(key).leave(lease.token);
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

  #extend({ keys, token, ttlMs }: LeaseRequest): ExtendOutcome {
    const lost = keys.map((key) => this.#keys.of(key)).find((key) => !key.isHeldBy(token));
    if (lost !== undefined) return { status: 'lost', reason: lost.lossOf(token) };
    for (const key of keys) if (this.#keys.of(key).put(token, ttlMs)) this.#warn(key);
    return { status: 'extended' };
  }

  /** Takes the keys from any holder, ahead of all that wait. */
  seize({ keys, token, ttlMs }: LeaseRequest): void {
    for (const key of keys) {
      this.#keys.of(key).clear();
      this.#keys.of(key).put(token, ttlMs);
    }
  }

  #otherLimit(keys: readonly string[], own: number | undefined): number | undefined {
    if (own === undefined) return undefined;
    return keys
      .map((key) => this.#keys.of(key).otherLimit(own))
      .find((limit) => limit !== undefined);
  }

  #newTicket(): number {
    const nowUs = Math.floor(this.#clock.now().monotonicMs * 1_000);
    this.#lastTicket = Math.max(this.#lastTicket + 1, nowUs);
    return this.#lastTicket;
  }

  /** A new fencing token, or the one that the holders have whom the caller joins at all its keys. */
  #fence({ keys: names, token }: LeaseRequest): number {
    const keys = names.map((name) => this.#keys.of(name));
    const common = keys[0]?.fencingToken;
    const isCommon = keys.every(({ fencingToken }) => fencingToken === common);
    if (holdModeOf(token) !== 'exclusive' && common !== undefined && isCommon) return common;
    const wallUs = Math.floor(this.#clock.now().wallMs * 1_000);
    this.#lastFencingToken = Math.max(this.#lastFencingToken + 1, wallUs);
    // A holder of several keys has a larger one than the holders of one of them.
    for (const key of keys) key.fencingToken ??= this.#lastFencingToken;
    return this.#lastFencingToken;
  }

  #mayHave(name: string, { token, joins }: AcquireRequest, before: number): boolean {
    const key = this.#keys.of(name);
    if (key.isHeldBy(token)) return true;
    if (key.isInTheWay(token)) return false;
    return (
      (joins !== undefined && (key.fencingToken ?? Infinity) <= joins) ||
      key.keptForMs(token, before) === 0
    );
  }

  /** Refused at its first key, it keeps what it holds. At a later one, it keeps the keys before that one, if it asks for that, or none. */
  #keepBefore(busy: number, request: AcquireRequest, heldForMs: number): boolean | undefined {
    const { keys, token, keeps } = request;
    const kept = busy > 0 && keeps !== undefined && heldForMs < keeps.limitMs;
    for (const [index, name] of busy > 0 ? keys.entries() : []) {
      const key = this.#keys.of(name);
      // The caller waits in the line of the busy key alone.
      if (index < busy) key.leave(token);
      if (index === busy) continue;
      if (kept && index < busy && (index > 0 || keeps.before < busy)) key.put(token, keeps.ttlMs);
      else if (key.drop(token) || index < busy) this.#handOn(name);
    }
    return keeps && kept;
  }

  #handOn(key: string): void {
    this.#give(key);
    this.#warn(key);
  }

  /** The lease is over for its holder, and the key stays taken for so long. */
  #keep(key: string, token: string, keepMs: number): boolean {
    if (!this.#keys.of(key).isHeldBy(token)) return false;
    this.#keys.of(key).put(token, keepMs);
    this.#warn(key);
    return true;
  }

  /** The first in line waits for an end that may be no longer true. */
  #warn(name: string): void {
    const key = this.#keys.of(name);
    const [first] = key.line;
    if (first === undefined || !key.isHeld) return;
    this.#tell(name, { to: first.token, inMs: Math.ceil(key.remaining(first.token)) });
  }

  /**
   * Grants a free key to the first in line. Callers behind it that may hold it together with that one get it too. It
   * goes no further than to the caller that asks.
   */
  #give(name: string, asking?: { readonly token: string; readonly before: number }): void {
    const key = this.#keys.of(name);
    for (const { token, ticket, claimMs } of key.line) {
      if (token === asking?.token || ticket >= (asking?.before ?? Infinity)) return;
      if (key.isInTheWay(token)) return;
      key.leave(token);
      key.put(token, claimMs);
      this.#tell(name, { to: token, inMs: 0 });
      const [next] = key.line;
      if (next !== undefined) this.#tell(name, { to: next.token, inMs: claimMs });
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

/** The place in another line. */
const anew = ({ id, ttlMs }: LinePlace): LinePlace => ({ id, ttlMs });
