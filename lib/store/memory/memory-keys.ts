import { BriefMap } from '../../collections/brief-map.js';
import { elapsedMs, type Clock, type Instant } from '../../time/clock.js';
import type { FoundKey } from '../admin-store.js';
import { LONGEST_CLAIM_MS } from '../claim.js';
import type { LinePlace } from '../lock-store.js';
import type { AttemptEnd } from '../once-store.js';
import { holdModeOf, isAlike, limitIn, placesOf, type HoldMode } from '../owner-token.js';
import { SweepPace } from '../sweep-pace.js';

interface Lasting {
  readonly since: Instant;
  /** From then on, in ms. */
  readonly lifeMs: number;
}

/** A place in the line of a key. */
interface Waiter {
  readonly token: string;
  /** When it came, in µs of the monotonic clock; no two are the same. */
  readonly ticket: number;
  readonly claimMs: number;
}

/** What is known of work that is to be done once. */
export interface OnceRecord {
  readonly state: 'running' | 'failed' | 'done' | 'exhausted';
  readonly attempt: number;
  readonly owner: string;
  readonly end?: AttemptEnd;
  readonly text?: string | undefined;
  readonly lifeMs: number;
}

/** Keys that are no longer used are swept when the table has doubled since the last sweep, and not before it has this size. */
const SMALLEST_SWEEP = 1_024;

