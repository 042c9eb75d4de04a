/** A semaphore as simple as it can be written: what the stores are compared with. It knows nothing of the library. */

/** Somebody who wants places, as many as `limit` lets it have. */
export interface Wish {
  readonly id: number;
  readonly places: number;
  readonly limit: number;
  readonly ttlMs: number;
}

interface Hold {
  readonly places: number;
  readonly endsAtMs: number;
}

/** Whoever is let in from the line has so long to say that it is there. */
const CLAIM_MS = 1_000;

export class PlainSemaphore {
  nowMs = 0;
  readonly #holds = new Map<number, Hold>();
  #line: readonly Wish[] = [];
  /** Counts in the place of those that wishes state. */
  #limit: number | undefined;

  get holders(): readonly number[] {
    for (const [id, { endsAtMs }] of this.#holds)
      if (endsAtMs <= this.nowMs) this.#holds.delete(id);
    return [...this.#holds.keys()].sort((a, b) => a - b);
  }

  get line(): readonly number[] {
    return this.#line.map(({ id }) => id);
  }

  get inUse(): number {
    return this.holders.reduce((sum, id) => sum + (this.#holds.get(id)?.places ?? 0), 0);
  }

  /** Answers whether it has them. Who waits stays in line, or stands at its end. */
  ask(wish: Wish, waits: boolean): boolean {
    this.#letIn(wish.id);
    const isNext = this.#line.every(({ id }, index) => index > 0 || id === wish.id);
    const holds = this.holders.includes(wish.id);
    if (!holds && !(isNext && this.#fits(wish))) {
      if (waits && !this.line.includes(wish.id)) this.#line = [...this.#line, wish];
      return false;
    }
    this.#take(wish, wish.ttlMs);
    this.#letIn();
    return true;
  }

  /** Answers whether it had them until now. */
  renew({ id, places, ttlMs }: Wish): boolean {
    if (!this.holders.includes(id)) return false;
    this.#holds.set(id, { places, endsAtMs: this.nowMs + ttlMs });
    return true;
  }

  /** Gives back what it has, and leaves the line. Answers whether it had anything. */
  leave({ id }: Wish): boolean {
    const held = this.holders.includes(id);
    this.#holds.delete(id);
    this.#line = this.#line.filter((other) => other.id !== id);
    this.#letIn();
    return held;
  }

  setLimit(limit: number | undefined): void {
    this.#limit = limit;
    this.#letIn();
  }

  /** From the head of the line, until the first one who does not fit. */
  #letIn(upTo?: number): void {
    for (const wish of [...this.#line]) {
      if (wish.id === upTo || !this.#fits(wish)) return;
      this.#take(wish, Math.min(wish.ttlMs, CLAIM_MS));
    }
  }

  #fits({ places, limit }: Wish): boolean {
    return this.inUse + places <= (this.#limit ?? limit);
  }

  #take({ id, places }: Wish, forMs: number): void {
    this.#line = this.#line.filter((other) => other.id !== id);
    this.#holds.set(id, { places, endsAtMs: this.nowMs + forMs });
  }
}
