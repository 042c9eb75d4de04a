import type { World } from '../world/world.js';

/** What a request takes, there and back. */
export const TRIP_MS = 1;
/** So long a place in line may be called without an answer. */
const CLAIM_MS = 1_000;
/** Of a section. */
const TTL_MS = 10_000;
/** What a key of a waiting call is leased for beyond the time for which the call may hold it. */
const MARGIN_MS = 1_000;

/** A caller has the key, until the caller gives it back or its lease ends. */
export interface Grant {
  readonly key: Key;
  readonly sinceMs: number;
}

/** For how long a caller waits in line. */
export interface Patience {
  readonly withinMs: number;
  /** It does not wait at all if the holder has had the key for longer. */
  readonly unlessHeldMs: number;
}

const INDEFINITE: Patience = { withinMs: Infinity, unlessHeldMs: Infinity };

interface Place {
  readonly caller: Caller;
  readonly called: (grant: Grant | undefined) => void;
}

/** A key as Redis keeps it: one holder, and a line, first in, first out. It knows no other key. */
export class Key {
  readonly name: number;
  grant: Grant | undefined;
  readonly #world: World;
  #line: readonly Place[] = [];

  constructor(world: World, name: number) {
    this.#world = world;
    this.name = name;
  }

  /** For how long it has been held. */
  get heldMs(): number {
    return this.grant === undefined ? 0 : this.#world.nowMs - this.grant.sinceMs;
  }

  take(): Grant {
    this.grant = { key: this, sinceMs: this.#world.nowMs };
    return this.grant;
  }

  /** @returns nothing when the time is over first, or the key has been held for too long */
  wait(caller: Caller, { withinMs, unlessHeldMs }: Patience): Promise<Grant | undefined> {
    if (this.grant === undefined) return Promise.resolve(this.take());
    if (this.heldMs > unlessHeldMs || withinMs <= 0) return Promise.resolve(undefined);
    return new Promise((called) => {
      const place = { caller, called };
      this.#line = [...this.#line, place];
      if (withinMs === Infinity) return;
      this.#world.in(withinMs * 1_000, () => {
        if (!this.#line.includes(place)) return;
        this.#line = this.#line.filter((other) => other !== place);
        called(undefined);
      });
    });
  }

  /** Ends a grant, if it is not over. The first in line has the key at once, or the next one if that does not answer. */
  end(grant: Grant): void {
    if (this.grant !== grant) return;
    this.grant = undefined;
    const [next, ...others] = this.#line;
    if (next === undefined) return;
    this.#line = others;
    const claim = this.take();
    if (next.caller.isFrozen)
      this.#world.in(CLAIM_MS * 1_000, () => next.caller.isFrozen && this.end(claim));
    next.called(claim);
  }
}

/** A process with one call at a time. */
export class Caller {
  readonly #world: World;
  readonly #grants = new Set<Grant>();
  /** How long it may hold what it has of a call that waits; nothing in a section, which is renewed. */
  limitMs: number | undefined;
  /** Keys that it has seen held for longer than it may hold others meanwhile. */
  readonly slow = new Set<Key>();
  #frozenUntilMs = 0;

  constructor(world: World) {
    this.#world = world;
  }

  get isFrozen(): boolean {
    return this.#world.nowMs < this.#frozenUntilMs;
  }

  get nowMs(): number {
    return this.#world.nowMs;
  }

  /** It does nothing for so long, and its leases end. */
  freeze(forMs: number): void {
    this.#frozenUntilMs = Math.max(this.#frozenUntilMs, this.nowMs + forMs);
    for (const grant of this.#grants) {
      const { limitMs } = this;
      const endMs =
        limitMs === undefined ? this.nowMs + TTL_MS : grant.sinceMs + limitMs + MARGIN_MS;
      this.#world.at(endMs * 1_000, () => this.isFrozen && grant.key.end(grant));
    }
  }

  async sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => this.#world.in(ms * 1_000, resolve));
    while (this.isFrozen) {
      const leftMs = this.#frozenUntilMs - this.nowMs;
      await new Promise<void>((resolve) => this.#world.in(leftMs * 1_000, resolve));
    }
  }

  /** All of them or none, at once. */
  async tryAll(keys: readonly Key[]): Promise<readonly Grant[] | undefined> {
    await this.sleep(TRIP_MS / 2);
    const areFree = keys.every(({ grant }) => grant === undefined);
    const grants = areFree ? keys.map((key) => this.#remember(key.take())) : undefined;
    await this.sleep(TRIP_MS / 2);
    return grants;
  }

  async wait(key: Key, patience = INDEFINITE): Promise<Grant | undefined> {
    await this.sleep(TRIP_MS / 2);
    const grant = await key.wait(this, patience);
    if (grant !== undefined) this.#remember(grant);
    await this.sleep(TRIP_MS / 2);
    return grant;
  }

  #remember(grant: Grant): Grant {
    this.#grants.add(grant);
    return grant;
  }

  giveBack(grants: readonly Grant[]): void {
    for (const grant of grants) {
      this.#grants.delete(grant);
      grant.key.end(grant);
    }
  }
}
