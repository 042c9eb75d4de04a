import { deferred } from '../support/eventually.js';

/** A place where a call stops until the test lets it on. */
export class Gate {
  readonly #reached = deferred();
  readonly #opened = deferred();
  /** How many calls have come here. */
  visits = 0;

  /** For the code under test: says that it is here, and waits. */
  async pass(): Promise<void> {
    this.visits += 1;
    this.#reached.resolve();
    await this.#opened.promise;
  }

  /** For the test: resolves when the first call has come here. */
  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  /** Lets all calls on, those to come as well. */
  open(): void {
    this.#opened.resolve();
  }
}
