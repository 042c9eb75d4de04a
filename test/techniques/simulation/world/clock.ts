import type { World } from './world.js';

/** How a clock differs from the true time. */
export interface ClockPlan {
  /** What it shows beside the truth at the start, in ms. */
  readonly skewMs: number;
  /** By which part of the time it is too fast: 0.001, or too slow: -0.001. */
  readonly drift: number;
}

/** What every clock shows at the beginning if nothing is wrong with it, in µs. */
const EPOCH_US = Date.UTC(2030, 0, 1) * 1_000;

/** A clock of a machine. */
export class SimClock {
  readonly #world: World;
  readonly rate: number;
  /** Its two ways to tell the time have said different things, most recently then, in µs of the true time. */
  #disturbedAtUs: number | undefined;
  #wallUs: number;
  #stoppedUs = 0;
  #stoppedAtUs: number | undefined;

  constructor(world: World, { skewMs, drift }: ClockPlan) {
    this.#world = world;
    this.rate = 1 + drift;
    this.#wallUs = EPOCH_US + skewMs * 1_000;
  }

  /** Whole µs; can be set. */
  get wallUs(): number {
    return Math.floor(this.#wallUs + this.#world.nowUs * this.rate);
  }

  /** In µs; is never set, and stands still while the machine sleeps. */
  get monotonicUs(): number {
    const nowUs = this.#stoppedAtUs ?? this.#world.nowUs;
    return (nowUs - this.#stoppedUs) * this.rate;
  }

  /** For how long its two ways to tell the time have agreed on how it passes; `Infinity`: always. */
  get undisturbedForMs(): number {
    return this.#disturbedAtUs === undefined
      ? Infinity
      : (this.#world.nowUs - this.#disturbedAtUs) / 1_000;
  }

  /** Somebody sets it, forward or back. */
  step(byMs: number): void {
    this.#disturbedAtUs = this.#world.nowUs;
    this.#wallUs += byMs * 1_000;
  }

  /** The machine falls asleep. */
  stopMonotonic(): void {
    this.#disturbedAtUs = this.#world.nowUs;
    this.#stoppedAtUs ??= this.#world.nowUs;
  }

  startMonotonic(): void {
    if (this.#stoppedAtUs === undefined) return;
    this.#disturbedAtUs = this.#world.nowUs;
    this.#stoppedUs += this.#world.nowUs - this.#stoppedAtUs;
    this.#stoppedAtUs = undefined;
  }
}
