/**
 * The number of deletions after which a collection of entries that come and go starts anew.
 *
 * V8 keeps the entries of a `Map` or `Set` in a table. When deleted entries fill the table, the others move to a new
 * one. The old table refers to the new one, for iterators that still read it (`src/objects/ordered-hash-table.h` in V8).
 * Only a full collection frees a table that has become old. Until then it keeps all later tables alive, with the entries
 * that they had, and every quick collection copies them. That took a quarter of the CPU of a lock. The table of a new
 * `Map` is the successor of none.
 */
export const MOST_DELETIONS = 256;

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
