import type { LockEngine } from '../../../../lib/engine/lock-engine.js';
import type { LockLostError } from '../../../../lib/errors.js';
import { LockError, LockNotAcquiredError } from '../../../../lib/errors.js';
import type { Lock } from '../../../../lib/lease/lock.js';
import { NonRetryableError } from '../../../../lib/once/attempt.js';
import type { AcquireOptions, MethodRunOptions } from '../../../../lib/options/acquire-options.js';
import type { History } from '../history.js';
import type { Operation } from '../scenario.js';
import type { SimProcess } from '../world/sim-process.js';
import type { CallersOptions } from './callers.js';
import { errorName, PlannedFailure, recordFailure } from './failures.js';
import type { Holdings, LockHolding } from './holdings.js';
import { Detaching, type Parcel } from './detaching.js';
import { sleep } from './sleep.js';

/** A section that a call is made in. */
interface Outer {
  readonly holding: LockHolding;
  /** Calls inside it that want the same keys go through. */
  readonly isSection: boolean;
}

/** Calls the library as a scenario says, and writes down what comes of it. */
export class Calls {
  readonly #engine: LockEngine;
  readonly #process: SimProcess;
  readonly #history: History;
  readonly #holdings: Holdings;
  readonly #client: string;
  readonly #detaching: Detaching;
  #asks = 0;

  constructor({ engine, process, history, holdings, send }: CallersOptions) {
    this.#engine = engine;
    this.#process = process;
    this.#history = history;
    this.#holdings = holdings;
    this.#client = process.name;
    const { nextAsk } = this;
    this.#detaching = new Detaching({ engine, process, history, holdings, send, nextAsk });
  }

  /** The number of the next call. */
  readonly nextAsk = (): number => (this.#asks += 1);

  /** Never rejects: what went wrong is in the history. */
  async make(operation: Operation, outer?: Outer): Promise<void> {
    const client = this.#client;
    const ask = this.nextAsk();
    const { how, keys, mode, places, waitMs, patienceMs, minHoldMs, replaceWaitMs } = operation;
    const giveUp = new AbortController();
    const isPatient = patienceMs === undefined;
    const cancel = isPatient
      ? () => undefined
      : this.#process.applicationRuntime.setTimer(() => giveUp.abort(), patienceMs);
    const waits = how === 'tryAcquire' || how === 'tryRun' ? 0 : waitMs;
    this.#history.record({
      ...{ type: 'ask', client, ask, how, keys, mode },
      waitMs: Math.min(waits, patienceMs ?? Infinity),
      ...(minHoldMs !== undefined && { minHoldMs }),
      ...(places !== undefined && { places }),
      ...(replaceWaitMs !== undefined && { replaceWaitMs }),
    });
    const signal = isPatient ? undefined : giveUp.signal;
    try {
      if (how === 'acquire' || how === 'tryAcquire') await this.#acquire(operation, ask, signal);
      else if (how === 'once') await this.#once(operation, ask, signal);
      else await this.#run(operation, ask, { signal, outer });
    } catch (error) {
      if (outer !== undefined && isNested(keys, outer) && outer.holding.mode === 'exclusive')
        this.#history.record({ type: 'not-nested', client, ask, outer: outer.holding.ask });
      recordFailure(this.#history, { client, ask }, error);
    } finally {
      cancel();
    }
  }

