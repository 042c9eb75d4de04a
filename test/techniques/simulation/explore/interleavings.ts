import type { Delivery, DeliveryOrder } from '../world/deliveries.js';

/** A message of one world, as all worlds know it that have gone the same way until then. */
type Head = Omit<Delivery, 'arrive'>;

/** A moment at which one of several messages was to arrive. */
interface Moment {
  taken: Head;
  /** Every order that begins with one of these has been played. */
  readonly done: Head[];
  readonly left: Head[];
}

/** What would follow was played before: only messages to different ends would arrive in another order. */
export class SeenBefore extends Error {
  override readonly name = 'SeenBefore';
}

/**
 * Every order in which the first messages can arrive, one for each world that is played: depth first, by playing the same choices up to the
 * last one that has an alternative.
 *
 * The order of two messages to different ends makes no difference but in the time, so it is tried once: sleep sets (Godefroid,
 * "Partial-Order Methods for the Verification of Concurrent Systems", 1996, chapter 5). What arrives at one process or server depends on
 * each other.
 */
export class Interleavings implements DeliveryOrder {
  readonly #depth: number;
  readonly #path: Moment[] = [];
  /** By pipe, to whom. */
  readonly #asleep = new Map<number, string>();
  #arrived = 0;
  #isDeeper = false;

  /** @param depth how many messages, from the first on, arrive in every order; the others as they were sent */
  constructor(depth: number) {
    this.#depth = depth;
  }

  /** Whether there were messages beyond the depth in any world so far. */
  get isDeeper(): boolean {
    return this.#isDeeper;
  }

  /** @throws SeenBefore */
  next(heads: readonly Delivery[]): Delivery {
    if (this.#arrived === this.#depth) {
      this.#isDeeper = true;
      return heads[0]!;
    }
    const moment = this.#path[this.#arrived] ?? this.#newMoment(heads);
    this.#arrived += 1;
    const { taken, done } = moment;
    for (const { pipe, to } of done) this.#asleep.set(pipe, to);
    for (const [pipe, to] of this.#asleep) if (to === taken.to) this.#asleep.delete(pipe);
    return heads.find(({ pipe }) => pipe === taken.pipe)!;
  }

  /** To be called when a world has been played. `false`: that was the last. */
  advance(): boolean {
    this.#arrived = 0;
    this.#asleep.clear();
    for (let last = this.#path.at(-1); last !== undefined; last = this.#path.at(-1)) {
      const next = last.left.shift();
      if (next !== undefined) {
        last.done.push(last.taken);
        last.taken = next;
        return true;
      }
      this.#path.pop();
    }
    return false;
  }

  #newMoment(heads: readonly Delivery[]): Moment {
    const [taken, ...left] = heads
      .filter(({ pipe }) => !this.#asleep.has(pipe))
      .map(({ pipe, to }) => ({ pipe, to }));
    if (taken === undefined) throw new SeenBefore();
    const moment = { taken, done: [], left };
    this.#path.push(moment);
    return moment;
  }
}
