import { BriefSet } from '../collections/brief-set.js';

/** Promises that somebody has to wait for at the end, whoever else does. */
export class PendingTasks {
  readonly #promises = new BriefSet<Promise<unknown>>();

  /** Gives the promise back. */
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
