import { elapsedMs, type Clock, type Instant } from '../../../time/clock.js';

/**
 * The largest age of a message of a server. The server's clock is at most at its last reading for us, plus the time
 * that has passed here since we asked. That time is by the clocks of this process, so a process that stood still, or
 * was suspended, overestimates it.
 *
 * If the server's clock was set forward since, a message from its future shows that. A message that is late by more
 * than that step is estimated as younger by as much. Such a step also ends the server's leases too early by as much.
 *
 * `NodeClock` is for estimates: it uses the monotonic clock alone, which some systems stop while they are suspended.
 */
export class ClaimClock {
  readonly #clock: Clock;
  readonly #clockDrift: number;
  #last: { readonly serverUs: number; readonly askedAt: Instant } | undefined;
  /** What was asked before that, by the monotonic clock, may be answered by another server. */
  #sinceMs = 0;

  /** @param clockDrift the largest difference in speed of the server's clock and ours, as a fraction */
  constructor(clock: Clock, clockDrift: number) {
    this.#clock = clock;
    this.#clockDrift = clockDrift;
  }

  /** What the server's clock showed, after it was asked. */
  learn(serverUs: number, askedAt: Instant): void {
    if (serverUs > 0 && askedAt.monotonicMs >= this.#sinceMs) this.#last = { serverUs, askedAt };
  }

  /** It may be another server from here on. */
  forget(): void {
    this.#last = undefined;
    this.#sinceMs = this.#clock.now().monotonicMs;
  }

  /** For a message that the server sent at that time by its clock; `undefined` while nothing is known. */
  ageAtMostMs(sentUs: number): number | undefined {
    if (this.#last === undefined) return undefined;
    const { serverUs, askedAt } = this.#last;
    const sinceMs = elapsedMs(askedAt, this.#clock.now()) * (1 + this.#clockDrift);
    const ageMs = (serverUs - sentUs) / 1_000 + sinceMs;
    if (ageMs >= 0) return ageMs;
    this.forget();
    return undefined;
  }
}
