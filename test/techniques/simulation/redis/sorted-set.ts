/** A member and its score. */
export interface Scored {
  readonly member: string;
  readonly score: number;
}

/** A sorted set: in order of scores, and of bytes where those are the same. */
export class SortedSet {
  readonly #byMember: Map<string, Scored>;
  readonly #inOrder: Scored[];

  constructor(members: readonly Scored[] = []) {
    this.#inOrder = [...members];
    this.#byMember = new Map(members.map((each) => [each.member, each]));
  }

  get size(): number {
    return this.#inOrder.length;
  }

  score(member: string): number | undefined {
    return this.#byMember.get(member)?.score;
  }

  /** Puts it in, or elsewhere. */
  set(member: string, score: number): void {
    this.delete(member);
    const added = { member, score };
    const last = this.#inOrder.at(-1);
    this.#byMember.set(member, added);
    if (last === undefined || isBefore(last, added)) this.#inOrder.push(added);
    else this.#inOrder.splice(this.#indexOf(added), 0, added);
  }

  delete(member: string): boolean {
    const found = this.#byMember.get(member);
    if (found === undefined) return false;
    this.#byMember.delete(member);
    if (this.#inOrder[0] === found) this.#inOrder.shift();
    else this.#inOrder.splice(this.#indexOf(found), 1);
    return true;
  }

  /** The index of the first with a score that is not below the bound, or that is above it. */
  firstFrom(score: number, bound: 'with' | 'without'): number {
    const isBelow =
      bound === 'with'
        ? (each: Scored): boolean => each.score < score
        : (each: Scored): boolean => each.score <= score;
    return this.#firstThat((each) => !isBelow(each));
  }

  /** From one index up to another, without that. */
  slice(start: number, end?: number): readonly Scored[] {
    return this.#inOrder.slice(start, end);
  }

  copy(): SortedSet {
    return new SortedSet(this.#inOrder);
  }

  #indexOf(wanted: Scored): number {
    return this.#firstThat((each) => !isBefore(each, wanted));
  }

  /** What holds for one of them holds for all that follow it. */
  #firstThat(holds: (each: Scored) => boolean): number {
    let [low, high] = [0, this.#inOrder.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (holds(this.#inOrder[middle] as Scored)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

const isBefore = (left: Scored, right: Scored): boolean =>
  left.score < right.score || (left.score === right.score && left.member < right.member);
