import type { LockEngine } from '../../../../lib/engine/lock-engine.js';
import type { History } from '../history.js';
import type { CallerPlan, Operation } from '../scenario.js';
import type { SimProcess } from '../world/sim-process.js';
import { Calls } from './calls.js';
import type { Parcel, Send } from './detaching.js';
import type { Holdings } from './holdings.js';
import { Leading } from './leading.js';
import { sleep } from './sleep.js';

export interface CallersOptions {
  readonly engine: LockEngine;
  readonly process: SimProcess;
  readonly history: History;
  readonly holdings: Holdings;
  readonly send: Send;
}

/** The callers of a process, each of which does one thing after another. */
export class Callers {
  readonly #process: SimProcess;
  readonly #calls: Calls;
  readonly #leading: Leading;
  readonly #left = new Map<CallerPlan, readonly Operation[]>();
  #running: Promise<unknown> = Promise.resolve();
  readonly #stopping = new AbortController();

  constructor(options: CallersOptions) {
    this.#process = options.process;
    this.#calls = new Calls(options);
    const { nextAsk } = this.#calls;
    this.#leading = new Leading({ ...options, nextAsk, stopping: this.#stopping.signal });
  }

  get unfinished(): readonly CallerPlan[] {
    return [...this.#left.values()].map((operations) => ({ startMs: 0, operations }));
  }

  /** Resolves when the last of them has done what it was doing. */
  get hasStopped(): Promise<unknown> {
    return this.#running;
  }

  async run(plans: readonly CallerPlan[]): Promise<void> {
    const { applicationRuntime } = this.#process;
    const starts = new Map<number, Promise<void>>();
    const start = (startMs: number): Promise<void> => {
      const starting = starts.get(startMs) ?? sleep(applicationRuntime, startMs);
      starts.set(startMs, starting);
      return starting;
    };
    this.#running = Promise.all(plans.map((plan) => this.#runOne(plan, start(plan.startMs))));
    await this.#running;
  }

  receive(parcel: Parcel): Promise<void> {
    return this.#calls.attach(parcel);
  }

  /** Nobody begins with anything new, and candidates do not stand any more. */
  stop(): void {
    this.#stopping.abort();
  }

  /** @param starting one timer for all that start at one moment: they ask in one turn of the event loop */
  async #runOne(plan: CallerPlan, starting: Promise<void>): Promise<void> {
    const { applicationRuntime } = this.#process;
    this.#left.set(plan, plan.operations);
    await starting;
    for (const [index, operation] of plan.operations.entries()) {
      // Between two calls a timer at least: who is refused together with others asks again after they have left.
      if (index > 0 || operation.pauseMs > 0) await sleep(applicationRuntime, operation.pauseMs);
      if (this.#stopping.signal.aborted) return;
      const rest = plan.operations.slice(index + 1);
      const { lead } = operation;
      // A process that replaces this one is a candidate, too.
      this.#left.set(plan, lead === undefined ? rest : [operation, ...rest]);
      if (lead === undefined) await this.#calls.make(operation);
      else await this.#leading.stand(operation, lead);
      this.#left.set(plan, rest);
    }
  }
}
