import { LockDeadlockError } from '../errors.js';
import type { HoldMode } from '../store/owner-token.js';
import type { Section } from './section.js';

/** A call inside sections that waits for keys. */
interface Wait {
  /** The lock service. */
  readonly owner: object;
  readonly keys: readonly string[];
  readonly mode: HoldMode;
  /** What it stands in: none of them ends before it does. */
  readonly sections: readonly Section[];
}

/**
 * What the sections of this process wait for. Of all who wait, it knows only those who hold something meanwhile: nobody else can be
 * part of a circle. A section is blocked while a call inside it waits; so a circle can only be closed by a wait that begins.
 */
export class WaitsFor {
  readonly #waits = new Set<Wait>();

  /**
   * A wait begins. Answers how to say that it is over.
   *
   * @throws LockDeadlockError when what it waits for is waiting for it
   */
  begin(wait: Wait): () => void {
    const circle = this.#circle(wait, wait, new Set([wait]));
    if (circle !== undefined) throw new LockDeadlockError({ keys: wait.keys, circle });
    this.#waits.add(wait);
    return () => {
      this.#waits.delete(wait);
    };
  }

  /** The keys on the way from what `wait` wants to what `mine` holds: each but the last is held by whoever waits for the next. */
  #circle(mine: Wait, wait: Wait, seen: Set<Wait>): readonly string[] | undefined {
    for (const key of wait.keys) {
      if (wait !== mine && blocks(mine, wait, key)) return [key];
      for (const next of this.#waits) {
        if (seen.has(next) || !blocks(next, wait, key)) continue;
        seen.add(next);
        const rest = this.#circle(mine, next, seen);
        if (rest !== undefined) return [key, ...rest];
      }
    }
    return undefined;
  }
}

/** Whether one who waits holds a key so that another one cannot have it. */
const blocks = ({ sections }: Wait, { owner, mode }: Wait, key: string): boolean =>
  sections.some(
    (section) =>
      section.holds(owner, key) &&
      (section.lock.mode === 'exclusive' || section.lock.mode !== mode),
  );
