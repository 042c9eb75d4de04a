import type { Runtime } from '../time/runtime.js';

/** An answer that is asked for anew when it is old. Those who ask meanwhile get the same one. A failure is not kept. */
export class Remembered<T> {
  readonly #ask: () => Promise<T>;
  readonly #maxAgeMs: number;
  readonly #runtime: Runtime;
  #known: { readonly answer: Promise<T>; readonly atMs: number } | undefined;

  constructor(ask: () => Promise<T>, maxAgeMs: number, runtime: Runtime) {
    this.#ask = ask;
    this.#maxAgeMs = maxAgeMs;
    this.#runtime = runtime;
  }

  get(): Promise<T> {
    const { monotonicMs } = this.#runtime.now();
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
