import { backOffMs, type BackOff } from '../time/back-off.js';
import type { Runtime } from '../time/runtime.js';
import { SLOT_MS, type Scheduler, type Task } from '../time/scheduler.js';
import type { AttemptOutcome } from './requests.js';

/** If the store cannot notify this process of releases, a line asks at least this often. */
export const POLL_MS = 500;
/**
 * If it can, a line asks this often too: the store may have lost the line (`FLUSHALL`, eviction, fail-over), and then
 * it calls no process.
 */
const LOOK_AGAIN_MS = 5_000;

/** During an outage. */
const RETRY: BackOff = { firstMs: 50, longestMs: 1_000 };

/** The range of pauses when votes were split: random, or the same callers meet again. */
const CONTENDED: BackOff = { firstMs: 10, longestMs: 250 };

/** No caller is sure to hold the lock: the store could not decide between several that asked at once. */
export const isContended = (outcome: AttemptOutcome): boolean =>
  'contended' in outcome && outcome.contended === true;

/** The pause after this many contended tries in a row. */
export const contendedPauseMs = (tries: number, runtime: Runtime): number =>
  runtime.random() * backOffMs(CONTENDED, tries);

/** The pause after this many failures in a row. */
export const outagePauseMs = (failures: number): number => backOffMs(RETRY, failures);

/** However sure a line is to be called: a place in one that is lost is taken again, with its ticket, before others have waited long. */
export const lookWithinMs = (ms: number, ttlMs = Infinity): number =>
  Math.min(ms, LOOK_AGAIN_MS, ttlMs / 3);

/** Keeps the processes in line from looking at the same moment. */
const jitterMs = (runtime: Runtime): number => SLOT_MS * (1 + 2 * runtime.random());

/** How a line waits between two looks. */
export class LineSleep {
  readonly #scheduler: Scheduler;
  /** When the sleep that can be woken ends by itself. */
  #dueMs: number | undefined;
  #alarm: Task | undefined;
  #resolve: (() => void) | undefined;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Whether it can be woken. */
  get isAsleep(): boolean {
    return this.#dueMs !== undefined;
  }

  /** Until it is woken or ended, or `ms` and a little. */
  sleep(ms: number): Promise<void> {
    this.#dueMs = this.#now() + ms;
    return this.pause(ms);
  }

  /** Until it is ended, or `ms` and a little: it is not to be woken. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#setAlarm(ms);
    });
  }

  /** Ends a sleep within this many ms; does not end a pause. */
  wake(withinMs: number): void {
    if (this.#dueMs === undefined) return;
    if (withinMs === 0) {
      this.end();
      return;
    }
    const dueMs = this.#now() + withinMs;
    if (dueMs >= this.#dueMs) return;
    this.#dueMs = dueMs;
    this.#setAlarm(withinMs);
  }

  /** Ends a sleep or a pause: no caller waits any more. */
  end(): void {
    this.#alarm?.cancel();
    this.#dueMs = undefined;
    this.#resolve?.();
  }

  #now(): number {
    return this.#scheduler.runtime.now().monotonicMs;
  }

  #setAlarm(ms: number): void {
    this.#alarm?.cancel();
    const { runtime } = this.#scheduler;
    this.#alarm = this.#scheduler.schedule(ms + jitterMs(runtime), () => {
      this.end();
    });
  }
}
