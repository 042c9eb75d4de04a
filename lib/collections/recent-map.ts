/** A `Map` with a limit: the oldest entry makes room for a new one. */
export class RecentMap<Key, Value> extends Map<Key, Value> {
  readonly #most: number;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  override set(key: Key, value: Value): this {
    const [oldest] = this.keys();
    if (oldest !== undefined && this.size >= this.#most && !this.has(key)) this.delete(oldest);
    return super.set(key, value);
  }
}