  /** Takes over a lock that was detached. Never rejects. */
  attach(parcel: Parcel): Promise<void> {
    const { keys, mode, holdMs } = parcel;
    const operation: Operation = {
      ...{ how: 'acquire', keys, mode, holdMs, pauseMs: 0, waitMs: 0 },
      ttlMs: 0,
    };
    return this.#detaching.attach(parcel, async (lock, ask) => {
      const holding = this.#begin(operation, ask, lock);
      await this.#hold(operation, holding);
      const result = await lock.release().then(String, errorName);
      this.#history.record({ type: 'released', client: this.#client, ask, result });
    });
  }

  async #acquire(operation: Operation, ask: number, signal?: AbortSignal): Promise<void> {
    const { how, keys } = operation;
    const options = optionsOf(operation);
    const lock =
      how === 'acquire'
        ? await this.#engine.acquire(keys, { ...options, ...waitOf(operation), signal })
        : await this.#engine.tryAcquire(keys, options);
    const client = this.#client;
    if (lock === null) {
      this.#history.record({ type: 'refused', client, ask });
      return;
    }
    const holding = this.#begin(operation, ask, lock);
    await this.#hold(operation, holding);
    if (operation.detach !== undefined && lock.isHeld) {
      await this.#detaching.detach(lock, holding, operation.detach);
      return;
    }
    const result = await lock.release().then(String, errorName);
    this.#history.record({ type: 'released', client, ask: holding.ask, result });
  }

  async #run(
    operation: Operation,
    ask: number,
    { signal, outer }: { signal?: AbortSignal | undefined; outer?: Outer | undefined },
  ): Promise<void> {
    const { how, keys } = operation;
    const client = this.#client;
    const options = optionsOf(operation);
    let entered: { readonly ask: number } | undefined;
    const work = async (lock: Lock): Promise<void> => {
      entered = { ask };
      if (outer !== undefined && isNested(keys, outer)) {
        await this.#nest(ask, lock, outer);
        return;
      }
      const holding = this.#begin(operation, ask, lock);
      entered = holding;
      await this.#hold(operation, holding);
    };
    // Another function may have set it.
    const lastAsk = (): number | undefined => entered?.ask;
    try {
      if (operation.isJob === true) {
        if (!(await this.#job(operation, work))) {
          this.#history.record({ type: 'refused', client, ask });
          return;
        }
      } else if (how === 'run')
        await this.#engine.run(keys, { ...options, ...waitOf(operation), signal }, work);
      else {
        const { acquired } = await this.#engine.tryRun(keys, options, work);
        if (!acquired) {
          this.#history.record({ type: 'refused', client, ask });
          return;
        }
      }
      this.#history.record({ type: 'released', client, ask: lastAsk() ?? ask, result: 'true' });
    } catch (error) {
      const last = lastAsk();
      if (last === undefined) throw error;
      this.#history.record({ type: 'released', client, ask: last, result: errorName(error) });
    }
  }

  /** As `@CronLock` locks a method. Resolves with whether the job was run. */
  async #job(operation: Operation, work: (lock: Lock) => Promise<void>): Promise<boolean> {
    const options: MethodRunOptions = {
      ...optionsOf(operation),
      ...{ isMethod: true, ttlCoversMinHold: true, wait: 0 },
    };
    try {
      const scope = await this.#engine.openScope(operation.keys, options);
      await scope.run(work, () => undefined);
      return true;
    } catch (error) {
      if (error instanceof LockNotAcquiredError) return false;
      throw error;
    }
  }

  async #nest(ask: number, lock: Lock, outer: Outer): Promise<void> {
    const tokens = { fencingToken: lock.fencingToken, outerToken: outer.holding.lock.fencingToken };
    this.#history.record({
      type: 'nested',
      client: this.#client,
      ask,
      outer: outer.holding.ask,
      ...tokens,
    });
    await sleep(this.#process.applicationRuntime, 1);
  }

  async #once(operation: Operation, ask: number, signal?: AbortSignal): Promise<void> {
    const client = this.#client;
    const { keys, ttlMs, waitMs, maxHoldMs, once } = operation;
    const { attempts, keepDoneMs, keepValue, ends } = once!;
    const options = {
      ...{ attempts, keepDone: keepDoneMs, keepValue, ttl: ttlMs, wait: waitMs, signal },
      ...(maxHoldMs !== undefined && { maxHold: maxHoldMs }),
    };
    const result = await this.#engine.runOnce(keys[0]!, options, async (attempt) => {
      const { fencingToken } = attempt.lock;
      const { attempt: number, isLastAttempt: isLast } = attempt;
      this.#history.record({ type: 'attempt', client, ask, attempt: number, isLast, fencingToken });
      await this.#hold(operation, this.#begin(operation, ask, attempt.lock));
      if (ends === 'throws') throw new PlannedFailure('planned');
      if (ends === 'gives up') throw new NonRetryableError('planned');
      return `${client}#${ask}`;
    });
    if (result.outcome === 'busy') this.#history.record({ type: 'refused', client, ask });
    else this.#history.record({ type: 'once', client, ask, ...result });
  }

  /** The lock is had. */
  #begin(operation: Operation, ask: number, lock: Lock): LockHolding {
    const client = this.#client;
    const { fencingToken, keys } = lock;
    const listens = operation.ignoresSignal !== true;
    const { mode, places } = operation;
    const holding: LockHolding = { process: this.#process, ask, mode, places, lock, listens };
    const aheadMs = this.#holdings.aheadMs(fencingToken);
    this.#history.record({ type: 'granted', client, ask, keys, fencingToken, aheadMs });
    this.#holdings.add(holding);
    return holding;
  }

  /** The section, up to the moment when the lock is given back. */
  async #hold(operation: Operation, holding: LockHolding): Promise<void> {
    const client = this.#client;
    const { lock, listens } = holding;
    const signal = listens ? lock.signal : undefined;
    signal?.addEventListener('abort', () => {
      const { reason } = signal.reason as LockLostError;
      this.#history.record({ type: 'lost', client, ask: holding.ask, reason });
    });
    const isSection = operation.how !== 'acquire' && operation.how !== 'tryAcquire';
    try {
      await this.#work(operation, { holding, isSection }, signal);
    } finally {
      const { ask } = holding;
      this.#holdings.look(holding);
      this.#holdings.remove(holding);
      this.#history.record({ type: 'releasing', client, ask });
      if (operation.release === 'on-expiry') {
        // Also by one that was lost because it was held for too long, unless its lease was over as well.
        const type = lock.isHeld ? 'kept' : 'perhaps-kept';
        this.#history.record({ type, client, ask, forMs: operation.ttlMs });
      }
    }
  }

  async #work(operation: Operation, outer: Outer, signal?: AbortSignal): Promise<void> {
    const { applicationRuntime } = this.#process;
    const { extend, inner, blocksMs, stopsAfterMs } = operation;
    const { holding } = outer;
    let leftMs = operation.holdMs;
    if (extend !== undefined) {
      const afterMs = Math.min(extend.afterMs, leftMs);
      await sleep(applicationRuntime, afterMs, signal);
      leftMs -= afterMs;
      this.#history.record({ type: 'extends', client: this.#client, ask: holding.ask });
      await holding.lock.extend(extend.ttlMs).catch((error: unknown) => {
        if (!(error instanceof LockError)) throw error;
      });
    }
    if (blocksMs !== undefined) {
      this.#history.record({ type: 'paused', client: this.#client });
      this.#process.standStill(blocksMs, 'blocked');
      await sleep(applicationRuntime, 1);
    }
    if (operation.setLimit !== undefined)
      await this.#setLimit(operation, holding.ask, operation.setLimit);
    if (inner !== undefined) await this.make(inner, outer);
    if (leftMs > 0) await sleep(applicationRuntime, leftMs, signal);
    if (stopsAfterMs !== undefined && signal?.aborted === true)
      await sleep(applicationRuntime, stopsAfterMs);
  }

  async #setLimit({ keys }: Operation, ask: number, limit: number): Promise<void> {
    const key = keys[0]!;
    const facts = { client: this.#client, ask, key, limit };
    this.#history.record({ type: 'sets-limit', ...facts });
    try {
      await this.#engine.limiter(key, { limit }).setLimit(limit);
    } catch (error) {
      if (!(error instanceof LockError)) throw error;
      return;
    }
    this.#history.record({ type: 'limit-set', ...facts });
  }
}

function optionsOf(operation: Operation): AcquireOptions {
  const { ttlMs, autoExtend, minHoldMs, release, maxHoldMs, mode, places } = operation;
  const limit = /^limit:(\d+)$/.exec(mode)?.[1];
  return {
    ttl: ttlMs,
    ...(autoExtend !== undefined && { autoExtend }),
    ...(minHoldMs !== undefined && { minHold: minHoldMs }),
    ...(release !== undefined && { release }),
    ...(maxHoldMs !== undefined && { maxHold: maxHoldMs }),
    ...(limit !== undefined && { limit: Number(limit) }),
    ...(places !== undefined && { places }),
    ...(mode === 'shared' && { mode }),
  };
}

const waitOf = ({ waitMs, replaceWaitMs }: Operation): AcquireOptions =>
  replaceWaitMs === undefined
    ? { wait: waitMs }
    : { onLocked: 'replace', replaceWait: replaceWaitMs };

const isNested = (keys: readonly string[], { holding: { lock }, isSection }: Outer): boolean =>
  isSection && lock.isHeld && keys.every((key) => lock.keys.includes(key));
