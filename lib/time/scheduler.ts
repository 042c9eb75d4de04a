import { AsyncResource } from 'node:async_hooks';
import { BriefMap } from '../collections/brief-map.js';
import { Chain, type ChainOwner, type Linked } from '../collections/chain.js';
import type { CancelTimer } from './clock.js';
import type { Runtime } from './runtime.js';

/** Something that is to be done at its time. */
export interface Task {
  cancel(): void;
}

/** What the scheduler calls. */
export class DueTask implements Task, Linked<DueTask> {
  /** The slot in which it is until it comes up or is cancelled. */
  chain: Chain<DueTask> | undefined;
  before: DueTask | undefined;
  after: DueTask | undefined;
  readonly #callback: () => void;

  constructor(callback: () => void) {
    this.#callback = callback;
  }

  onDue(): void {
    this.#callback();
  }

  get isPlanned(): boolean {
    return this.chain !== undefined;
  }

  cancel(): void {
    this.chain?.delete(this);
  }
}

/** Tasks that come up together. */
class Slot extends Chain<DueTask> {
  readonly number: number;

  constructor(number: number, scheduler: Scheduler) {
    super(scheduler);
    this.number = number;
  }
}

/** Tasks of one slot come up together, so that renewals can be sent as a batch. */
export const SLOT_MS = 5;

/**
 * Many due times, one timer. Due times are rounded down to slots of 5 ms, so a task is due at its time or a little
 * before, never after. A cancelled task is removed at once.
 */
export class Scheduler implements ChainOwner<DueTask> {
  readonly runtime: Runtime;
  /** Timers belong to the service: in the context of the call that happens to set one, they would run inside its section. */
  readonly #context = new AsyncResource('HoldfastScheduler');
  readonly #slots = new BriefMap<number, Slot>();
  #timer: { readonly slot: number; readonly cancel: CancelTimer } | undefined;
  #where: 'background' | undefined;

  constructor(runtime: Runtime) {
    this.runtime = runtime;
  }

  /** Calls back in `delayMs`, or up to 5 ms before. */
  schedule(delayMs: number, callback: () => void, now = this.runtime.now()): Task {
    const task = new DueTask(callback);
    this.add(task, delayMs, now);
    return task;
  }

  /** Calls a task that is not scheduled in `delayMs`, or up to 5 ms before. */
  add(task: DueTask, delayMs: number, now: { readonly monotonicMs: number }): void {
    const number = Math.floor((now.monotonicMs + Math.max(0, delayMs)) / SLOT_MS);
    let slot = this.#slots.get(number);
    if (slot === undefined) {
      slot = new Slot(number, this);
      this.#slots.set(number, slot);
    }
    slot.add(task);
    if (this.#timer === undefined || number < this.#timer.slot) this.#arm(number);
    else if (this.#where === undefined) this.#timer.cancel.keepRunning?.(true);
  }

  /** Lets the process end before its tasks come up. They still do, because calls may wait for them. */
  toBackground(): void {
    this.#where = 'background';
    if (this.#slots.size === 0) this.#rest();
    else if (this.#timer !== undefined) this.#arm(this.#timer.slot);
  }

  /** A slot is empty; it may be one that has come up. */
  onEmpty(slot: Slot): void {
    if (this.#slots.get(slot.number) !== slot) return;
    this.#slots.delete(slot.number);
    if (this.#slots.size === 0) this.#rest();
  }

  /** Most often the next task comes before the timer. So the timer stays, where it need not keep the process running. */
  #rest(): void {
    const { keepRunning } = this.#timer?.cancel ?? {};
    if (keepRunning !== undefined && this.#where === undefined) {
      keepRunning(false);
      return;
    }
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(slot: number): void {
    this.#timer?.cancel();
    const delayMs = slot * SLOT_MS - this.runtime.now().monotonicMs;
    const cancel = this.#context.runInAsyncScope(() =>
      this.runtime.setTimer(
        () => {
          this.#timer = undefined;
          this.#runDue();
        },
        delayMs,
        this.#where,
      ),
    );
    this.#timer = { slot, cancel };
  }

  #runDue(): void {
    const current = Math.floor(this.runtime.now().monotonicMs / SLOT_MS);
    const due: Slot[] = [];
    let next = Infinity;
    // Only the numbers are read: a pair of the map would be an array of its own.
    for (const number of this.#slots.keys()) {
      if (number > current) next = Math.min(next, number);
      else {
        const slot = this.#slots.get(number);
        if (slot !== undefined) due.push(slot);
        this.#slots.delete(number);
      }
    }
    if (next < Infinity) this.#arm(next);
    // Without those that another one cancels.
    for (const slot of due)
      for (let task = slot.first; task !== undefined; task = slot.first) {
        slot.delete(task);
        task.onDue();
      }
  }
}
