import { AsyncLocalStorage } from 'node:async_hooks';
import type { Lock } from './lock.js';

const current = new AsyncLocalStorage<Section>();

/**
 * A stretch of work that holds a lock, known to everything it calls through the async context. Calls from inside it that ask for the
 * same keys are nested sections: they share the lease, take turns with their siblings, and are waited for before the lease ends.
 */
export class Section {
  readonly lock: Lock;
  readonly #owner: object;
  readonly #parent: Section | undefined;
  readonly #keys: ReadonlySet<string>;
  /** Settles when the last nested section so far has left. */
  #lastTurn: Promise<void> = Promise.resolve();
  #open = true;

  /** @param owner the lock service; sections of another one have nothing to do with each other. */
  constructor(owner: object, lock: Lock, parent: Section | undefined) {
    this.#owner = owner;
    this.lock = lock;
    this.#parent = parent;
    this.#keys = new Set(lock.keys);
  }

  static current(): Section | undefined {
    return current.getStore();
  }

  /** Calls `work` with this section as its async context. */
  inside<T>(work: () => T): T {
    return current.run(this, work);
  }

  /** From the innermost outwards: the open sections of an owner that this one stands in, itself included. */
  *enclosing(owner: object): Generator<Section> {
    if (this.#owner === owner && this.#open) yield this;
    if (this.#parent !== undefined) yield* this.#parent.enclosing(owner);
  }

  covers(keys: readonly string[]): boolean {
    return keys.every((key) => this.#keys.has(key));
  }

  overlaps(keys: readonly string[]): boolean {
    return keys.some((key) => this.#keys.has(key));
  }

  /** Resolves when it is the caller's turn, with the function that ends the turn. */
  async takeTurn(): Promise<() => void> {
    const before = this.#lastTurn;
    let leave!: () => void;
    this.#lastTurn = new Promise((resolve) => {
      leave = resolve;
    });
    await before;
    return leave;
  }

  /** Lets no call in any more, and resolves when those inside have left. */
  async close(): Promise<void> {
    this.#open = false;
    await this.#lastTurn;
  }
}
