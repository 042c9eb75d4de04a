import type { Instant } from '../../lib/time/clock.js';
import { systemRuntime, type Runtime } from '../../lib/time/runtime.js';
import { Random } from '../techniques/faults/random.js';

interface VirtualTimer {
  readonly at: number;
  readonly callback: () => void;
}

/** Time that passes when the test says so, and chance from a seed. */
export class VirtualRuntime implements Runtime {
  readonly #timers = new Set<VirtualTimer>();
  readonly #random: Random;
  #ids = 0;
  #monotonicMs = 0;
  #wallMs = Date.UTC(2030, 0, 1);

  constructor(seed = 1) {
    this.#random = new Random(seed);
  }

  now(): Instant {
    return { monotonicMs: this.#monotonicMs, wallMs: this.#wallMs };
  }

  setTimer(callback: () => void, delayMs: number): () => void {
    const timer = { at: this.#monotonicMs + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** No time passes for it. */
  afterInput(callback: () => void): () => void {
    return systemRuntime.afterInput(callback);
  }

  random(): number {
    return this.#random.fraction();
  }

  uuid(): string {
    this.#ids += 1;
    return `00000000-0000-4000-8000-${this.#ids.toString(16).padStart(12, '0')}`;
  }

  /** How many timers are set. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Lets time pass: timers run in their order, each with everything that follows from it before the next. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonicMs + ms;
    await settled();
    for (let timer = this.#next(end); timer !== undefined; timer = this.#next(end)) {
      this.#timers.delete(timer);
      this.block(timer.at - this.#monotonicMs);
      timer.callback();
      await settled();
    }
    this.block(end - this.#monotonicMs);
    await settled();
  }

  /** Time passes while the event loop is blocked: no timer runs before the next `advance`. */
  block(ms: number): void {
    this.#monotonicMs += Math.max(0, ms);
    this.#wallMs += Math.max(0, ms);
  }

  /** The machine sleeps: only the wall clock goes on. */
  suspend(ms: number): void {
    this.#wallMs += ms;
  }

  /** Somebody sets the wall clock back. */
  setBack(ms: number): void {
    this.#wallMs -= ms;
  }

  /** The first timer due until `end`; of two for the same time, the one that was set first. */
  #next(end: number): VirtualTimer | undefined {
    let first: VirtualTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= end && (first === undefined || timer.at < first.at)) first = timer;
    }
    return first;
  }
}

/** Resolves when all that promises alone can bring about has happened. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
