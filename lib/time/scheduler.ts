import { AsyncResource } from 'node:async_hooks';
import { BriefMap } from '../collections/brief-map.js';
import type { CancelTimer } from './clock.js';
import type { Runtime } from './runtime.js';

/** Something that is to be done at its time. */
export interface Task {
  cancel(): void;
}

/** What comes up together. */
interface Slot {
  readonly number: number;
  readonly entries: Set<Entry>;
}

/** One callback in a slot. */
class Entry implements Task {
  readonly slot: Slot;
  readonly callback: () => void;
  readonly #drop: (entry: Entry) => void;

  constructor(slot: Slot, callback: () => void, drop: (entry: Entry) => void) {
    this.slot = slot;
    this.callback = callback;
    this.#drop = drop;
  }

  cancel(): void {
    this.#drop(this);
  }
}

/** Entries of one slot come up together, so that renewals can be sent as a batch. */
export const SLOT_MS = 5;

/**
 * Many due times, one timer. Due times are rounded down to slots of 5 ms, so a task is due at its time or a little
 * before, never after. A cancelled task is removed at once.
 */
export class Scheduler {
  readonly runtime: Runtime;
  /** Timers belong to the service: in the context of the call that happens to set one, they would run inside its section. */
  readonly #context = new AsyncResource('HoldfastScheduler');
  readonly #slots = new BriefMap<number, Slot>();
  #timer: { readonly slot: number; readonly cancel: CancelTimer } | undefined;

  constructor(runtime: Runtime) {
    this.runtime = runtime;
  }

  /** Calls back in `delayMs`, or up to 5 ms before. */
  schedule(delayMs: number, callback: () => void, now = this.runtime.now()): Task {
    const number = Math.floor((now.monotonicMs + Math.max(0, delayMs)) / SLOT_MS);
    let slot = this.#slots.get(number);
    if (slot === undefined) {
      slot = { number, entries: new Set() };
      this.#slots.set(number, slot);
    }
    const entry = new Entry(slot, callback, this.#drop);
    slot.entries.add(entry);
    if (this.#timer === undefined || number < this.#timer.slot) this.#arm(number);
    return entry;
  }

  /** Forgets every entry and stops the timer. */
  clear(): void {
    this.#slots.clear();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Also of a slot that is being run. */
  readonly #drop = (entry: Entry): void => {
    const { number, entries } = entry.slot;
    entries.delete(entry);
    if (entries.size > 0 || this.#slots.get(number) !== entry.slot) return;
    this.#slots.delete(number);
    if (this.#slots.size === 0) this.clear();
  };

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
    const due: Slot[] = [];
    let next = Infinity;
    for (const [number, slot] of this.#slots) {
      if (number <= current) {
        due.push(slot);
        this.#slots.delete(number);
      } else next = Math.min(next, number);
    }
    if (next < Infinity) this.#arm(next);
    for (const { entries } of due) for (const { callback } of entries) callback();
  }
}
