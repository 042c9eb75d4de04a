import { BriefMap } from '../../collections/brief-map.js';
import { elapsedMs, type Clock, type Instant } from '../../time/clock.js';
import type { FoundKey } from '../admin-store.js';
import type { LeaseReference, LeaseRenewal, LeaseRequest } from '../lock-store.js';
import { holdModeOf, isAlike, limitIn, placesOf, type HoldMode } from '../owner-token.js';
import { SweepPace } from '../sweep-pace.js';

interface Hold {
  readonly since: Instant;
  readonly ttlMs: number;
}

/** A key that is held, by one holder or several together. */
export interface Entry {
  readonly mode: HoldMode;
  /** The fencing token of its holders; `undefined` while they are only claims. */
  fencingToken?: number;
  /** By token. */
  readonly holds: Map<string, Hold>;
}

/** Expired entries are swept when the table has doubled since the last sweep, and not before it has this size. */
const SMALLEST_SWEEP = 1_024;

/** How many places the holders of a key have. */
const inUse = ({ holds }: Entry): number => {
  let places = 0;
  for (const token of holds.keys()) places += placesOf(token);
  return places;
};

/** The holders of each key, and until when. */
export class MemoryHolds {
  readonly #clock: Clock;
  readonly #entries = new BriefMap<string, Entry>();
  /** The limits of keys for which one was set. */
  readonly #limits = new Map<string, number>();
  /** One counter for all keys: it grows for each of them, and nothing is kept per key. */
  #lastFencingToken = 0;
  readonly #pace = new SweepPace(SMALLEST_SWEEP);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The entry, while any hold of it lasts. */
  of(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    for (const [token, hold] of entry.holds) if (this.#left(hold) <= 0) entry.holds.delete(token);
    if (entry.holds.size > 0) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  keys(): Iterable<string> {
    return [...this.#entries.keys()].filter((key) => this.of(key) !== undefined);
  }

  /** For operators. */
  found(key: string): Pick<FoundKey, 'holders' | 'fencingToken' | 'limit'> {
    const entry = this.of(key);
    const limit = this.#limits.get(key);
    if (entry === undefined) return { holders: [], limit };
    const { fencingToken } = entry;
    const sinceMs = fencingToken === undefined ? undefined : fencingToken / 1_000;
    return {
      limit,
      fencingToken,
      holders: Array.from(entry.holds, ([token, hold]) => ({
        token,
        remainingMs: this.#left(hold),
        sinceMs,
      })),
    };
  }

  /** Whether others hold a key so that this token may not. */
  isInTheWay(key: string, token: string): boolean {
    const entry = this.of(key);
    if (entry?.holds.has(token) === true) return false;
    const mode = holdModeOf(token);
    const own = limitIn(mode);
    if (entry === undefined) return own !== undefined && placesOf(token) > this.#limitFor(key, own);
    if (!isAlike(mode, entry.mode)) return true;
    return own !== undefined && inUse(entry) + placesOf(token) > this.#limitFor(key, own);
  }

  /** The limit that replaces the limits of tokens. */
  setLimit(key: string, limit: number | undefined): void {
    if (limit === undefined) this.#limits.delete(key);
    else this.#limits.set(key, limit);
  }

  /** The limit of other holders of the key, if it differs from that of this token and none was set. */
  otherLimit({ key, token }: LeaseReference): number | undefined {
    const own = limitIn(holdModeOf(token));
    if (own === undefined || this.#limits.has(key)) return undefined;
    return [...(this.of(key)?.holds.keys() ?? [])]
      .flatMap((other) => limitIn(holdModeOf(other)) ?? [])
      .find((other) => other !== own);
  }

  #limitFor(key: string, own: number): number {
    return this.#limits.get(key) ?? own;
  }

  put({ key, token, ttlMs }: LeaseRequest): void {
    const hold = { ttlMs, since: this.#clock.now() };
    const entry = this.of(key);
    if (entry?.holds.set(token, hold) !== undefined) return;
    this.#entries.set(key, { mode: holdModeOf(token), holds: new Map([[token, hold]]) });
  }

  /** The last fencing token that was used under a lease. That of holders together stays. */
  used({ key, token, fencingToken }: LeaseRenewal): void {
    const entry = this.of(key);
    if (entry === undefined || holdModeOf(token) !== 'exclusive') return;
    entry.fencingToken = Math.max(entry.fencingToken ?? 0, fencingToken);
  }

  /** Ends one hold, if there is one. */
  drop(key: string, token: string): boolean {
    const entry = this.of(key);
    if (entry?.holds.delete(token) !== true) return false;
    if (entry.holds.size === 0) this.#entries.delete(key);
    return true;
  }

  /** Continues one hold under another token. */
  rename(key: string, token: string, to: string): void {
    const entry = this.of(key);
    const hold = entry?.holds.get(token);
    if (entry === undefined || hold === undefined) return;
    entry.holds.delete(token);
    entry.holds.set(to, hold);
  }

  /** How a lease lost its key, if it did. */
  lossOf({ key, token }: LeaseReference): 'stolen' | 'released-elsewhere' | undefined {
    const entry = this.of(key);
    if (entry?.holds.has(token) === true) return undefined;
    const isOpen = entry?.mode === holdModeOf(token) && entry.mode !== 'exclusive';
    return entry === undefined || isOpen ? 'released-elsewhere' : 'stolen';
  }

  /** Ends all holds of a key. */
  clear(key: string): void {
    this.#entries.delete(key);
  }

  /** A new one, or that of the holders which the caller joins. */
  fencingToken({ key, token }: LeaseRequest): number {
    const entry = this.of(key);
    const joined = holdModeOf(token) === 'exclusive' ? undefined : entry?.fencingToken;
    if (joined !== undefined) return joined;
    const wallUs = Math.floor(this.#clock.now().wallMs * 1_000);
    this.#lastFencingToken = Math.max(this.#lastFencingToken + 1, wallUs);
    if (entry !== undefined) entry.fencingToken ??= this.#lastFencingToken;
    return this.#lastFencingToken;
  }

  /** How long a key is held yet, as this token sees it: until all are done, or, where it may join them, until the first is. */
  remaining(key: string, token: string): number {
    const entry = this.of(key);
    // The limit was set lower than what the caller wants: that ends when it is set again.
    if (entry === undefined) return this.isInTheWay(key, token) ? Infinity : 0;
    const left = [...entry.holds.values()].map((hold) => this.#left(hold));
    const joins = entry.mode !== 'exclusive' && isAlike(holdModeOf(token), entry.mode);
    return joins ? Math.min(...left) : Math.max(...left);
  }

  /** Since the last grant of a key; 0 if it is not known. */
  heldForMs(key: string): number {
    const { fencingToken } = this.of(key) ?? {};
    return fencingToken === undefined
      ? 0
      : Math.max(0, this.#clock.now().wallMs - fencingToken / 1_000);
  }

  sweep(): void {
    if (!this.#pace.isDue(this.#entries.size)) return;
    for (const key of [...this.#entries.keys()]) this.of(key);
    this.#pace.swept(this.#entries.size);
  }

  #left({ since, ttlMs }: Hold): number {
    return ttlMs - elapsedMs(since, this.#clock.now());
  }
}
