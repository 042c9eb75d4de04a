import { BriefSet } from '../collections/brief-set.js';

/** Promises that the end of a service waits for, even if other code waits for them too. */
export class PendingTasks {
  readonly #promises = new BriefSet<Promise<unknown>>();

  /** Returns the promise. */
  add<T>(promise: Promise<T>): Promise<T> {
    this.#promises.add(promise);
    const forget = (): void => void this.#promises.delete(promise);
    promise.then(forget, forget);
    return promise;
  }

  /** Resolves when nothing is under way, also of what was added meanwhile. */
  async settled(): Promise<void> {
    while (this.#promises.size > 0) await Promise.allSettled(this.#promises);
  }
}
