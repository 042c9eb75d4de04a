import { holdModeOf, type HoldMode } from '../owner-token.js';
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
import { keepsForMs } from '../overtaking.js';
import { MemoryOnceStore } from './memory-once-store.js';
import type { OnceStore } from '../once-store.js';

/** How long a key waits for the one in line that it was given to. */
const LONGEST_CLAIM_MS = 1_000;

/** A place in the lines of all its keys. */
interface Waiter {
  readonly token: string;
  readonly keys: readonly string[];
  /** When it came, in µs of the monotonic clock; no two are the same. */
  readonly ticket: number;
  readonly claimMs: number;
}

interface Hold {
  readonly since: Instant;
  readonly ttlMs: number;
}

/** A key that somebody holds, or several together. */
interface Entry {
  readonly mode: HoldMode;
  /** Of all who hold it together; `undefined` while it is no more than a claim. */
  fencingToken?: number;
  /** By token. */
  readonly holds: Map<string, Hold>;
}

/** Expired entries are swept when the table has doubled since the last sweep, and not before it has this size. */
const SMALLEST_SWEEP = 1_024;

/**
 * Locks in the memory of this process, with the semantics of the Redis store: expiry, fencing tokens, waiting. For development
 * and unit tests: other processes do not see these locks. Modules that are to exclude each other share one store object.
 */
