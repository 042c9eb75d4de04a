/** Callers of a process: they ask for locks, hold them, and write down what they see. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockEngine } from '../../../lib/engine/lock-engine.js';
import type { DetachableLock, Lock } from '../../../lib/lease/lock.js';
import type { AcquireOptions, MethodRunOptions } from '../../../lib/options/acquire-options.js';
import { type CallNotes, errorName } from './call-notes.js';
import { now } from './history.js';
import { Holding } from './holding.js';

/** `poll` tries again and again until its wait is over; `once` is work that is to be done once; `job` is one that `@CronLock` locks. */
export type How = 'acquire' | 'tryAcquire' | 'run' | 'poll' | 'once' | 'job';

/** What a caller does with a lock that it has. */
export interface Work {
  readonly holdMs: number;
  /** At its end it goes to somebody else; only of a lock that has no section. */
  readonly detach?: DetachPlan;
}

export interface DetachPlan {
  /** Until it is attached. */
  readonly ttlMs: number;
  /** On its way, each time that it is delivered. */
  readonly afterMs: readonly number[];
  /** Of the caller who attaches it. */
  readonly work: Work;
}

export interface Call extends Work {
  readonly how: How;
  readonly keys: readonly string[];
  readonly options: AcquireOptions;
  /** After so long the caller wants an answer. */
  readonly waitMs: number;
  /** It gives up after so long. */
  readonly patienceMs?: number;
}

/** A lock that is on its way to another caller. */
export interface Parcel {
  readonly text: string;
  readonly sender: string;
  /** The number of the time without a holder, among the calls of its sender. */
  readonly part: number;
  readonly keys: readonly string[];
  readonly mode: string;
  readonly places?: number;
  readonly afterMs: readonly number[];
  readonly work: Work;
}

/** Attempts die with their processes, and not by the dozen. */
const ATTEMPTS = 20;

/** Longer than any run. */
const KEEP_DONE_MS = 600_000;

/** A pause of those who poll, on average. */
const POLL_MS = 5;

/** What a call asks for. */
interface Asked {
  readonly ask: number;
  readonly call: Call;
  readonly signal: AbortSignal | undefined;
}

export class RecordedCalls {
  readonly #notes: CallNotes;
  readonly #send: (parcel: Parcel) => void;

  /** @param send passes a detached lock to the process that attaches it */
  constructor(notes: CallNotes, send: (parcel: Parcel) => void = () => undefined) {
    this.#notes = notes;
    this.#send = send;
  }

  /** Never rejects: what went wrong is in the history. */
  async make(locks: LockEngine, call: Call): Promise<void> {
    const notes = this.#notes;
    const ask = notes.nextAsk();
    const { how, keys, options, waitMs, patienceMs } = call;
    const giveUp = new AbortController();
    const timer =
      patienceMs === undefined ? undefined : setTimeout(() => giveUp.abort(), patienceMs);
    notes.record({ type: 'ask', ask, how, keys, waitMs, ...promisesOf(options) });
    try {
      const asked = { ask, call, signal: patienceMs === undefined ? undefined : giveUp.signal };
      if (how === 'run' || how === 'job') await this.#run(locks, asked);
      else if (how === 'once') await this.#once(locks, asked);
      else await this.#acquire(locks, asked);
    } catch (error) {
      notes.failed(ask, error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Takes over a lock that was detached. Never rejects. */
  async attach(locks: LockEngine, parcel: Parcel): Promise<void> {
    const notes = this.#notes;
    const { text, sender, part, keys, mode, places, work } = parcel;
    const ask = notes.nextAsk();
    const taken = places === undefined ? {} : { places };
    notes.record({
      ...{ type: 'ask', ask, how: 'attach', keys, mode, ...taken, waitMs: 0, sender, part },
    });
    try {
      const lock = await locks.attach(text);
      await this.#holdAndRelease(lock, new Holding(notes, { ask, mode, lock }), work, places);
    } catch (error) {
      notes.failed(ask, error);
    }
  }

  async #acquire(locks: LockEngine, { ask, call, signal }: Asked): Promise<void> {
    const { how, keys, options } = call;
    const lock =
      how === 'acquire'
        ? await locks.acquire(keys, { ...options, signal })
        : await this.#try(locks, call);
    if (lock === null) this.#notes.record({ type: 'refused', ask });
    else {
      const holding = new Holding(this.#notes, { ask, mode: modeOf(options), lock });
      await this.#holdAndRelease(lock, holding, call, options.places);
    }
  }

  async #holdAndRelease(
    lock: DetachableLock,
    holding: Holding,
    work: Work,
    places: number | undefined,
  ): Promise<void> {
    await this.#hold(holding, work);
    if (work.detach !== undefined && lock.isHeld) {
      await this.#detach(lock, holding, {
        ...work.detach,
        ...(places !== undefined && { places }),
      });
      return;
    }
    const result = await lock.release().then(String, errorName);
    this.#notes.record({ type: 'released', ask: holding.ask, result });
  }

