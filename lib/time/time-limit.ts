import type { CancelTimer } from './clock.js';
import { SLOT_MS, type Scheduler } from './scheduler.js';

/** A time limit passes in this many parts. */
const PARTS = 4;

/** A part that took longer than this was not over late: the event loop was blocked. */
const LATE_MS = 2 * SLOT_MS;

/**
 * How long to wait for input. A blocked event loop is no silence: input that has arrived meanwhile is unread in the
 * socket, and output was not sent. So a block uses up at most one part of the limit, and input is read once more before
 * the limit is over.
 */
export class TimeLimit {
  /** Called when the limit is over, unless it was cancelled. */
  onOver: () => void = () => undefined;
  readonly #scheduler: Scheduler;
  readonly #partMs: number;
  #leftMs: number;
  #cancel: CancelTimer | undefined;
  #isOver = false;

  constructor(scheduler: Scheduler, limitMs: number) {
    this.#scheduler = scheduler;
    this.#partMs = limitMs / PARTS;
    this.#leftMs = limitMs;
    this.#begin();
  }

  /** Whether the wait is over. */
  get isOver(): boolean {
    return this.#isOver;
  }

  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #begin(): void {
    const { runtime } = this.#scheduler;
    const partMs = Math.min(this.#partMs, this.#leftMs);
    const since = runtime.now();
    const onDue = (): void => {
      const elapsedMs = runtime.now().monotonicMs - since.monotonicMs;
      this.#leftMs -= elapsedMs > partMs + LATE_MS ? partMs : elapsedMs;
      if (this.#leftMs > 0) this.#begin();
      else this.#end();
    };
    // Tasks of the scheduler are due in their slot or before, never after.
    const task = this.#scheduler.schedule(partMs + SLOT_MS, onDue, since);
    this.#cancel = () => {
      task.cancel();
    };
  }

  #end(): void {
    this.#cancel = this.#scheduler.runtime.afterInput(() => {
      this.#isOver = true;
      this.onOver();
    });
  }
}
