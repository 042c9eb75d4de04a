import { LockServiceClosedError } from '../errors.js';
import { Leadership, type Candidacy } from './leadership.js';

/** The candidacies of a service. */
export class Leaders {
  readonly #all = new Set<Leadership>();
  #isClosed = false;

  /** @throws LockServiceClosedError during and after the shutdown */
  stand(candidacy: Candidacy): Leadership {
    if (this.#isClosed) throw new LockServiceClosedError([candidacy.name]);
    const leadership = new Leadership(candidacy);
    this.#all.add(leadership);
    void leadership.stopped.then(() => this.#all.delete(leadership));
    return leadership;
  }

  /**
   * Makes all of them step down, and accepts no candidates any more. Their locks are released when their work has
   * ended.
   */
  close(): void {
    this.#isClosed = true;
    for (const each of this.#all) each.close();
  }
}
