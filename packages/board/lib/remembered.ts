import type { Clock } from './clock.js';

/** An answer that is asked for anew when it is old. Those who ask meanwhile get the same one. A failure is not kept. */
export class Remembered<T> {
  readonly #ask: () => Promise<T>;
  readonly #maxAgeMs: number;
  readonly #clock: Clock;
  #known: { readonly answer: Promise<T>; readonly atMs: number } | undefined;

  constructor(ask: () => Promise<T>, maxAgeMs: number, clock: Clock) {
    this.#ask = ask;
    this.#maxAgeMs = maxAgeMs;
    this.#clock = clock;
  }

  get(): Promise<T> {
    const { monotonicMs } = this.#clock.now();
    if (this.#known !== undefined && monotonicMs - this.#known.atMs < this.#maxAgeMs)
      return this.#known.answer;
    const known = { answer: this.#ask(), atMs: monotonicMs };
    this.#known = known;
    known.answer.catch(() => {
      if (this.#known === known) this.#known = undefined;
    });
    return known.answer;
  }

  forget(): void {
    this.#known = undefined;
  }
}
