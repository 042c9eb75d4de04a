import type { Clock } from '../../../time/clock.js';

/** How much is believed of what one sample says less than those before. */
const SINKING = 1 / 8;

/** A longer way than this was an accident: tokens must not run ahead of all clocks for its sake. */
const LONGEST_WAY_US = 100_000;

/**
 * What this process knows of a server's clock, from the replies with its time. It is a range, because it is unknown
 * when the time was read between request and reply.
 */
export class NodeClock {
  readonly #clock: Clock;
  /** The server's clock less ours, both in µs. */
  #offset: { readonly least: number; readonly most: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The server read `serverUs` between these two moments of our monotonic clock. */
  learn(serverUs: number, sentAtMs: number, receivedAtMs: number): void {
    if (!(serverUs > 0)) return; // not an answer of ours
    const [least, most] = [serverUs - receivedAtMs * 1_000, serverUs - sentAtMs * 1_000];
    // The way there is longer at one time than at another; what is at its end when the message arrives should not be underestimated.
    const before = this.#offset?.most ?? most;
    this.#offset = { least, most: most < before ? before + (most - before) * SINKING : most };
  }

  /** What the server's clock will show when a message sent now arrives; `undefined` while nothing is known. */
  onArrivalUs(): number | undefined {
    if (this.#offset === undefined) return undefined;
    const { least, most } = this.#offset;
    return this.#nowUs() + Math.min(most, least + LONGEST_WAY_US);
  }

  /** What the server's clock shows now at the least. */
  atLeastUs(): number | undefined {
    return this.#offset && this.#nowUs() + this.#offset.least;
  }

  /** By how many ms the server's clock is ahead of this machine's, at least; negative when it is behind, and 0 when it may be right. */
  offsetMs(): number | undefined {
    if (this.#offset === undefined) return undefined;
    const { wallMs, monotonicMs } = this.#clock.now();
    const ours = (wallMs - monotonicMs) * 1_000;
    const { least, most } = this.#offset;
    return (Math.max(0, least - ours) + Math.min(0, most - ours)) / 1_000;
  }

  #nowUs(): number {
    return this.#clock.now().monotonicMs * 1_000;
  }
}
