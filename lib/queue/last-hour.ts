import type { Instant } from '../time/clock.js';

const MINUTES = 60;

const MINUTE_MS = 60_000;

/** What one process did in one minute. */
export interface Minute {
  /** Minutes since 1970, by the clock of its machine. */
  readonly minute: number;
  /** The most locks that it held at one look; it looks every 5 s. */
  readonly held: number;
  /** The most callers that waited. */
  readonly waiting: number;
  readonly refusals: number;
}

type Counts = { -readonly [Name in keyof Minute]: Minute[Name] };

/** What a process did in the last hour, for the pictures of operators. */
export class LastHour {
  readonly #minutes: Counts[] = [];

  get minutes(): readonly Minute[] {
    return this.#minutes;
  }

  saw(held: number, waiting: number, now: Instant): void {
    const counts = this.#countsAt(now);
    counts.held = Math.max(counts.held, held);
    counts.waiting = Math.max(counts.waiting, waiting);
  }

  refused(now: Instant): void {
    this.#countsAt(now).refusals += 1;
  }

  #countsAt({ wallMs }: Instant): Counts {
    const minute = Math.floor(wallMs / MINUTE_MS);
    // The clock may have been ahead, and was set back.
    while ((this.#minutes.at(-1)?.minute ?? 0) > minute) this.#minutes.pop();
    const newest = this.#minutes.at(-1);
    if (newest?.minute === minute) return newest;
    const counts = { minute, held: 0, waiting: 0, refusals: 0 };
    this.#minutes.push(counts);
    if (this.#minutes.length > MINUTES) this.#minutes.shift();
    return counts;
  }
}

/** What several processes did, minute by minute, up to now. */
export function together(all: Iterable<Minute>, { wallMs }: Instant): readonly Minute[] {
  const last = Math.floor(wallMs / MINUTE_MS);
  const minutes = Array.from({ length: MINUTES }, (_, index): Counts => ({
    minute: last - MINUTES + 1 + index,
    held: 0,
    waiting: 0,
    refusals: 0,
  }));
  for (const { minute, held, waiting, refusals } of all) {
    const sum = minutes[minute - (last - MINUTES + 1)];
    if (sum === undefined) continue;
    sum.held += held;
    sum.waiting += waiting;
    sum.refusals += refusals;
  }
  return minutes;
}