export class MemoryLockStore implements LockStore {
  readonly #once: MemoryOnceStore;
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
    this.#once = new MemoryOnceStore(
      clock,
      (key, token) => this.#valid(key)?.holds.has(token) === true,
    );
  }

  get once(): OnceStore {
    return this.#once;
  }

  /** Nothing is known any more of work that is to be done once. */
  protected forgetWork(): void {
    this.#once.forgetAll();
  }

  acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    const { keys, token, line } = request;
    for (const key of keys) this.#give(key, { token, before: line?.ticket });
    const key = keys.find((each) => !this.#mayHave(each, request));
    if (key !== undefined) {
      const keptForMs = this.#valid(key) ? 0 : this.#keptForMs(key, token, line?.ticket);
      const ticket = line && this.#stand(request, line);
      // Nobody holds one key while waiting for another.
      for (const each of keys.filter((other) => this.#drop(other, token))) this.#handOn(each);
      const remainingMs = keptForMs || this.#remaining(key, token);
      return Promise.resolve({
        status: 'held',
        key,
        remainingMs,
        checkAgainMs: remainingMs,
        ticket,
      });
    }
    this.#forget(keys, token);
    this.#put(request);
    // Who was first in line until now may be followed by others who may hold the keys, too.
    if (holdModeOf(token) !== 'exclusive') for (const each of keys) this.#give(each);
    this.#sweep();
    return Promise.resolve({ status: 'granted', fencingToken: this.#fencingToken(request) });
  }

  extend(leases: readonly LeaseRequest[]): Promise<readonly ExtendOutcome[]> {
    return Promise.resolve(leases.map((lease) => this.#extend(lease)));
  }

  release({ keys, token }: LeaseReference, _last?: number, keepMs = 0): Promise<ReleaseOutcome> {
    const given = keys.filter((key) =>
      keepMs > 0 ? this.#keep(key, token, keepMs) : this.#drop(key, token),
    );
    // When all of them are free: whoever is next may want several.
    if (keepMs === 0) for (const key of keys) this.#handOn(key);
    return Promise.resolve({ status: given.length === keys.length ? 'released' : 'not-held' });
  }

  inspect(key: string): Promise<InspectOutcome> {
    return Promise.resolve(
      this.#valid(key) === undefined
        ? { status: 'free' }
        : { status: 'held', remainingMs: this.#remaining(key, '') },
    );
  }

  forceRelease(key: string): Promise<ReleaseOutcome> {
    if (this.#valid(key) === undefined) return Promise.resolve({ status: 'not-held' });
    this.#entries.delete(key);
    this.#give(key);
    return Promise.resolve({ status: 'released' });
  }

  listen(listener: ReleaseListener): Promise<'listening'> {
    this.#listeners.add(listener);
    return Promise.resolve('listening');
  }

  async leave(lease: LeaseReference): Promise<void> {
    this.#forget(lease.keys, lease.token);
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
      const isOpen = entry.mode !== 'exclusive' && entry.mode === holdModeOf(lease.token);
      if (!entry.holds.has(lease.token))
        return { status: 'lost', reason: isOpen ? 'released-elsewhere' : 'stolen' };
    }
    this.#put(lease);
    if (holdModeOf(lease.token) !== 'exclusive') for (const key of lease.keys) this.#warn(key);
    return { status: 'extended' };
  }

  /** Whoever held it, and whoever waits. */
  protected seize(lease: LeaseRequest): void {
    for (const key of lease.keys) this.#entries.delete(key);
    this.#put(lease);
  }

  #put({ keys, token, ttlMs }: LeaseRequest): void {
    const hold = { ttlMs, since: this.#clock.now() };
    for (const key of keys) {
      const entry = this.#valid(key);
      if (entry?.holds.set(token, hold) !== undefined) continue;
      this.#entries.set(key, { mode: holdModeOf(token), holds: new Map([[token, hold]]) });
    }
  }

  /** A new one, or, for whoever joins others, theirs. */
  #fencingToken({ keys, token }: LeaseRequest): number {
    const entries = keys.flatMap((key) => this.#valid(key) ?? []);
    const [first] = entries;
    const isJoined = entries.every(({ fencingToken }) => fencingToken === first?.fencingToken);
    if (holdModeOf(token) !== 'exclusive' && isJoined && first?.fencingToken !== undefined)
      return first.fencingToken;
    const wallUs = Math.floor(this.#clock.now().wallMs * 1_000);
    this.#lastFencingToken = Math.max(this.#lastFencingToken + 1, wallUs);
    for (const entry of entries) entry.fencingToken = this.#lastFencingToken;
    return this.#lastFencingToken;
  }

  /** Whether others hold a key so that this token may not. */
  #isInTheWay(key: string, token: string): boolean {
    const entry = this.#valid(key);
    if (entry === undefined || entry.holds.has(token)) return false;
    const mode = holdModeOf(token);
    if (mode === 'exclusive' || mode !== entry.mode) return true;
    return mode !== 'shared' && entry.holds.size >= Number(mode.slice('limit:'.length));
  }

  #mayHave(key: string, { token, line, joins }: AcquireRequest): boolean {
    const entry = this.#valid(key);
    if (entry?.holds.has(token) === true) return true;
    if (this.#isInTheWay(key, token)) return false;
    return (
      (joins !== undefined && entry?.fencingToken === joins) ||
      this.#keptForMs(key, token, line?.ticket) === 0
    );
  }

  /** For how long yet somebody who came before keeps others from a key that this token could have. */
  #keptForMs(key: string, mine: string, before = Infinity): number {
    for (const waiter of this.#lines.get(key) ?? []) {
      if (waiter.token === mine || waiter.ticket >= before) return 0;
      const ms = waiter.keys.length === 1 ? LONGEST_CLAIM_MS : this.#keepsForMs(waiter);
      if (ms > 0) return ms;
    }
    return 0;
  }

  #keepsForMs({ ticket }: Waiter): number {
    return keepsForMs((this.#nowUs() - ticket) / 1_000);
  }

  /** Ends one hold, if there is one. */
  #drop(key: string, token: string): boolean {
    const entry = this.#valid(key);
    if (entry?.holds.delete(token) !== true) return false;
    if (entry.holds.size === 0) this.#entries.delete(key);
    return true;
  }

  #handOn(key: string): void {
    this.#give(key);
    this.#warn(key);
  }

  /** It is over for its holder, and stays taken for so long. */
  #keep(key: string, token: string, keepMs: number): boolean {
    if (this.#valid(key)?.holds.has(token) !== true) return false;
    this.#put({ keys: [key], token, ttlMs: keepMs });
    this.#warn(key);
    return true;
  }

  /** The first in line waits for an end that may be no longer true. */
  #warn(key: string): void {
    const [first] = this.#lines.get(key) ?? [];
    if (first === undefined || this.#valid(key) === undefined) return;
    this.#tell(key, { to: first.token, inMs: Math.ceil(this.#remaining(key, first.token)) });
  }

  /**
   * A free key goes to the first in line who can have all keys that it wants, and to those behind it who may hold it together with that
   * one: all or none, because callers who hand on what they cannot use yet could go round in a circle. No further than to whoever asks.
   */
  #give(
    key: string,
    asking?: { readonly token: string; readonly before: number | undefined },
  ): void {
    // Those who are let in leave the line.
    for (const waiter of [...(this.#lines.get(key) ?? [])]) {
      const { token, ticket, keys, claimMs } = waiter;
      if (token === asking?.token || ticket >= (asking?.before ?? Infinity)) return;
      if (this.#isInTheWay(key, token)) return;
      const others = keys.filter((other) => other !== key);
      if (
        others.some(
          (other) => this.#isInTheWay(other, token) || this.#keptForMs(other, token, ticket) > 0,
        )
      ) {
        if (this.#keepsForMs(waiter) > 0) return;
        continue;
      }
      this.#forget(keys, token);
      this.#put({ keys, token, ttlMs: claimMs });
      this.#tell(key, { to: token, inMs: 0 });
      for (const each of keys) {
        const [next] = this.#lines.get(each) ?? [];
        if (next !== undefined) this.#tell(each, { to: next.token, inMs: claimMs });
      }
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

  /** In the place it had, or at the end. */
  #stand({ keys, token }: LeaseReference, { ticket, ttlMs }: LinePlace): number {
    const known = this.#lines.get(keys[0] ?? '')?.find((waiter) => waiter.token === token);
    if (known !== undefined) return known.ticket;
    if (ticket === undefined) this.#lastTicket = Math.max(this.#lastTicket + 1, this.#nowUs());
    const waiter = {
      token,
      keys,
      ticket: ticket ?? this.#lastTicket,
      claimMs: Math.min(ttlMs, LONGEST_CLAIM_MS),
    };
    for (const key of keys) {
      const line = this.#lines.get(key) ?? [];
      line.push(waiter);
      this.#lines.set(
        key,
        line.sort((a, b) => a.ticket - b.ticket),
      );
    }
    return waiter.ticket;
  }

  #forget(keys: readonly string[], token: string): void {
    for (const key of keys) {
      const line = this.#lines.get(key)?.filter((waiter) => waiter.token !== token);
      if (line === undefined) continue;
      if (line.length === 0) this.#lines.delete(key);
      else this.#lines.set(key, line);
    }
  }

  #nowUs(): number {
    return Math.floor(this.#clock.now().monotonicMs * 1_000);
  }

  #valid(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    for (const [token, hold] of entry.holds) if (this.#left(hold) <= 0) entry.holds.delete(token);
    if (entry.holds.size > 0) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #left({ since, ttlMs }: Hold): number {
    return ttlMs - elapsedMs(since, this.#clock.now());
  }

  /** How long a key is held yet, as this token sees it: until all are done, or, where it may join them, until the first is. */
  #remaining(key: string, token: string): number {
    const entry = this.#valid(key);
    if (entry === undefined) return 0;
    const left = [...entry.holds.values()].map((hold) => this.#left(hold));
    const joins = entry.mode !== 'exclusive' && holdModeOf(token) === entry.mode;
    return joins ? Math.min(...left) : Math.max(...left);
  }

  #sweep(): void {
    if (this.#entries.size < this.#sweepAt) return;
    for (const key of [...this.#entries.keys()]) this.#valid(key);
    this.#sweepAt = Math.max(SMALLEST_SWEEP, this.#entries.size * 2);
  }
}
