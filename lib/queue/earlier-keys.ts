import type { RecentMap } from '../collections/recent-map.js';
import type { Foundation } from '../lease/foundation.js';
import type { BriefHold, Held, LeaseRequest, Unavailable } from '../store/lock-store.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import type { LockRequests } from './requests.js';

/** At most how long a waiting call holds some of its keys, in ms: twice as long with each round, up to the longest. */
const FIRST_LIMIT_MS = 100;
const LONGEST_LIMIT_MS = 1_000;

/** A caller that freezes or dies meanwhile costs that time and this one, in ms. */
const SPARE_MS = 1_000;

export interface EarlierDependencies extends Foundation {
  readonly requests: LockRequests;
  /**
   * Keys of which this process has seen that they are held for longer than a waiting call may hold others. The holder
   * may have begun a moment ago, where one long job follows another.
   */
  readonly slow: RecentMap<string, true>;
  /** Whether a section of this process holds a busy key, and waits for one of these keys. */
  readonly isWantedInside: (keys: readonly string[], busy: string) => boolean;
}

/**
 * A call for several keys waits for one of them at a time. The call holds the keys before the busy one, but only
 * briefly; not at all if the busy key has been held for longer, or was lately. Then the call returns them, and waits for
 * the busy key alone. It never waits for an earlier key while it holds a later one.
 *
 * One order for all callers excludes circles among them (Havender 1968). The limit ends circles with sections that hold
 * a later key and ask for an earlier one. It also keeps free keys from waiting for a busy one.
 */
export class EarlierKeys {
  /** All keys of the call, in the order that is the same in every process. */
  readonly #keys: readonly string[];
  readonly #deps: EarlierDependencies;
  /** The key at which it was refused last. */
  #busy: string | undefined;
  /** The key in whose line the call stands. */
  #at: string | undefined;
  /** The keys before that one, while the call holds them. */
  #held: LeaseRequest | undefined;
  #heldSince: Instant | undefined;
  /** When it came to that key. */
  #atSince: Instant;
  #limitMs = FIRST_LIMIT_MS;
  #yields = false;

  constructor(keys: readonly string[], dependencies: EarlierDependencies) {
    this.#keys = keys;
    this.#deps = dependencies;
    this.#atSince = this.#now();
  }

  /** The keys as the store is to be asked for them. Refused at the first one, a request changes nothing. */
  get asked(): readonly string[] {
    const busy = this.#busy;
    if (busy === undefined) return this.#keys;
    return [busy, ...this.#keys.filter((key) => key !== busy)];
  }

  /** What the store is to hold for it if it is refused at another key than the one that it waits for. */
  keepsFor(ttlMs: number): BriefHold | undefined {
    if (this.leftMs === 0) return undefined;
    const limitMs = this.#nextLimitMs;
    const before = this.#busy === undefined ? 0 : this.#keys.indexOf(this.#busy);
    return { limitMs, ttlMs: Math.min(ttlMs, limitMs + SPARE_MS), before };
  }

  /** For how many ms yet the call may hold keys while it waits; `Infinity` if it holds none. */
  get leftMs(): number {
    if (this.#heldSince === undefined || this.#held === undefined) return Infinity;
    if (this.#yields) return 0;
    return Math.max(0, this.#limitMs - elapsedMs(this.#heldSince, this.#now()));
  }

  /** Whether it holds one of these keys while it waits for one that they are asked for inside of. */
  blocks(keys: readonly string[], isHeldAround: (key: string) => boolean): boolean {
    return (
      this.#at !== undefined &&
      this.#held?.keys.some((key) => keys.includes(key)) === true &&
      isHeldAround(this.#at)
    );
  }

  /** What it holds is released at its next look, which is to be at once. */
  yield(): void {
    this.#yields = true;
  }

  /** The store has granted all keys. */
  granted(): void {
    this.#leave();
    this.forget();
  }

  /** The store holds nothing for it any more. */
  forget(): void {
    this.#busy = undefined;
    this.#at = undefined;
    this.#held = undefined;
    this.#heldSince = undefined;
    this.#limitMs = FIRST_LIMIT_MS;
    this.#yields = false;
  }

  /** The call was refused at a key. Further requests begin with that one, so that they take no other key while it is busy. */
  meets(key: string): void {
    if (this.#keys.includes(key)) this.#busy = key;
  }

  /** The call was refused at a key, and stands in line there. Resolves with an outage that makes the rest unknown. */
  async refused(
    { key, heldForMs = 0, kept }: Held,
    keeps: BriefHold | undefined,
    token: string,
  ): Promise<Unavailable | undefined> {
    const { slow, isWantedInside } = this.#deps;
    if (heldForMs >= this.#limitMs) slow.set(key, true);
    if (key === this.#at) return this.leftMs > 0 ? undefined : this.#giveBack();
    this.#limitMs = this.#nextLimitMs;
    this.#leave();
    this.#at = key;
    this.#atSince = this.#now();
    this.#held = undefined;
    const earlier = this.#keys.slice(0, Math.max(0, this.#keys.indexOf(key)));
    if (kept !== true || keeps === undefined || earlier.length === 0) {
      this.#heldSince = undefined;
      this.#yields = false;
      return undefined;
    }
    this.#heldSince ??= this.#now();
    this.#held = { keys: earlier, token, ttlMs: keeps.ttlMs };
    const mustNot = this.leftMs === 0 || slow.has(key) || isWantedInside(earlier, key);
    return mustNot ? this.#giveBack() : undefined;
  }

  /** One that has waited for a key alone begins again, with a longer limit. */
  get #nextLimitMs(): number {
    const isAlone = this.#at !== undefined && this.#at !== this.#keys[0] && !this.#held;
    return isAlone ? Math.min(2 * this.#limitMs, LONGEST_LIMIT_MS) : this.#limitMs;
  }

  /** The call had the key for which it has waited. */
  #leave(): void {
    if (this.#at !== undefined && elapsedMs(this.#atSince, this.#now()) < FIRST_LIMIT_MS)
      this.#deps.slow.delete(this.#at);
  }

  /** The call waits for the busy key alone from here on. */
  async #giveBack(): Promise<Unavailable | undefined> {
    const held = this.#held;
    this.#held = undefined;
    this.#heldSince = undefined;
    this.#yields = false;
    return held && this.#deps.requests.giveUp(held);
  }

  #now(): Instant {
    return this.#deps.scheduler.runtime.now();
  }
}
