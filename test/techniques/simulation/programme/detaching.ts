import type { LockEngine } from '../../../../lib/engine/lock-engine.js';
import type { DetachableLock } from '../../../../lib/lease/lock.js';
import type { History } from '../history.js';
import type { DetachPlan } from '../scenario.js';
import type { SimProcess } from '../world/sim-process.js';
import { errorName, recordFailure } from './failures.js';
import type { Holding, Holdings } from './holdings.js';

/** A lock that is on its way to another process. */
export interface Parcel {
  readonly text: string;
  /** The number of the time without a holder, among the calls of its sender. */
  readonly part: number;
  readonly sender: string;
  readonly keys: readonly string[];
  readonly mode: string;
  readonly places: number | undefined;
  readonly holdMs: number;
}

/** Brings a parcel to whatever runs as a process by then. */
export type Send = (parcel: Parcel, plan: DetachPlan) => void;

interface Dependencies {
  readonly engine: LockEngine;
  readonly process: SimProcess;
  readonly history: History;
  readonly holdings: Holdings;
  readonly send: Send;
  /** The number of the next call. */
  readonly nextAsk: () => number;
}

/** Has locks go to other processes, and writes down what comes of it. */
export class Detaching {
  readonly #deps: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  /** Never rejects. From the call on nobody holds the lock. */
  async detach(lock: DetachableLock, holding: Holding, plan: DetachPlan): Promise<void> {
    const { process, history, send, nextAsk } = this.#deps;
    const { ask, mode } = holding;
    const { keys, fencingToken } = lock;
    const { ttlMs, holdMs } = plan;
    const client = process.name;
    const part = nextAsk();
    const facts = { client, ask, part };
    history.record({ type: 'detaches', ...facts });
    try {
      const text = await lock.detach({ ttl: ttlMs });
      const { places } = holding;
      history.record({
        ...{ type: 'detached', ...facts, keys, mode, fencingToken, forMs: ttlMs },
        ...(places !== undefined && { places }),
      });
      send({ text, part, sender: client, keys, mode, places, holdMs }, plan);
    } catch (error) {
      history.record({ type: 'released', client, ask, result: errorName(error) });
    }
  }

  /** Never rejects. */
  async attach(
    parcel: Parcel,
    hold: (lock: DetachableLock, ask: number) => Promise<void>,
  ): Promise<void> {
    const { engine, process, history, nextAsk } = this.#deps;
    const { text, part, sender, keys, mode, places } = parcel;
    const ask = nextAsk();
    const client = process.name;
    history.record({
      ...{ type: 'ask', client, ask, how: 'attach', keys, mode, waitMs: 0, part, sender },
      ...(places !== undefined && { places }),
    });
    try {
      const lock = await engine.attach(text);
      await hold(lock, ask);
    } catch (error) {
      recordFailure(history, { client, ask }, error);
    }
  }
}
