import { LockDeadlockError } from '../errors.js';
import { isAlike, type HoldMode } from '../store/owner-token.js';
import type { Section } from './section.js';

/** A call that waits for keys, inside sections. */
interface Wait {
  /** The lock service. */
  readonly owner: object;
  readonly keys: readonly string[];
  readonly mode: HoldMode;
  /** What it stands in: none of them ends before it does. */
  readonly sections: readonly Section[];
}

/** A wait on the way from the one that begins, and how the way led there. */
interface Step {
  readonly wait: Wait;
  /** The key that the wait of the step before wants, and this one's sections hold. */
  readonly from?: { readonly step: Step; readonly key: string };
}

/**
 * What the sections of this process wait for. No other call can be part of a circle. A section is blocked while a call
 * inside it waits, so only a wait that begins can close a circle.
 */
export class WaitsFor {
  /** For each key: the waits inside a section that may hold it. */
  readonly #waits = new Map<string, Set<Wait>>();

  /**
   * Records that a wait begins. Returns a function that ends it.
   *
   * @throws LockDeadlockError when what it waits for is waiting for it
   */
  begin(wait: Wait): () => void {
    const { keys, sections } = wait;
    const circle = this.#circle(wait);
    if (circle !== undefined) throw new LockDeadlockError({ keys, circle });
    const held = new Set(sections.flatMap(({ lock }) => lock.keys));
    for (const key of held) {
      const waits = this.#waits.get(key) ?? new Set();
      this.#waits.set(key, waits.add(wait));
    }
    return () => {
      for (const key of held) {
        const waits = this.#waits.get(key);
        waits?.delete(wait);
        if (waits?.size === 0) this.#waits.delete(key);
      }
    };
  }

  /**
   * The keys on the shortest way from what `mine` wants to what it holds. The holder of each key but the last waits for
   * the next one. It is a loop, because the way may be longer than the stack is deep.
   */
  #circle(mine: Wait): readonly string[] | undefined {
    const seen = new Set([mine]);
    const steps: Step[] = [{ wait: mine }];
    for (const step of steps) {
      const { wait } = step;
      for (const key of wait.keys) {
        // What a section around it holds is its own.
        if (wait !== mine && blocks(mine, wait, key)) return [...keysTo(step), key];
        for (const next of this.#waits.get(key) ?? []) {
          if (seen.has(next) || !blocks(next, wait, key)) continue;
          seen.add(next);
          steps.push({ wait: next, from: { step, key } });
        }
      }
    }
    return undefined;
  }
}

/** What callers of all services of the process wait for: together they can close one circle. */
export const waitsFor = new WaitsFor();

/** The keys that led to a step, the first one first. */
function keysTo(last: Step): readonly string[] {
  const keys: string[] = [];
  for (let { from } = last; from !== undefined; { from } = from.step) keys.push(from.key);
  return keys.reverse();
}

/** Whether a waiting call holds a key that another one therefore cannot have. */
const blocks = (one: Wait, other: Wait, key: string): boolean =>
  one.sections.some(
    (section) => section.holds(other.owner, key) && !isAlike(section.lock.mode, other.mode),
  );
