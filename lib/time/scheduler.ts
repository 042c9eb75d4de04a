import { AsyncResource } from 'node:async_hooks';
import type { CancelTimer } from './clock.js';
import type { Runtime } from './runtime.js';

/** Something that is to be done at its time. */
export interface Task {
  cancel(): void;
}

/** Entries of one slot come up together, so that renewals can be sent as a batch. */
export const SLOT_MS = 5;

/**
 * Many due times, one timer. Due times are rounded down to slots of 5 ms, so that an entry comes up at its time or a little
 * before, never after; entries can be cancelled at once and leave nothing behind.
 */
export class Scheduler {
  readonly runtime: Runtime;
  /** Timers belong to the service: in the context of the call that happens to set one, they would run inside its section. */
  readonly #context = new AsyncResource('HoldfastScheduler');
  readonly #slots = new Map<number, Set<() => void>>();
  #timer: { readonly slot: number; readonly cancel: CancelTimer } | undefined;

  constructor(runtime: Runtime) {
    this.runtime = runtime;
  }

  /** Calls back in `delayMs`, or up to 5 ms before. */
  schedule(delayMs: number, callback: () => void, now = this.runtime.now()): Task {
    const slot = Math.floor((now.monotonicMs + Math.max(0, delayMs)) / SLOT_MS);
    const entries = this.#slots.get(slot) ?? new Set();
    entries.add(callback);
    this.#slots.set(slot, entries);
    if (this.#timer === undefined || slot < this.#timer.slot) this.#arm(slot);
    return {
      cancel: () => {
        entries.delete(callback);
        if (entries.size > 0 || this.#slots.get(slot) !== entries) return;
        this.#slots.delete(slot);
        if (this.#slots.size === 0) this.clear();
      },
    };
  }

  /** Forgets every entry and stops the timer. */
  clear(): void {
    this.#slots.clear();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(slot: number): void {
    this.#timer?.cancel();
    const delayMs = slot * SLOT_MS - this.runtime.now().monotonicMs;
    const cancel = this.#context.runInAsyncScope(() =>
      this.runtime.setTimer(() => {
        this.#timer = undefined;
        this.#runDue();
      }, delayMs),
    );
    this.#timer = { slot, cancel };
  }

  #runDue(): void {
    const current = Math.floor(this.runtime.now().monotonicMs / SLOT_MS);
    const due: Set<() => void>[] = [];
    let next = Infinity;
    for (const [slot, entries] of this.#slots) {
      if (slot <= current) {
        due.push(entries);
        this.#slots.delete(slot);
      } else next = Math.min(next, slot);
    }
    if (next < Infinity) this.#arm(next);
    for (const entries of due) for (const callback of entries) callback();
  }
}
