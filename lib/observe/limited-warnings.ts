/** Cancels what was planned. */
interface Planned {
  cancel(): void;
}

interface Options {
  readonly warn: (message: string) => void;
  /** By a clock that only goes forward, in ms. */
  readonly now: () => number;
  /** Calls back in so many ms. */
  readonly later: (ms: number, callback: () => void) => Planned;
}

const MOST = 10;
const WITHIN_MS = 60_000;

/**
 * Warnings of one kind, which can come by the thousand: a server that comes and goes, or all locks of a process that are lost together. Ten
 * a minute are logged; the others are counted, and summed up when the minute is over, with the last of them.
 */
export class LimitedWarnings {
  readonly #options: Options;
  /** In this minute. */
  #count = 0;
  #last = '';
  #sinceMs = -Infinity;
  /** When the sum is due; a process whose warnings are few may end before. */
  #summing: Planned | undefined;

  constructor(options: Options) {
    this.#options = options;
  }

  warn(message: string): void {
    const { warn, now, later } = this.#options;
    const nowMs = now();
    if (nowMs - this.#sinceMs >= WITHIN_MS) {
      this.flush();
      this.#sinceMs = nowMs;
    }
    this.#count += 1;
    this.#last = message;
    if (this.#count > MOST)
      this.#summing ??= later(WITHIN_MS - (nowMs - this.#sinceMs), () => {
        this.flush();
      });
    if (this.#count < MOST) warn(message);
    else if (this.#count === MOST)
      warn(
        `${message} (This is warning ${String(MOST)} of its kind within a minute: further ones are summed up once a minute.)`,
      );
  }

  /** Logs the sum of what was not logged, and begins anew. */
  flush(): void {
    const more = this.#count - MOST;
    this.#summing?.cancel();
    this.#summing = undefined;
    this.#sinceMs = -Infinity;
    this.#count = 0;
    if (more > 0)
      this.#options.warn(
        `${String(more)} more ${more === 1 ? 'warning' : 'warnings'} of the same kind within a minute. The last one: ${this.#last}`,
      );
  }

  /** Logs nothing more. */
  close(): void {
    this.#summing?.cancel();
  }
}
