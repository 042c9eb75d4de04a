import { MOST_DELETIONS } from './most-deletions.js';

/** A `Set` for what comes and goes all the time: as `BriefMap`. */
export class BriefSet<Value> {
  #set = new Set<Value>();
  #deletions = 0;

  get size(): number {
    return this.#set.size;
  }

  /** The oldest. */
  get first(): Value | undefined {
    return this.#set.values().next().value;
  }

  has(value: Value): boolean {
    return this.#set.has(value);
  }

  add(value: Value): void {
    this.#set.add(value);
  }

  delete(value: Value): boolean {
    if (!this.#set.delete(value)) return false;
    this.#deletions += 1;
    if (this.#deletions >= Math.max(MOST_DELETIONS, this.#set.size)) this.#startAnew(this.#set);
    return true;
  }

  clear(): void {
    this.#startAnew();
  }

  [Symbol.iterator](): IterableIterator<Value> {
    return this.#set[Symbol.iterator]();
  }

  #startAnew(left?: Set<Value>): void {
    this.#set = new Set(left);
    this.#deletions = 0;
  }
}
