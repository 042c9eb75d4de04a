import { elapsedMs } from '../time/clock.js';
import type { Runtime } from '../time/runtime.js';
import { SLOT_MS, type Scheduler } from '../time/scheduler.js';

/** Keeps the processes in line from looking at the same moment. */
const jitterMs = (runtime: Runtime): number => SLOT_MS * (1 + 2 * runtime.random());

/** How a line waits between two looks. */
export class LineSleep {
  readonly #scheduler: Scheduler;
  /** Ends the current sleep. A call that is to be served within this many ms may end it later. */
  #wake: ((withinMs: number) => void) | undefined;
  #end: (() => void) | undefined;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Whether it can be woken. */
  get isAsleep(): boolean {
    return this.#wake !== undefined;
  }

  /** Until it is woken or ended, or `ms` and a little. */
  async sleep(ms: number): Promise<void> {
    const { runtime } = this.#scheduler;
    await new Promise<void>((resolve) => {
      const since = runtime.now();
      let dueMs = ms;
      let alarm = this.#scheduler.schedule(ms + jitterMs(runtime), resolve);
      this.#end = () => {
        alarm.cancel();
        resolve();
      };
      this.#wake = (withinMs) => {
        if (withinMs === 0) {
          this.end();
          return;
        }
        const at = elapsedMs(since, runtime.now()) + withinMs;
        if (at >= dueMs) return;
        dueMs = at;
        alarm.cancel();
        alarm = this.#scheduler.schedule(withinMs + jitterMs(runtime), resolve);
      };
    });
    this.#wake = undefined;
    this.#end = undefined;
  }

  /** Until it is ended, or `ms` and a little: it is not to be woken. */
  async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const alarm = this.#scheduler.schedule(ms + jitterMs(this.#scheduler.runtime), resolve);
      this.#end = () => {
        alarm.cancel();
        resolve();
      };
    });
    this.#end = undefined;
  }

  /** Ends a sleep within this many ms; does not end a pause. */
  wake(withinMs: number): void {
    this.#wake?.(withinMs);
  }

  /** Ends a sleep or a pause: no caller waits any more. */
  end(): void {
    this.#end?.();
  }
}
