import type { Scheduler, Task } from '../time/scheduler.js';

const MOST = 10;
const WITHIN_MS = 60_000;

/**
 * Warnings of one kind that can come by the thousand: from a server that comes and goes, or when all locks of a process
 * are lost together. Ten a minute are logged. The others are counted. When the minute is over, their number is logged
 * with the last of them.
 */
export class LimitedWarnings {
  readonly #warn: (message: string) => void;
  readonly #scheduler: Scheduler;
  /** In this minute. */
  #count = 0;
  #last = '';
  #sinceMs = -Infinity;
  /** Logs the sum when the minute is over. A process with few warnings may end before. */
  #summing: Task | undefined;

  constructor(warn: (message: string) => void, scheduler: Scheduler) {
    this.#warn = warn;
    this.#scheduler = scheduler;
  }

  readonly warn = (message: string): void => {
    const nowMs = this.#scheduler.runtime.now().monotonicMs;
    if (nowMs - this.#sinceMs >= WITHIN_MS) {
      this.flush();
      this.#sinceMs = nowMs;
    }
    this.#count += 1;
    this.#last = message;
    if (this.#count > MOST)
      this.#summing ??= this.#scheduler.schedule(WITHIN_MS - (nowMs - this.#sinceMs), () => {
        this.flush();
      });
    if (this.#count < MOST) this.#warn(message);
    else if (this.#count === MOST)
      this.#warn(
        `${message} (This is warning ${String(MOST)} of its kind within a minute: further ones are summed up once a minute.)`,
      );
  };

  /** Logs the sum of what was not logged, and begins anew. */
  flush(): void {
    const more = this.#count - MOST;
    this.#summing?.cancel();
    this.#summing = undefined;
    this.#sinceMs = -Infinity;
    this.#count = 0;
    if (more > 0)
      this.#warn(
        `${String(more)} more ${more === 1 ? 'warning' : 'warnings'} of the same kind within a minute. The last one: ${this.#last}`,
      );
  }

  /** Logs nothing more. */
  close(): void {
    this.#summing?.cancel();
  }
}
