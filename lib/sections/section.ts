import { AsyncLocalStorage } from 'node:async_hooks';
import { onAbort } from '../queue/on-abort.js';
import { WORK } from '../observe/channels.js';
import type { LockHandle } from '../lease/lock-handle.js';

const current = new AsyncLocalStorage<Section | undefined>();

/**
 * A stretch of work that holds a lock, known to everything it calls through the async context. Calls from inside it that ask for the
 * same keys are nested sections: they share the lease, take turns with their siblings, and are waited for before the lease ends.
 */
export class Section {
  readonly lock: LockHandle;
  readonly #owner: object;
  #parent: Section | undefined;
  readonly #keys: ReadonlySet<string>;
  /** Settles when the last nested section so far has left. */
  #lastTurn: Promise<void> = Promise.resolve();
  #turns = 0;
  #open = true;
  /** Whether it ends with a promise, so that code which still runs inside it then was not awaited. */
  endsWithWork = false;

  /** @param owner the lock service; sections of another one have nothing to do with each other. */
  constructor(owner: object, lock: LockHandle, parent: Section | undefined) {
    this.#owner = owner;
    this.lock = lock;
    this.#parent = parent;
    this.#keys = new Set(lock.keys);
  }

  static current(): Section | undefined {
    return current.getStore();
  }

  /** Calls `work` in no section: it may outlive the one of the calling code. */
  static outside<T>(work: () => T): T {
    return current.run(undefined, work);
  }

  /** The open sections of one owner that the calling code runs in, from the innermost outwards. */
  static around(owner: object): readonly Section[] {
    return current.getStore()?.enclosing(owner) ?? [];
  }

  /** The section of the calling code, if that outlived its work. Each section is returned once. */
  static outlived(): Section | undefined {
    const section = current.getStore();
    if (section === undefined || section.#open || !section.endsWithWork) return undefined;
    section.endsWithWork = false;
    return section;
  }

  /** Until it ends or its lock is released. Later calls take locks of their own. */
  get isOpen(): boolean {
    return this.#open && !this.lock.isReleased;
  }

  /** Whether a nested section has its turn, or waits for it. */
  get isBusy(): boolean {
    return this.#turns > 0;
  }

  /** Calls `work` with this section as its async context. */
  inside<T>(work: () => T): T {
    if (!WORK.hasSubscribers) return current.run(this, work);
    const { hold } = this.lock.lease;
    // Work under the same lock has the async context already, and may have put its own on top of it.
    if (hold === undefined || current.getStore()?.lock.lease.hold === hold)
      return current.run(this, work);
    return WORK.runStores(hold, () => current.run(this, work));
  }

  /** From the innermost outwards: the open sections, of one owner or of all, that this one stands in, itself included. */
  enclosing(owner?: object): readonly Section[] {
    const sections: Section[] = this.isOpen ? [this] : [];
    for (let outer = this.#openParent(); outer !== undefined; outer = outer.#openParent())
      sections.push(outer);
    return owner === undefined ? sections : sections.filter((section) => section.#owner === owner);
  }

  /** Work that outlives its section, and opens others, and so on, must not keep all of them in memory. */
  #openParent(): Section | undefined {
    while (this.#parent && !this.#parent.isOpen) this.#parent = this.#parent.#parent;
    return this.#parent;
  }

  covers(keys: readonly string[]): boolean {
    return keys.every((key) => this.#keys.has(key));
  }

  /** Whether it keeps others of this owner from a key now. */
  holds(owner: object, key: string): boolean {
    return this.#owner === owner && this.#keys.has(key) && this.isOpen && this.lock.isHeld;
  }

  overlaps(keys: readonly string[]): boolean {
    return keys.some((key) => this.#keys.has(key));
  }

  /** Resolves when it is the caller's turn, with the function that ends the turn; rejects with the reason of `signal`. */
  async takeTurn(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    const before = this.#lastTurn;
    let leave!: () => void;
    this.#turns += 1;
    this.#lastTurn = new Promise((resolve) => {
      leave = () => {
        this.#turns -= 1;
        resolve();
      };
    });
    try {
      await unlessAborted(before, signal);
    } catch (error) {
      // Gone from the middle of the line: those behind still wait for those before.
      void before.then(leave);
      throw error;
    }
    return leave;
  }

  /** Lets no call in any more. Where some are inside, resolves when they have left. */
  close(): Promise<void> | undefined {
    this.#open = false;
    return this.isBusy ? this.#lastTurn : undefined;
  }
}

function unlessAborted(turn: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return turn;
  return new Promise((resolve, reject) => {
    const ignore = onAbort(signal, () => {
      reject(signal.reason as Error);
    });
    void turn.then(() => {
      ignore();
      resolve();
    });
  });
}
