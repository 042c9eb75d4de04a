import { BriefMap } from '../../collections/brief-map.js';
import { elapsedMs, type Clock, type Instant } from '../../time/clock.js';
import type { FoundKey } from '../admin-store.js';
import type { LeaseReference, LeaseRequest } from '../lock-store.js';
import {
  holdModeOf,
  isAlike,
  isUpgradeToken,
  limitIn,
  placesOf,
  isStronger,
  tokenIn,
  type HoldMode,
} from '../owner-token.js';
import { SweepPace } from '../sweep-pace.js';

interface Hold {
  readonly since: Instant;
  readonly ttlMs: number;
}

/** A key that is held, by one holder or several together. */
export interface Entry {
  /** `'shared'` with one that is upgradeable, too. */
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
/** Which of the holders of a key a token is. */
function togetherIn(token: string): HoldMode {
  const mode = holdModeOf(token);
  return mode === 'upgradeable' ? 'shared' : mode;
}

/** The holders of each key, and until when. */
export class MemoryHolds {
  readonly #clock: Clock;
  readonly #entries = new BriefMap<string, Entry>();
  /** Of keys for which one was set. */
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
    const mode = togetherIn(token);
    const own = limitIn(mode);
    if (entry === undefined) return own !== undefined && placesOf(token) > this.#limitFor(key, own);
    if (!isAlike(mode, entry.mode)) return true;
    if (holdModeOf(token) === 'upgradeable')
      return [...entry.holds.keys()].some((other) => holdModeOf(other) === 'upgradeable');
    return own !== undefined && inUse(entry) + placesOf(token) > this.#limitFor(key, own);
  }

  /** The limit that replaces the limits of tokens. */
  setLimit(key: string, limit: number | undefined): void {
    if (limit === undefined) this.#limits.delete(key);
    else this.#limits.set(key, limit);
  }

  /** The limit of other holders of one of the keys, if it differs from that of this token and none was set. */
  otherLimit({ keys, token }: LeaseReference): number | undefined {
    const own = limitIn(holdModeOf(token));
    if (own === undefined) return undefined;
    return keys
      .filter((key) => !this.#limits.has(key))
      .flatMap((key) => [...(this.of(key)?.holds.keys() ?? [])])
      .flatMap((other) => limitIn(holdModeOf(other)) ?? [])
      .find((other) => other !== own);
  }

  #limitFor(key: string, own: number): number {
    return this.#limits.get(key) ?? own;
  }

  put({ keys, token, ttlMs }: LeaseRequest): void {
    const hold = { ttlMs, since: this.#clock.now() };
    for (const key of keys) {
      const entry = this.of(key);
      if (entry?.holds.set(token, hold) !== undefined) continue;
      this.#entries.set(key, { mode: togetherIn(token), holds: new Map([[token, hold]]) });
    }
  }

  /** Ends one hold, if there is one. */
  drop(key: string, token: string): boolean {
    const entry = this.of(key);
    if (entry?.holds.delete(this.tokenOf(key, token) ?? token) !== true) return false;
    if (entry.holds.size === 0) this.#entries.delete(key);
    return true;
  }

  /**
   * Continues one hold under another token, which may be of another mode.
   *
   * @param phase the fencing token of those that join it, if it is not known yet
   */
  rename(key: string, token: string, to: string, phase?: number): void {
    const entry = this.of(key);
    const hold = entry?.holds.get(token);
    if (entry === undefined || hold === undefined) return;
    entry.holds.delete(token);
    entry.holds.set(to, hold);
    const mode = togetherIn(to);
    if (mode === entry.mode) return;
    this.#entries.set(key, { mode, holds: entry.holds, fencingToken: phase });
  }

  /** Whether others hold a key beside this token. */
  isShared(key: string, token: string): boolean {
    return (this.of(key)?.holds.size ?? 0) > 1 && this.tokenOf(key, token) !== undefined;
  }

  /** How a lease lost one of its keys, if it did. */
  lossOf({ keys, token }: LeaseReference): 'stolen' | 'released-elsewhere' | undefined {
    const lost = keys.find((key) => this.tokenOf(key, token) === undefined);
    if (lost === undefined) return undefined;
    const entry = this.of(lost);
    const isOpen = entry?.mode === togetherIn(token) && entry.mode !== 'exclusive';
    return entry === undefined || isOpen ? 'released-elsewhere' : 'stolen';
  }

  renew({ keys, token, ttlMs }: LeaseRequest): void {
    for (const key of keys) {
      const held = this.tokenOf(key, token) ?? token;
      // One that is upgradeable may have been upgraded.
      const isWeaker = held !== token && holdModeOf(token) === 'shared';
      if (isWeaker) this.rename(key, held, token);
      this.put({ keys: [key], token: isWeaker ? token : held, ttlMs });
    }
  }

  /** What a lease holds a key under: its token, or, where its mode has changed since, the one of a stronger mode. */
  tokenOf(key: string, token: string): string | undefined {
    if (isUpgradeToken(token)) return undefined;
    const holds = this.of(key)?.holds;
    const stronger = holdModeOf(token) === 'shared' ? [tokenIn('upgradeable', token)] : [];
    return (
      [token, ...stronger].find((each) => holds?.has(each) === true) ??
      [...(holds?.keys() ?? [])].find((each) => isStronger(each, token))
    );
  }

  /** Ends all holds of a key. */
  clear(key: string): void {
    this.#entries.delete(key);
  }

  /** A new one, or that of the holders which the caller joins. */
  fencingToken({ keys, token }: LeaseRequest): number {
    const joined = togetherIn(token) === 'exclusive' ? undefined : this.#commonToken(keys);
    if (joined !== undefined) return joined;
    const wallUs = Math.floor(this.#clock.now().wallMs * 1_000);
    this.#lastFencingToken = Math.max(this.#lastFencingToken + 1, wallUs);
    for (const key of keys) {
      const entry = this.of(key);
      // A holder of several keys has a larger one than the holders of one of them.
      if (entry !== undefined) entry.fencingToken ??= this.#lastFencingToken;
    }
    return this.#lastFencingToken;
  }

  /** The one that the holders of all these keys have, if they have one. */
  #commonToken(keys: readonly string[]): number | undefined {
    const tokens = keys.flatMap((key) => this.of(key) ?? []).map((entry) => entry.fencingToken);
    return tokens.every((token) => token === tokens[0]) ? tokens[0] : undefined;
  }

  /**
   * How long a key is held yet, as this token sees it: until all are done, or, where it may join them, until the first is. A caller that
   * waits to be upgraded is one of the holders, and waits for the others.
   */
  remaining(key: string, token: string): number {
    if (isUpgradeToken(token)) return this.#remainingBeside(key, tokenIn('upgradeable', token));
    const entry = this.of(key);
    // Its limit was set lower than what it wants: that ends when it is set again.
    if (entry === undefined) return this.isInTheWay(key, token) ? Infinity : 0;
    const left = [...entry.holds.values()].map((hold) => this.#left(hold));
    const joins = entry.mode !== 'exclusive' && isAlike(togetherIn(token), entry.mode);
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

  #remainingBeside(key: string, token: string): number {
    const others = [...(this.of(key)?.holds ?? [])].filter(([other]) => other !== token);
    return Math.max(0, ...others.map(([, hold]) => this.#left(hold)));
  }

  #left({ since, ttlMs }: Hold): number {
    return ttlMs - elapsedMs(since, this.#clock.now());
  }
}