/** The keys of a store in memory. */
export class MemoryKeys {
  readonly #clock: Clock;
  readonly #keys = new BriefMap<string, MemoryKey>();
  readonly #pace = new SweepPace(SMALLEST_SWEEP);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A key as it is now. Keep it no longer than for one request. */
  of(name: string): MemoryKey {
    let key = this.#keys.get(name);
    if (key === undefined) {
      key = new MemoryKey(this.#clock);
      this.#keys.set(name, key);
    }
    key.endExpired();
    return key;
  }

  /** The names of the keys that are held, waited for, or marked as work that was done once. */
  used(): readonly string[] {
    return [...this.#keys.keys()].filter((name) => this.of(name).isUsed);
  }

  /** At the beginning of a request: forgets the keys that nothing is known of, if there may be many. */
  sweep(): void {
    if (!this.#pace.isDue(this.#keys.size)) return;
    for (const name of [...this.#keys.keys()]) {
      const { isUsed, limit } = this.of(name);
      if (!isUsed && limit === undefined) this.#keys.delete(name);
    }
    this.#pace.swept(this.#keys.size);
  }

  forgetWork(): void {
    for (const key of this.#keys.values()) key.once = undefined;
  }
}

/** One key: its holders, its line, and the work that is to be done once under it. */
class MemoryKey {
  /** The limit that replaces the limits of tokens, if one was set. */
  limit: number | undefined;
  /** The fencing token of its holders; `undefined` while they are only claims. */
  fencingToken: number | undefined;
  readonly #clock: Clock;
  #mode: HoldMode = 'exclusive';
  /** By token. */
  readonly #holds = new Map<string, Lasting>();
  /** In the order of their tickets. */
  #line: readonly Waiter[] = [];
  #once: (OnceRecord & Lasting) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  endExpired(): void {
    for (const [token, hold] of this.#holds) if (this.#left(hold) <= 0) this.drop(token);
    if (this.#once !== undefined && this.#left(this.#once) <= 0) this.#once = undefined;
  }

  get isUsed(): boolean {
    return this.isHeld || this.#line.length > 0 || this.#once !== undefined;
  }

  get isHeld(): boolean {
    return this.#holds.size > 0;
  }

  isHeldBy(token: string): boolean {
    return this.#holds.has(token);
  }

  /** The waiting callers, in the order in which they came. */
  get line(): readonly Waiter[] {
    return this.#line;
  }

  get once(): OnceRecord | undefined {
    return this.#once;
  }

  set once(record: OnceRecord | undefined) {
    this.#once = record && { ...record, since: this.#clock.now() };
  }

  /** For operators. */
  found(): Omit<FoundKey, 'key'> {
    const { fencingToken, limit } = this;
    const { wallMs, monotonicMs } = this.#clock.now();
    const sinceMs = fencingToken === undefined ? undefined : fencingToken / 1_000;
    const once = this.#once;
    return {
      ...{ fencingToken, limit },
      holders: Array.from(this.#holds, ([token, hold]) => ({
        token,
        remainingMs: this.#left(hold),
        sinceMs,
      })),
      line: this.#line.map(({ token, ticket }) => ({
        token,
        channel: '',
        sinceMs: wallMs - monotonicMs + ticket / 1_000,
      })),
      once: once && {
        ...{ state: once.state, attempts: once.attempt, text: once.text },
        remainingMs: this.#left(once),
      },
    };
  }

  /** Whether others hold it so that this token may not. It is asked of tokens that do not hold the key. */
  isInTheWay(token: string): boolean {
    const mode = holdModeOf(token);
    if (this.isHeld && !isAlike(mode, this.#mode)) return true;
    const own = limitIn(mode);
    return own !== undefined && this.#inUse() + placesOf(token) > (this.limit ?? own);
  }

  /** How many places its holders have. */
  #inUse(): number {
    let places = 0;
    for (const token of this.#holds.keys()) places += placesOf(token);
    return places;
  }

  /** The limit of other holders, if it differs from this one and none was set. */
  otherLimit(own: number): number | undefined {
    if (this.limit !== undefined) return undefined;
    const limits = [...this.#holds.keys()].map((token) => limitIn(holdModeOf(token)));
    return limits.find((limit) => limit !== undefined && limit !== own);
  }

  /** Returns whether the token held it for longer before. */
  put(token: string, lifeMs: number): boolean {
    if (!this.isHeld) this.#mode = holdModeOf(token);
    const before = this.#holds.get(token);
    this.#holds.set(token, { lifeMs, since: this.#clock.now() });
    return before !== undefined && lifeMs < this.#left(before);
  }

  /** Ends one hold, if there is one. */
  drop(token: string): boolean {
    const isDropped = this.#holds.delete(token);
    if (!this.isHeld) this.fencingToken = undefined;
    return isDropped;
  }

  /** Ends all holds. */
  clear(): void {
    for (const token of this.#holds.keys()) this.drop(token);
  }

  /** Continues one hold under another token of the same mode, if there is one. */
  rename(token: string, to: string): void {
    const hold = this.#holds.get(token);
    if (hold === undefined) return;
    this.#holds.delete(token);
    this.#holds.set(to, hold);
  }

  /** How a token that does not hold it lost it. */
  lossOf(token: string): 'stolen' | 'released-elsewhere' {
    return !this.isHeld || isAlike(holdModeOf(token), this.#mode) ? 'released-elsewhere' : 'stolen';
  }

  /** How long it is held yet, as this token sees it: until all are done, or, where it may join them, until the first is. */
  remaining(token: string): number {
    // The limit was set lower than what the caller wants: that ends when it is set again.
    if (!this.isHeld) return this.isInTheWay(token) ? Infinity : 0;
    const left = [...this.#holds.values()].map((hold) => this.#left(hold));
    return isAlike(holdModeOf(token), this.#mode) ? Math.min(...left) : Math.max(...left);
  }

  /** Since the last grant; 0 if it is not known. */
  get heldForMs(): number {
    const { fencingToken } = this;
    return fencingToken === undefined
      ? 0
      : Math.max(0, this.#clock.now().wallMs - fencingToken / 1_000);
  }

  /** For how many ms an earlier caller keeps this one from joining the holders. */
  keptForMs(token: string, before: number): number {
    const [first] = this.#line;
    return first === undefined || first.token === token || first.ticket >= before
      ? 0
      : LONGEST_CLAIM_MS;
  }

  /** In the place it had, or at the end. Returns the ticket. */
  stand(token: string, { ticket, ttlMs }: LinePlace, newTicket: () => number): number {
    const known = this.#line.find((waiter) => waiter.token === token);
    if (known !== undefined) return known.ticket;
    const claimMs = Math.min(ttlMs, LONGEST_CLAIM_MS);
    const waiter = { token, ticket: ticket ?? newTicket(), claimMs };
    this.#line = [...this.#line, waiter].sort((a, b) => a.ticket - b.ticket);
    return waiter.ticket;
  }

  /** A caller no longer waits. */
  leave(token: string): void {
    this.#line = this.#line.filter((waiter) => waiter.token !== token);
  }

  #left({ since, lifeMs }: Lasting): number {
    return lifeMs - elapsedMs(since, this.#clock.now());
  }
}
