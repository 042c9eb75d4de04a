import { elapsedMs, systemClock, type Clock, type Instant } from '../../time/clock.js';
import type {
  AcquireOutcome,
  AcquireRequest,
  ExtendOutcome,
  InspectOutcome,
  LeaseReference,
  LeaseRequest,
  LockStore,
  ReleaseListener,
  ReleaseOutcome,
} from '../lock-store.js';

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
  /** One counter for all keys: it grows for each of them, and nothing is kept per key. */
  #lastFencingToken = 0;
  #sweepAt = SMALLEST_SWEEP;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    for (const key of request.keys) {
      const entry = this.#valid(key);
      if (entry === undefined || entry.token === request.token) continue;
      const remainingMs = this.#remaining(entry);
      return Promise.resolve({ status: 'held', key, remainingMs, checkAgainMs: remainingMs });
    }
    this.#put(request);
    this.#sweep();
    this.#lastFencingToken = Math.max(this.#lastFencingToken + 1, Date.now() * 1_000);
    return Promise.resolve({ status: 'granted', fencingToken: this.#lastFencingToken });
  }

  extend(leases: readonly LeaseRequest[]): Promise<readonly ExtendOutcome[]> {
    return Promise.resolve(leases.map((lease) => this.#extend(lease)));
  }

  release(lease: LeaseReference): Promise<ReleaseOutcome> {
    let all = true;
    for (const key of lease.keys) {
      if (this.#valid(key)?.token === lease.token) this.#free(key);
      else all = false;
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

  /** Every listener hears of every release, so there is no line to leave. */
  leave(): Promise<void> {
    return Promise.resolve();
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

  #put({ keys, token, ttlMs }: LeaseRequest): void {
    const entry = { token, ttlMs, since: this.#clock.now() };
    for (const key of keys) this.#entries.set(key, entry);
  }

  #free(key: string): void {
    this.#entries.delete(key);
    for (const listener of this.#listeners) {
      queueMicrotask(() => {
        listener(key);
      });
    }
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
