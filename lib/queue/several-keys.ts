import type { RecentMap } from '../collections/recent-map.js';
import { extendAll, releaseAll, wasSent } from '../lease/every-key.js';
import { briefMs } from '../store/claim.js';
import type {
  AcquireOutcome,
  Granted,
  Held,
  LeaseStore,
  LinePlace,
  Unavailable,
} from '../store/lock-store.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import type { Scheduler } from '../time/scheduler.js';
import type { LockRequest } from './caller.js';
import type { AttemptManner, AttemptOutcome, LockRequests } from './requests.js';

/** At most how long a waiting call holds some of its keys, in ms: twice as long with each round, up to the longest. */
const FIRST_LIMIT_MS = 100;
const LONGEST_LIMIT_MS = 1_000;

export interface SeveralKeysDependencies {
  readonly store: LeaseStore;
  readonly requests: LockRequests;
  readonly scheduler: Scheduler;
  /**
   * Keys of which this process has seen that they are held for longer than a waiting call may hold others. The holder
   * may have begun a moment ago, where one long job follows another.
   */
  readonly slow: RecentMap<string, true>;
  /** Keys whose last request was an outage. They are asked for first, so that no other key is held while they do not reply. */
  readonly doubtful: RecentMap<string, true>;
  /** Whether a section of this process holds a busy key, and waits for one of these keys. */
  readonly isWantedInside: (keys: readonly string[], busy: string) => boolean;
}

/** One attempt to get the keys of a call. */
export const attempt = (
  request: LockRequest,
  how: AttemptManner,
  dependencies: SeveralKeysDependencies,
): Promise<AttemptOutcome> =>
  request.keys.length === 1
    ? dependencies.requests.attempt(request, how)
    : new SeveralKeys(request.keys, dependencies).attempt(request, how);

/** How one attempt asks for each of its keys. */
interface Asking extends Pick<AttemptManner, 'line' | 'joins' | 'splits'> {
  readonly token: string;
  readonly ttlMs: number;
}

/** A key that the store has granted. */
interface Part {
  readonly granted: Granted;
  /** When the reply came. */
  readonly at: Instant;
}

/**
 * Takes several keys by requests for one key each. Where nothing is in the way, one request takes all of them or none.
 * Otherwise they are asked for one after the other, in the order that is the same in every process. The leases of the
 * keys are short until all are granted. Then they get the whole TTL, and the largest of their fencing tokens.
 *
 * The call waits for one key at a time, in the line of that key. It holds the keys before the busy one, but only
 * briefly; not at all if the busy key has been held for longer, or was lately. Then the call returns them, and waits for
 * the busy key alone. It asks for that one first, and for the others when it has it. It never waits for an earlier key
 * while it holds a later one.
 *
 * One order for all callers excludes circles among them (Havender 1968). The limit ends circles with sections that hold
 * a later key and ask for an earlier one. It also keeps free keys from waiting for a busy one.
 */
export class SeveralKeys {
  /** In the order that is the same in every process: by code units. */
  readonly #keys: readonly string[];
  readonly #deps: SeveralKeysDependencies;
  /** What the token has. While the call waits: all keys before the busy one, or none. */
  readonly #parts = new Map<string, Part>();
  #heldSince: Instant | undefined;
  /** The keys in whose lines the token stands, or may. */
  readonly #places = new Set<string>();
  /** The key at which the call was refused last, and its ticket there. */
  #busy: string | undefined;
  #ticket: number | undefined;
  #busySince: Instant;
  /** Whether it waits for that key without the keys before it. */
  #isAlone = false;
  #limitMs = FIRST_LIMIT_MS;
  #yields = false;

  constructor(keys: readonly string[], dependencies: SeveralKeysDependencies) {
    this.#keys = keys;
    this.#deps = dependencies;
    this.#busySince = this.#now();
    const { doubtful, slow } = dependencies;
    this.#busy = keys.find((key) => doubtful.has(key)) ?? keys.find((key) => slow.has(key));
  }

