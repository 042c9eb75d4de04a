import { MOST_DELETIONS } from './most-deletions.js';

/**
 * A `Map` for entries that come and go all the time, such as the locks that are held. It starts with a new `Map` after some deletions, so
 * that V8 can collect what was in it: see `MOST_DELETIONS`. Who iterates over it may still see what is deleted meanwhile.
 */
export class BriefMap<Key, Value> {
  #map = new Map<Key, Value>();
  #deletions = 0;

  get size(): number {
    return this.#map.size;
  }

  get(key: Key): Value | undefined {
    return this.#map.get(key);
  }

  has(key: Key): boolean {
    return this.#map.has(key);
  }

  set(key: Key, value: Value): void {
    this.#map.set(key, value);
  }

  delete(key: Key): boolean {
    if (!this.#map.delete(key)) return false;
    this.#deletions += 1;
    if (this.#deletions >= Math.max(MOST_DELETIONS, this.#map.size)) this.#startAnew(this.#map);
    return true;
  }

  clear(): void {
    this.#startAnew();
  }

  keys(): IterableIterator<Key> {
    return this.#map.keys();
  }

  values(): IterableIterator<Value> {
    return this.#map.values();
  }

  [Symbol.iterator](): IterableIterator<[Key, Value]> {
    return this.#map[Symbol.iterator]();
  }

  #startAnew(left?: Map<Key, Value>): void {
    this.#map = new Map(left);
    this.#deletions = 0;
  }
}
