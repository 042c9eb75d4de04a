import type { Instant } from '../../../../lib/time/clock.js';
import type { Runtime } from '../../../../lib/time/runtime.js';
import type { SimClock } from './clock.js';
import { Phase, type Event } from './event-queue.js';
import { LATE_US, type World } from './world.js';

/** Lets the process run a callback now, or when it runs again, or never. */
export type Enter = (callback: () => void, phase: Phase) => void;

/** Time, timers, chance and ids of one process. */
export class SimRuntime implements Runtime {
  readonly #world: World;
  readonly #clock: SimClock;
  readonly #enter: Enter;
  readonly #name: string;
  /** Each with where it is. */
  readonly #timers = new Map<() => void, 'background' | undefined>();
  /** The number of the last id. Instances are known by the ends of their ids, so each begins elsewhere. */
  #lastId: number;

  constructor(world: World, clock: SimClock, enter: Enter) {
    this.#world = world;
    this.#clock = clock;
    this.#enter = enter;
    const name = world.random.processes.between(0, 2 ** 32 - 1);
    this.#name = name.toString(16).padStart(8, '0');
    this.#lastId = name;
  }

  /** How all of its ids begin. */
  get idPrefix(): string {
    return this.#name;
  }

  /** How many timers keep the process running. */
  get timers(): number {
    return [...this.#timers.values()].filter((where) => where === undefined).length;
  }

  now(): Instant {
    const { monotonicUs, wallUs } = this.#clock;
    return { monotonicMs: monotonicUs / 1_000, wallMs: Math.floor(wallUs / 1_000) };
  }

  setTimer(callback: () => void, delayMs: number, where?: 'background'): () => void {
    // As Node does it: whole milliseconds, at least one.
    const wholeMs = Math.max(1, Math.trunc(delayMs));
    const dueUs = this.#clock.monotonicUs + wholeMs * 1_000;
    const { latestTimerUs, random } = this.#world;
    const cancel = this.#when(callback, dueUs, latestTimerUs * random.processes.fraction());
    this.#timers.set(cancel, where);
    return cancel;
  }

  afterInput(callback: () => void): () => void {
    let isDue = true;
    this.#enter(() => {
      if (isDue) callback();
    }, Phase.AfterInput);
    return () => {
      isDue = false;
    };
  }

  random(): number {
    return this.#world.random.processes.fraction();
  }

  uuid(): string {
    this.#lastId += 1;
    return `${this.#name}-0000-4000-8000-${this.#lastId.toString(16).padStart(12, '0')}`;
  }

  /** Forgets all timers: the process is dead. */
  clear(): void {
    for (const cancel of [...this.#timers.keys()]) cancel();
  }

  #when(callback: () => void, dueUs: number, lateUs: number): () => void {
    let event: Event | undefined;
    let isSet = true;
    const cancel = (): void => {
      isSet = false;
      if (event !== undefined) event.callback = undefined;
      this.#timers.delete(cancel);
    };
    const arm = (extraUs: number): void => {
      const leftUs = (dueUs - this.#clock.monotonicUs) / this.#clock.rate;
      event = this.#world.in(leftUs + extraUs, () => {
        this.#enter(() => {
          if (!isSet) return;
          // While the machine slept, its clock stood still.
          if (this.#clock.monotonicUs < dueUs - LATE_US) {
            arm(0);
            return;
          }
          cancel();
          callback();
        }, Phase.Usual);
      });
    };
    arm(lateUs);
    return cancel;
  }
}
