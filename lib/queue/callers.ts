import { Chain } from '../collections/chain.js';
import type { Caller } from './caller.js';
import type { LineSleep } from './line-sleep.js';

/** The callers of a line, which has nothing to wait for when the last of them has gone. */
export class Callers extends Chain<Caller> {
  readonly #sleep: LineSleep;

  constructor(sleep: LineSleep) {
    super();
    this.#sleep = sleep;
  }

  protected override onEmpty(): void {
    this.#sleep.end();
  }
}
