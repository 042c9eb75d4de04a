import type { CancelTimer } from './clock.js';
import { DueTask, SLOT_MS, type Scheduler } from './scheduler.js';

/** A time limit passes in this many parts. */
const PARTS = 4;

/** A part that took longer than this was not over late: the event loop was blocked. */
const LATE_MS = 2 * SLOT_MS;

/**
 * How long to wait for input. A blocked event loop is no silence: input that has arrived meanwhile is unread in the
 * socket, and output was not sent. So a block uses up at most one part of the limit, and input is read once more before
 * the limit is over.
 */
export class TimeLimit extends DueTask {
  /** Called when the limit is over, unless it was cancelled. */
  onOver: () => void = nothing;
  readonly #scheduler: Scheduler;
  readonly #partMs: number;
  #leftMs: number;
  /** When the part began that passes. */
  #sinceMs = 0;
  /** Cancels the end, once the last part has passed. */
  #cancelEnd: CancelTimer | undefined;
  #isOver = false;

  constructor(scheduler: Scheduler, limitMs: number) {
    super(nothing);
    this.#scheduler = scheduler;
    this.#partMs = limitMs / PARTS;
    this.#leftMs = limitMs;
    this.#begin();
  }

  /** Whether the wait is over. */
  get isOver(): boolean {
    return this.#isOver;
  }

  override cancel(): void {
    super.cancel();
    this.#cancelEnd?.();
  }

  override onDue(): void {
    const elapsedMs = this.#scheduler.runtime.now().monotonicMs - this.#sinceMs;
    const partMs = Math.min(this.#partMs, this.#leftMs);
    this.#leftMs -= elapsedMs > partMs + LATE_MS ? partMs : elapsedMs;
    if (this.#leftMs > 0) this.#begin();
    else this.#end();
  }

  #begin(): void {
    const now = this.#scheduler.runtime.now();
    this.#sinceMs = now.monotonicMs;
    // Tasks of the scheduler are due in their slot or before, never after.
    this.#scheduler.add(this, Math.min(this.#partMs, this.#leftMs) + SLOT_MS, now);
  }

  #end(): void {
    this.#cancelEnd = this.#scheduler.runtime.afterInput(() => {
      this.#isOver = true;
      this.onOver();
    });
  }
}

const nothing = (): void => undefined;