  async #try(
    locks: LockEngine,
    { how, keys, options, waitMs }: Call,
  ): Promise<DetachableLock | null> {
    const { wait: _wait, ...withoutWait } = options;
    const until = now() + waitMs;
    for (;;) {
      const lock = await locks.tryAcquire(keys, withoutWait);
      if (lock !== null || how !== 'poll' || now() >= until) return lock;
      await sleep(2 * POLL_MS * Math.random());
    }
  }

  /** The lock is given back by itself. */
  async #run(locks: LockEngine, { ask, call, signal }: Asked): Promise<void> {
    const notes = this.#notes;
    const { how, keys, options } = call;
    const entered: Holding[] = [];
    const work = async (lock: Lock): Promise<void> => {
      const holding = new Holding(notes, { ask, mode: modeOf(options), lock });
      entered.push(holding);
      await this.#hold(holding, call);
    };
    try {
      if (how === 'job') await runJob(locks, call, work);
      else await locks.run(keys, { ...options, signal }, work);
      notes.record({ type: 'released', ask: entered[0]?.ask ?? ask, result: 'true' });
    } catch (error) {
      const [holding] = entered;
      if (holding === undefined) throw error;
      notes.record({ type: 'released', ask: holding.ask, result: errorName(error) });
    }
  }

  async #once(locks: LockEngine, { ask, call, signal }: Asked): Promise<void> {
    const notes = this.#notes;
    const { ttl, wait } = call.options;
    const options = { ttl, wait, signal, attempts: ATTEMPTS, keepDone: KEEP_DONE_MS };
    const result = await locks.runOnce(
      call.keys[0]!,
      options,
      async ({ attempt, isLastAttempt: isLast, lock }) => {
        const { fencingToken } = lock;
        notes.record({ type: 'attempt', ask, attempt, isLast, fencingToken });
        await this.#hold(new Holding(notes, { ask, mode: 'exclusive', lock }), call);
        return `${notes.client}#${ask}`;
      },
    );
    if (result.outcome === 'busy') notes.record({ type: 'refused', ask });
    else notes.record({ type: 'once', ask, ...result });
  }

  /** The section. */
  async #hold(holding: Holding, { holdMs }: Work): Promise<void> {
    await holding.last(holdMs);
    holding.end();
  }

  /** From the call on nobody holds the lock. */
  async #detach(
    lock: DetachableLock,
    { ask, mode }: Holding,
    { ttlMs: forMs, afterMs, work, places }: DetachPlan & { readonly places?: number },
  ): Promise<void> {
    const notes = this.#notes;
    const { keys, fencingToken } = lock;
    const part = notes.nextAsk();
    const taken = { keys, mode, ...(places !== undefined && { places }) };
    notes.record({ type: 'detaches', ask, part });
    try {
      const text = await lock.detach({ ttl: forMs });
      notes.record({ type: 'detached', ask, part, ...taken, fencingToken, forMs });
      this.#send({ text, sender: notes.client, part, ...taken, afterMs, work });
    } catch (error) {
      notes.record({ type: 'released', ask, result: errorName(error) });
    }
  }
}

/** As `@CronLock` locks a method. */
async function runJob(
  locks: LockEngine,
  { keys, options }: Call,
  work: (lock: Lock) => Promise<void>,
): Promise<void> {
  const asMethod: MethodRunOptions = { ...options, isMethod: true, ttlCoversMinHold: true };
  const scope = await locks.openScope(keys, asMethod);
  await scope.run(work, () => undefined);
}

/** What the checker has to know of the options. */
function promisesOf(options: AcquireOptions): {
  mode?: string;
  places?: number;
  minHoldMs?: number;
  replaceWaitMs?: number;
} {
  const { places, minHold, replaceWait } = options;
  const mode = modeOf(options);
  return {
    ...(mode !== 'exclusive' && { mode }),
    ...(places !== undefined && { places }),
    ...(minHold !== undefined && { minHoldMs: Number(minHold) }),
    ...(replaceWait !== undefined && { replaceWaitMs: Number(replaceWait) }),
  };
}

const modeOf = ({ mode = 'exclusive', limit }: AcquireOptions): string =>
  limit === undefined ? mode : `limit:${limit}`;
