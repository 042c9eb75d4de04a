import { elapsedMs, systemClock, type Clock, type Instant } from '../../time/clock.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  ExtendOutcome,
  InspectOutcome,
  LeaseReference,
  LeaseRequest,
  LineCall,
  LinePlace,
  LockStore,
  ReleaseListener,
  ReleaseOutcome,
} from '../lock-store.js';

/** How long a key waits for the one in line that it was given to. */
const LONGEST_CLAIM_MS = 1_000;

interface Waiter {
  readonly token: string;
  readonly ticket: number;
  readonly claimMs: number;
}

interface Entry {
  readonly token: string;
  readonly since: Instant;
  readonly ttlMs: number;
}

/** Expired entries are swept when the table has doubled since the last sweep, and not before it has this size. */
const SMALLEST_SWEEP = 1_024;

/**
 * Locks in the memory of this process, with the semantics of the Redis store: expiry, fencing tokens, waiting. For development
 * and unit tests: other processes do not see these locks. Modules that are to exclude each other share one store object.
 */
export class MemoryLockStore implements LockStore {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<ReleaseListener>();
  /** Of each key that somebody waits for: by ticket. */
  readonly #lines = new Map<string, Waiter[]>();
  #lastTicket = 0;
  /** One counter for all keys: it grows for each of them, and nothing is kept per key. */
  #lastFencingToken = 0;
  #sweepAt = SMALLEST_SWEEP;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    const { keys, token, line } = request;
    for (const key of keys) {
      this.#give(key, token);
      const entry = this.#valid(key);
      if (entry === undefined || entry.token === token) continue;
      // Nobody holds one key while waiting for another.
      for (const other of keys) if (this.#valid(other)?.token === token) this.#free(other);
      const remainingMs = this.#remaining(entry);
      const ticket = line && this.#stand(key, token, line);
      return Promise.resolve({
        status: 'held',
        key,
        remainingMs,
        checkAgainMs: remainingMs,
        ticket,
      });
    }
    for (const key of keys) this.#forget(key, token);
    this.#put(request);
    this.#sweep();
    this.#lastFencingToken = Math.max(this.#lastFencingToken + 1, Date.now() * 1_000);
    return Promise.resolve({ status: 'granted', fencingToken: this.#lastFencingToken });
  }

  extend(leases: readonly LeaseRequest[]): Promise<readonly ExtendOutcome[]> {
    return Promise.resolve(leases.map((lease) => this.#extend(lease)));
  }

  release(lease: LeaseReference, _lastToken?: number, keepMs = 0): Promise<ReleaseOutcome> {
    let all = true;
    for (const key of lease.keys) {
      if (this.#valid(key)?.token === lease.token) {
        if (keepMs > 0) this.#keep(key, lease.token, keepMs);
        else this.#free(key);
      } else {
        all = false;
        this.#give(key);
      }
    }
    return Promise.resolve({ status: all ? 'released' : 'not-held' });
  }

  inspect(key: string): Promise<InspectOutcome> {
    const entry = this.#valid(key);
    return Promise.resolve(
      entry === undefined
        ? { status: 'free' }
        : { status: 'held', remainingMs: this.#remaining(entry) },
    );
  }

  forceRelease(key: string): Promise<ReleaseOutcome> {
    if (this.#valid(key) === undefined) return Promise.resolve({ status: 'not-held' });
    this.#free(key);
    return Promise.resolve({ status: 'released' });
  }

  listen(listener: ReleaseListener): Promise<'listening'> {
    this.#listeners.add(listener);
    return Promise.resolve('listening');
  }

  async leave(lease: LeaseReference): Promise<void> {
    for (const key of lease.keys) this.#forget(key, lease.token);
    await this.release(lease);
  }

  /** Nothing to close: another module may use the same store object. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  #extend(lease: LeaseRequest): ExtendOutcome {
    for (const key of lease.keys) {
      const entry = this.#valid(key);
      if (entry === undefined) return { status: 'lost', reason: 'released-elsewhere' };
      if (entry.token !== lease.token) return { status: 'lost', reason: 'stolen' };
    }
    this.#put(lease);
    return { status: 'extended' };
  }

  /** Whoever held it, and whoever waits. */
  protected seize(lease: LeaseRequest): void {
    this.#put(lease);
  }

  #put({ keys, token, ttlMs }: LeaseRequest): void {
    const entry = { token, ttlMs, since: this.#clock.now() };
    for (const key of keys) this.#entries.set(key, entry);
  }

  #free(key: string): void {
    this.#entries.delete(key);
    this.#give(key);
  }

  /** It is over for its holder, and stays taken for so long. */
  #keep(key: string, token: string, keepMs: number): void {
    this.#put({ keys: [key], token, ttlMs: keepMs });
    const [first] = this.#lines.get(key) ?? [];
    if (first !== undefined) this.#tell(key, { to: first.token, inMs: keepMs });
  }

  /** A key that is free goes to the first in line, unless that is the one who asks. */
  #give(key: string, asking?: string): void {
    const line = this.#lines.get(key);
    const [first, second] = line ?? [];
    if (first === undefined || first.token === asking || this.#valid(key) !== undefined) return;
    const { token, claimMs } = first;
    this.#forget(key, token);
    this.#put({ keys: [key], token, ttlMs: claimMs });
    this.#tell(key, { to: token, inMs: 0 });
    if (second !== undefined) this.#tell(key, { to: second.token, inMs: claimMs });
  }

  #tell(key: string, call: LineCall): void {
    for (const listener of this.#listeners) {
      queueMicrotask(() => {
        listener(key, call);
      });
    }
  }

  /** In the place it had, or at the end. */
  #stand(key: string, token: string, { ticket, ttlMs }: LinePlace): number {
    const line = this.#lines.get(key) ?? [];
    const known = line.find((waiter) => waiter.token === token);
    if (known !== undefined) return known.ticket;
    this.#lastTicket += 1;
    const waiter = {
      token,
      ticket: ticket ?? this.#lastTicket,
      claimMs: Math.min(ttlMs, LONGEST_CLAIM_MS),
    };
    line.push(waiter);
    this.#lines.set(
      key,
      line.sort((a, b) => a.ticket - b.ticket),
    );
    return waiter.ticket;
  }

  #forget(key: string, token: string): void {
    const line = this.#lines.get(key)?.filter((waiter) => waiter.token !== token);
    if (line === undefined) return;
    if (line.length === 0) this.#lines.delete(key);
    else this.#lines.set(key, line);
  }

  #valid(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#remaining(entry) > 0) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #remaining(entry: Entry): number {
    return entry.ttlMs - elapsedMs(entry.since, this.#clock.now());
  }

  #sweep(): void {
    if (this.#entries.size < this.#sweepAt) return;
    for (const key of [...this.#entries.keys()]) this.#valid(key);
    this.#sweepAt = Math.max(SMALLEST_SWEEP, this.#entries.size * 2);
  }
}
