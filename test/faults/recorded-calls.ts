/** Callers of a client process: they ask for locks, hold them, and write down what they see. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LockEngine } from '../../lib/engine/lock-engine.js';
import { LockError } from '../../lib/errors.js';
import type { Lock } from '../../lib/lease/lock.js';
import type { AcquireOptions } from '../../lib/options/acquire-options.js';
import { now, type Recorder } from './history.js';

/** `poll` tries again and again until its wait is over; `once` is work that is to be done once. */
export type How = 'acquire' | 'tryAcquire' | 'run' | 'poll' | 'once';

export interface Call {
  readonly how: How;
  readonly keys: readonly string[];
  readonly options: AcquireOptions;
  /** After so long the caller wants an answer. */
  readonly waitMs: number;
  /** It gives up after so long. */
  readonly patienceMs?: number;
  readonly holdMs: number;
}

const LOOK_EVERY_MS = 20;

/** Attempts die with their processes, and not by the dozen. */
const ATTEMPTS = 20;

/** Longer than any run. */
const KEEP_DONE_MS = 600_000;

/** A pause of those who poll, on average. */
const POLL_MS = 5;

export class RecordedCalls {
  readonly #recorder: Recorder;
  readonly #client: string;
  readonly #believesToHold: (lock: Lock) => boolean;
  #asks = 0;

  constructor(
    recorder: Recorder,
    client: string,
    believesToHold = (lock: Lock): boolean => lock.isHeld,
  ) {
    this.#recorder = recorder;
    this.#client = client;
    this.#believesToHold = believesToHold;
  }

  /** Never rejects: what went wrong is in the history. */
  async make(locks: LockEngine, call: Call): Promise<void> {
    const client = this.#client;
    const ask = (this.#asks += 1);
    const { how, keys, options, waitMs, patienceMs } = call;
    const giveUp = new AbortController();
    const timer =
      patienceMs === undefined ? undefined : setTimeout(() => giveUp.abort(), patienceMs);
    this.#recorder.record({ type: 'ask', client, ask, how, keys, waitMs, ...promisesOf(options) });
    try {
      const signal = patienceMs === undefined ? undefined : giveUp.signal;
      if (how === 'run') await this.#run(locks, ask, call, signal);
      else if (how === 'once') await this.#once(locks, ask, call, signal);
      else {
        const lock =
          how === 'acquire'
            ? await locks.acquire(keys, { ...options, signal })
            : await this.#try(locks, call);
        if (lock === null) this.#recorder.record({ type: 'refused', client, ask });
        else await this.#hold(ask, lock, call.holdMs, () => lock.release());
      }
    } catch (error) {
      this.#recordFailure(ask, error);
    } finally {
      clearTimeout(timer);
    }
  }

  async #try(locks: LockEngine, { how, keys, options, waitMs }: Call): Promise<Lock | null> {
    const { wait: _wait, ...withoutWait } = options;
    const until = now() + waitMs;
    for (;;) {
      const lock = await locks.tryAcquire(keys, withoutWait);
      if (lock !== null || how !== 'poll' || now() >= until) return lock;
      await sleep(2 * POLL_MS * Math.random());
    }
  }

  /** `run` gives the lock back by itself. */
  async #run(
    locks: LockEngine,
    ask: number,
    { keys, options, holdMs }: Call,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const client = this.#client;
    let entered = false;
    try {
      await locks.run(keys, { ...options, signal }, async (lock) => {
        entered = true;
        await this.#hold(ask, lock, holdMs);
      });
      this.#recorder.record({ type: 'released', client, ask, result: 'true' });
    } catch (error) {
      if (!entered) throw error;
      this.#recorder.record({ type: 'released', client, ask, result: errorName(error) });
    }
  }

  async #once(
    locks: LockEngine,
    ask: number,
    { keys, options: { ttl, wait }, holdMs }: Call,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const client = this.#client;
    const options = { ttl, wait, signal, attempts: ATTEMPTS, keepDone: KEEP_DONE_MS };
    const result = await locks.runOnce(
      keys[0]!,
      options,
      async ({ attempt, isLastAttempt, lock }) => {
        const { fencingToken } = lock;
        this.#recorder.record({
          ...{ type: 'attempt', client, ask, attempt, isLast: isLastAttempt, fencingToken },
        });
        await this.#hold(ask, lock, holdMs);
        return `${client}#${ask}`;
      },
    );
    if (result.outcome === 'busy') this.#recorder.record({ type: 'refused', client, ask });
    else this.#recorder.record({ type: 'once', client, ask, ...result });
  }

  /** The section: looks at the lock from its first moment to its last. */
  async #hold(
    ask: number,
    lock: Lock,
    holdMs: number,
    release?: () => Promise<boolean>,
  ): Promise<void> {
    const client = this.#client;
    const { fencingToken, keys, signal } = lock;
    const aheadMs = fencingToken / 1_000 - Date.now();
    this.#recorder.record({ type: 'granted', client, ask, keys, fencingToken, aheadMs });
    signal.addEventListener('abort', () => {
      const reason = reasonOf(signal.reason);
      this.#recorder.record({ type: 'lost', client, ask, reason });
    });
    const until = now() + holdMs;
    while (this.#isHeld(ask, lock) && now() < until) {
      await sleep(Math.max(1, Math.min(LOOK_EVERY_MS, until - now())));
    }
    this.#recorder.record({ type: 'releasing', client, ask });
    if (release === undefined) return;
    const result = await release().then(String, errorName);
    this.#recorder.record({ type: 'released', client, ask, result });
  }

  #isHeld(ask: number, lock: Lock): boolean {
    const at = now();
    const held = this.#believesToHold(lock);
    const until = at + lock.remainingMs;
    if (held) this.#recorder.record({ type: 'held', client: this.#client, ask, until }, at);
    return held;
  }

  #recordFailure(ask: number, error: unknown): void {
    const client = this.#client;
    const isRefusal = error instanceof LockError && error.code === 'LOCK_NOT_ACQUIRED';
    if (isRefusal) this.#recorder.record({ type: 'refused', client, ask });
    else this.#recorder.record({ type: 'failed', client, ask, error: errorName(error) });
  }
}

/** What the checker has to know of the options. */
function promisesOf({ mode, limit, minHold }: AcquireOptions): {
  mode?: string;
  minHoldMs?: number;
} {
  return {
    ...(mode !== undefined && { mode }),
    ...(limit !== undefined && { mode: `limit:${limit}` }),
    ...(minHold !== undefined && { minHoldMs: Number(minHold) }),
  };
}

const errorName = (error: unknown): string => (error instanceof Error ? error.name : String(error));

const reasonOf = (error: unknown): string =>
  String((error as { readonly reason?: unknown } | undefined)?.reason);
