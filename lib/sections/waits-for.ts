import { LockDeadlockError } from '../errors.js';
import type { LeaseReference } from '../store/lock-store.js';
import { isAlike, type HoldMode } from '../store/owner-token.js';
import type { Section } from './section.js';

/** A call that waits for keys, inside sections, or for the upgrade of a lock. */
interface Wait {
  /** The lock service. */
  readonly owner: object;
  readonly keys: readonly string[];
  readonly mode: HoldMode;
  /** What it stands in: none of them ends before it does. */
  readonly sections: readonly Section[];
  /** The lock that waits to be upgraded: its keys are wanted by the lock that has them. */
  readonly upgrades?: LeaseReference;
}

/** The later of two has the larger number. */
interface Begun extends Wait {
  readonly number: number;
}

/** A wait on the way from the one that begins, and how the way led there. */
interface Step {
  readonly wait: Begun;
  /** The key that the wait of the step before wants, and this one's sections hold. */
  readonly from?: { readonly step: Step; readonly key: string };
}

/**
 * What the sections of this process wait for. It knows only the waiting calls that hold something meanwhile: sections, or
 * the lock that is to be upgraded. No other call can be part of a circle. A section is blocked while a call inside it
 * waits, so only a wait that begins can close a circle.
 */
export class WaitsFor {
  /** For each key: the waits inside a section that may hold it, or for the upgrade of its lock. */
  readonly #waits = new Map<string, Set<Begun>>();
  #begun = 0;

  /**
   * Records that a wait begins. Returns a function that ends it.
   *
   * @throws LockDeadlockError when what it waits for is waiting for it
   */
  begin(begins: Wait): () => void {
    const wait: Begun = { ...begins, number: (this.#begun += 1) };
    const { keys, sections, upgrades } = wait;
    const circle = this.#circle(wait);
    if (circle !== undefined) throw new LockDeadlockError({ keys, circle });
    const held = new Set([...sections.flatMap(({ lock }) => lock.keys), ...(upgrades?.keys ?? [])]);
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
  #circle(mine: Begun): readonly string[] | undefined {
    const seen = new Set([mine]);
    const steps: Step[] = [{ wait: mine }];
    for (const step of steps) {
      const { wait } = step;
      for (const key of wait.keys) {
        // What a section around it holds is its own, but for another lock that the section has the key under.
        if ((wait !== mine || mine.upgrades) && blocks(mine, wait, key))
          return [...keysTo(step), key];
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

/** The keys that led to a step, the first one first. */
function keysTo(last: Step): readonly string[] {
  const keys: string[] = [];
  for (let { from } = last; from !== undefined; { from } = from.step) keys.push(from.key);
  return keys.reverse();
}

/** Whether a waiting call holds a key that another one therefore cannot have. */
const blocks = (one: Begun, other: Begun, key: string): boolean =>
  isBefore(one, other, key) ||
  one.sections.some(
    (section) =>
      section.holds(other.owner, key) &&
      !isOf(section, other.upgrades) &&
      isInTheWay(section.lock.mode, other.mode),
  );

const isOf = (section: Section, lease: LeaseReference | undefined): boolean =>
  section.lock.lease.token === lease?.token;

/** A lock that waits to be upgraded is the first in line: later callers, of any mode, stand behind it. */
const isBefore = (one: Begun, other: Begun, key: string): boolean =>
  one.upgrades?.keys.includes(key) === true &&
  one.owner === other.owner &&
  one.number < other.number;

const isInTheWay = (held: HoldMode, wanted: HoldMode): boolean =>
  !isAlike(groupOf(held), groupOf(wanted)) || isBothUpgradeable(held, wanted);

const groupOf = (mode: HoldMode): HoldMode => (mode === 'upgradeable' ? 'shared' : mode);

const isBothUpgradeable = (held: HoldMode, wanted: HoldMode): boolean =>
  held === 'upgradeable' && wanted === 'upgradeable';
