/**
 * What can be an entry of a chain. The fields are the chain's. Each class declares them itself: V8 is slow to initialize
 * the fields of a base class that has several kinds of subclasses.
 */
export interface Linked<Entry extends Linked<Entry>> {
  /** The chain that it is in. */
  chain: Chain<Entry> | undefined;
  before: Entry | undefined;
  after: Entry | undefined;
}

/** What made a chain. */
export interface ChainOwner<Entry extends Linked<Entry>> {
  /** The last entry was taken out. */
  onEmpty(chain: Chain<Entry>): void;
}

/**
 * Entries in the order in which they were added, each in one chain at a time. An entry can be taken out of the middle,
 * and nothing is made for it: the links are in the entries themselves.
 */
export class Chain<Entry extends Linked<Entry>> {
  #first: Entry | undefined;
  #last: Entry | undefined;
  readonly #owner: ChainOwner<Entry> | undefined;

  constructor(owner?: ChainOwner<Entry>) {
    this.#owner = owner;
  }

  /** The oldest. */
  get first(): Entry | undefined {
    return this.#first;
  }

  get isEmpty(): boolean {
    return this.#first === undefined;
  }

  has(entry: Entry): boolean {
    return entry.chain === this;
  }

  add(entry: Entry): void {
    const last = this.#last;
    entry.chain = this;
    entry.before = last;
    if (last === undefined) this.#first = entry;
    else last.after = entry;
    this.#last = entry;
  }

  /**
   * Returns whether the entry was there. It refers to no neighbour afterwards: an old entry would keep all later ones
   * from being collected by quick garbage collections.
   */
  delete(entry: Entry): boolean {
    if (entry.chain !== this) return false;
    const { before, after } = entry;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    entry.chain = undefined;
    entry.before = undefined;
    entry.after = undefined;
    if (this.isEmpty) this.#owner?.onEmpty(this);
    return true;
  }

  /** The entries as they are now, the oldest first. */
  get all(): Entry[] {
    const entries: Entry[] = [];
    for (let entry = this.#first; entry !== undefined; entry = entry.after) entries.push(entry);
    return entries;
  }
}