  /** Asks for the keys that the token does not have yet. */
  async attempt(request: LockRequest, how: AttemptManner): Promise<AttemptOutcome> {
    const { requests } = this.#deps;
    const { ttlMs } = request;
    const { token = requests.newToken(request), line, joins, splits } = how;
    if (this.#parts.size === 0 && this.#places.size === 0) {
      const sentAt = this.#now();
      const outcome = await this.#askTogether(this.#keys, token, ttlMs);
      if (outcome !== undefined && (outcome.status !== 'held' || line === undefined))
        return requests.judged(request, { token, sentAt }, outcome);
      if (outcome !== undefined && outcome.key !== this.#busy) this.#comesTo(outcome.key);
    }
    const asking = { token, ttlMs: Math.min(ttlMs, briefMs(this.#keys.length)) };
    const refusal = await this.#askInOrder({ ...asking, line, joins, splits });
    return refusal ?? this.#lease(request, token);
  }

  /** For how many ms yet the call may hold keys while it waits; `Infinity` if it holds none. */
  get leftMs(): number {
    if (this.#heldSince === undefined) return Infinity;
    if (this.#yields) return 0;
    return Math.max(0, this.#limitMs - elapsedMs(this.#heldSince, this.#now()));
  }

  /** The keys that the token has, or in whose lines it stands. */
  get touched(): readonly string[] {
    return [...this.#parts.keys(), ...this.#places];
  }

  /** Whether it holds one of these keys while it waits for one that they are asked for inside of. */
  blocks(keys: readonly string[], isHeldAround: (key: string) => boolean): boolean {
    return (
      this.#busy !== undefined &&
      keys.some((key) => this.#parts.has(key)) &&
      isHeldAround(this.#busy)
    );
  }

  /** What it holds is released at its next look, which is to be at once. */
  yield(): void {
    this.#yields = true;
  }

  /** The lock is with its caller. */
  granted(): void {
    this.#comesFrom(this.#busy);
    this.#busy = undefined;
    this.#ticket = undefined;
    this.forget();
  }

  /** The store has nothing for its token any more. Another token may come back to the busy key with the old ticket. */
  forget(): void {
    this.#parts.clear();
    this.#places.clear();
    this.#heldSince = undefined;
    this.#isAlone = false;
    this.#limitMs = FIRST_LIMIT_MS;
    this.#yields = false;
  }

  /** Takes the keys if no other caller is in the way of any of them. `undefined`: they have to be asked for one by one. */
  async #askTogether(
    keys: readonly string[],
    token: string,
    ttlMs: number,
  ): Promise<AcquireOutcome | undefined> {
    const outcome = await this.#deps.store.acquireTogether({ keys, token, ttlMs });
    if (outcome?.status === 'granted') for (const key of keys) this.#has(key, outcome);
    return outcome;
  }

  /** Returns what keeps the call from having all of its keys; `undefined` when it has them. */
  async #askInOrder(asking: Asking): Promise<Held | Unavailable | undefined> {
    const isMissing = (key: string): boolean => key !== this.#busy && !this.#parts.has(key);
    const others = this.#keys.filter(isMissing);
    const busy = this.#busy;
    if (busy !== undefined && !this.#parts.has(busy)) {
      const refusal = await this.#ask(busy, asking);
      if (refusal !== undefined) return refusal;
      if (others.length > 1) {
        const outcome = await this.#askTogether(others, asking.token, asking.ttlMs);
        if (outcome?.status === 'granted') return undefined;
        if (outcome?.status === 'unavailable') return this.#abandon(others, asking, outcome);
      }
    }
    for (const key of others) {
      const refusal = await this.#ask(key, asking);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** Returns what keeps it from having a key, if anything does. */
  async #ask(key: string, asking: Asking): Promise<Held | Unavailable | undefined> {
    const { line } = asking;
    if (line !== undefined) this.#places.add(key);
    const place = line && this.#placeAt(key, line);
    const outcome = await this.#deps.store.acquire({
      ...{ ...asking, key, line: place },
      isRefused: key === this.#busy,
      holdsOthers: this.#parts.size > 0,
    });
    if (outcome.status === 'held') return this.#refused(outcome, asking);
    if (outcome.status === 'unavailable') {
      this.#deps.doubtful.set(key, true);
      if (key !== this.#busy) this.#comesTo(key);
      return this.#abandon([key], asking, outcome);
    }
    this.#deps.doubtful.delete(key);
    this.#places.delete(key);
    this.#has(key, outcome);
    return undefined;
  }

  /** A call comes to a line as the last, unless it has stood there before. */
  #placeAt(key: string, { id, ttlMs }: LinePlace): LinePlace {
    return { id, ttlMs, ticket: key === this.#busy ? this.#ticket : undefined };
  }

  #has(key: string, granted: Granted): void {
    const at = this.#now();
    this.#heldSince ??= at;
    this.#parts.set(key, { granted, at });
  }

  /** The call was refused at a key, and waits for that one. */
  async #refused(held: Held, asking: Asking): Promise<Held | Unavailable> {
    const { slow } = this.#deps;
    const { key, ticket, heldForMs = 0 } = held;
    if (heldForMs >= this.#limitMs) slow.set(key, true);
    if (key !== this.#busy) this.#comesTo(key);
    this.#ticket = ticket ?? this.#ticket;
    const had = [...this.#parts.keys()];
    // A later key is never held while an earlier one is waited for.
    const earlier = this.#keys.filter((other) => other < key);
    // Without a ticket the next attempt has another token.
    const mayHold = ticket !== undefined && this.leftMs > 0 && !this.#isAlone && !slow.has(key);
    const holds = mayHold && !this.#deps.isWantedInside(earlier, key);
    const outage =
      (await this.#giveBack(holds ? had.filter((other) => other > key) : had, asking)) ??
      (holds ? await this.#takeEarlier(key, asking) : undefined);
    this.#isAlone = ticket !== undefined && this.#parts.size === 0 && key !== this.#keys[0];
    return outage ?? held;
  }

  /** Takes all keys before the busy one, or keeps none of them. */
  async #takeEarlier(busy: string, asking: Asking): Promise<Unavailable | undefined> {
    const isMissing = (key: string): boolean => key < busy && !this.#parts.has(key);
    for (const key of this.#keys.filter(isMissing)) {
      const outcome = await this.#deps.store.acquire({ ...asking, key, line: undefined });
      if (outcome.status === 'unavailable') return this.#abandon([key], asking, outcome);
      if (outcome.status === 'held') return this.#giveBack([...this.#parts.keys()], asking);
      this.#has(key, outcome);
    }
    return undefined;
  }

  #comesTo(key: string): void {
    // One that has waited for a key alone begins again, with a longer limit.
    if (this.#isAlone) this.#limitMs = Math.min(2 * this.#limitMs, LONGEST_LIMIT_MS);
    this.#isAlone = false;
    this.#comesFrom(this.#busy);
    this.#busy = key;
    this.#busySince = this.#now();
    this.#ticket = undefined;
  }

  /** The call had the key for which it has waited. */
  #comesFrom(key: string | undefined): void {
    if (key !== undefined && elapsedMs(this.#busySince, this.#now()) < FIRST_LIMIT_MS)
      this.#deps.slow.delete(key);
  }

  /** Resolves with an outage after which it is unknown what the token has. */
  async #giveBack(
    keys: readonly string[],
    { token, ttlMs }: Asking,
  ): Promise<Unavailable | undefined> {
    if (keys.length === 0) return undefined;
    const { requests, store } = this.#deps;
    const outcome = await requests.pending.add(releaseAll(store, { keys, token, ttlMs }));
    if (outcome.status === 'unavailable') return this.#abandon([], { token, ttlMs }, outcome);
    for (const key of keys) this.#parts.delete(key);
    if (this.#parts.size > 0) return undefined;
    this.#heldSince = undefined;
    this.#yields = false;
    return undefined;
  }

  /** After an outage nothing is held: neither the keys of the request without a reply, nor those before it. */
  #abandon(keys: readonly string[], { token, ttlMs }: Asking, outage: Unavailable): Unavailable {
    const asked = outage.sent === false ? [] : keys;
    const had = [...this.#parts.keys(), ...asked];
    if (had.length === 0) return outage;
    this.#deps.requests.discard({ keys: had, token, ttlMs });
    this.#parts.clear();
    this.#heldSince = undefined;
    return wasSent(outage);
  }

  /** All keys are granted: gives them the TTL and the fencing token of the lock. */
  async #lease(request: LockRequest, token: string): Promise<AttemptOutcome> {
    const { requests, store } = this.#deps;
    const { ttlMs } = request;
    const sentAt = this.#now();
    const parts = [...this.#parts.values()];
    const tokens = parts.map(({ granted }) => granted.fencingToken);
    const fencingToken = Math.max(...tokens);
    const renewal = { keys: this.#keys, token, ttlMs, fencingToken, validForMs: 0 };
    const [outcome] = await extendAll(store, [renewal]);
    if (outcome?.status === 'unavailable') return this.#abandon([], { token, ttlMs }, outcome);
    if (outcome?.status === 'lost') {
      const sinceMs = elapsedMs(this.#heldSince ?? sentAt, this.#now());
      return this.#abandon([], { token, ttlMs }, lostWithin(sinceMs));
    }
    return requests.judged(
      request,
      { token, sentAt },
      {
        status: 'granted',
        fencingToken,
        isFromClock: parts.every((part) => this.#isBehindClock(part, fencingToken)),
        othersWait: parts.some(({ granted }) => granted.othersWait !== false),
        otherLimit: parts.find(({ granted }) => granted.otherLimit !== undefined)?.granted
          .otherLimit,
      },
    );
  }

  /** Whether the clock of a key's server has passed a token, which may come from another server. */
  #isBehindClock({ granted, at }: Part, fencingToken: number): boolean {
    const usSince = (this.#now().monotonicMs - at.monotonicMs) * 1_000;
    return granted.isFromClock === true && fencingToken - granted.fencingToken <= usSince;
  }

  #now(): Instant {
    return this.#deps.scheduler.runtime.now();
  }
}

/** A key was lost while the others were asked for: the caller was too slow, or the store has lost it. */
function lostWithin(ms: number): Unavailable {
  const message = `lost a key within ${ms.toFixed(0)} ms, while it was asked for the others`;
  return {
    status: 'unavailable',
    nodes: [{ node: 'store', kind: 'timeout', message }],
    transient: true,
  };
}
