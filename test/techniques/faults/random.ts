/** Chance from a seed: the same seed gives the same choices in the same order. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to and without 1 (mulberry32). */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let bits = this.#state;
    bits = Math.imul(bits ^ (bits >>> 15), bits | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.between(0, choices.length - 1)] as T;
  }

  /** So many of them, in any order; all of them when no number is given. */
  sample<T>(choices: readonly T[], size = choices.length): readonly T[] {
    const rest = [...choices];
    return Array.from({ length: size }, () => rest.splice(this.between(0, rest.length - 1), 1)[0]!);
  }

  /** Another source of chance, which does not shift when more is drawn from this one. */
  fork(branch: number): Random {
    return new Random(Math.imul(this.#state ^ 0x9e3779b9, 2 * branch + 1) + branch);
  }
}
