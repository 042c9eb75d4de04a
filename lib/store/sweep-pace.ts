/**
 * When to look through a table for what has ended: when it has doubled since the last look, and not before it has a certain size. So a
 * look costs no more than the entries that came since.
 */
export class SweepPace {
  readonly #smallest: number;
  #at: number;

  constructor(smallest: number) {
    this.#smallest = smallest;
    this.#at = smallest;
  }

  isDue(size: number): boolean {
    return size >= this.#at;
  }

  /** @param left how many entries are left */
  swept(left: number): void {
    this.#at = Math.max(this.#smallest, 2 * left);
  }
}
