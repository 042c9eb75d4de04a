/** Replaces the text between two positions. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** What is to be changed in one text; everything else stays as it is, character by character. */
export class Edits {
  readonly #list: Edit[] = [];

  get isEmpty(): boolean {
    return this.#list.length === 0;
  }

  /** In the order of the text. Insertions at one place stay in the order in which they came. */
  get sorted(): readonly Edit[] {
    return this.#list.toSorted((one, other) => one.start - other.start || one.end - other.end);
  }

  replace(start: number, end: number, text: string): void {
    const isTaken = this.#list.some((edit) => edit.start < end && start < edit.end);
    if (isTaken) throw new Error(`Two edits overlap at ${String(start)}.`);
    this.#list.push({ start, end, text });
  }

  insert(at: number, text: string): void {
    this.replace(at, at, text);
  }

  applyTo(text: string): string {
    let [result, at] = ['', 0];
    for (const edit of this.sorted) {
      result += text.slice(at, edit.start) + edit.text;
      at = edit.end;
    }
    return result + text.slice(at);
  }
}
