import { EventEmitter } from 'node:events';
import { LockConfigurationError } from '../errors.js';
import type { OnceAttempt, RunOnceResult } from '../once/attempt.js';
import type { RunOnceOptions } from '../once/once-options.js';
import type { Duration } from '../options/duration.js';
import type { Resolved } from '../options/schema.js';
import { checkedOptions } from '../options/unknown-option.js';
import { LOCKING_WORKER, type LockingWorkerOptions } from './worker-options.js';

export type { LockingWorkerOptions };

/** The part of a `LockService` that a worker needs. */
interface RunsOnce {
  runOnce<T>(
    key: string,
    options: RunOnceOptions,
    work: (attempt: OnceAttempt) => T | PromiseLike<T>,
  ): Promise<RunOnceResult<T>>;
}

/** The events of a `LockingWorker`, with their arguments. */
export interface LockingWorkerEvents {
  /** The turn of this worker: do the work, and then call `done()` or `fail()`. */
  acquired: [attempt: number, isLastAttempt: boolean];
  /** Another worker does the work; this worker waits. */
  locked: [];
  /**
   * The work is done, by this worker or another. `value` is the value that `done()` was given; the others get it as
   * parsed from JSON.
   */
  done: [value: unknown];
  /** The work has failed too often, or with a `NonRetryableError`, and is not tried any more. */
  exhausted: [];
  /**
   * An attempt of this worker failed or was superseded, or its outcome is unknown. Without a listener, `acquire()`
   * rejects with the error.
   */
  error: [error: unknown];
  /** A description of what happens, for people. */
  status: [text: string];
}

/** How long it stands in line before it joins the line again. */
const STAND_BY = '1h';

/** An attempt that waits for `done()` or `fail()`. */
interface AtWork {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One of several workers of which one works while the others wait, as in the package redis-locking-worker. Call
 * `acquire()`. When `acquired` is emitted, do the work, and then call `done()` or `fail()`.
 *
 * In new code, `LockService.runOnce` does the same in one call.
 */
export class LockingWorker extends EventEmitter<LockingWorkerEvents> {
  readonly #locks: RunsOnce;
  readonly #options: Resolved<typeof LOCKING_WORKER.options>;
  #closing = new AbortController();
  #atWork: AtWork | undefined;
  /** The run that `acquire()` began. */
  #run: Promise<void> | undefined;
  #signal: AbortSignal | undefined;

  /** @throws LockConfigurationError */
  constructor(locks: RunsOnce, options: LockingWorkerOptions) {
    super();
    refuseNoService(locks);
    this.#locks = locks;
    this.#options = checkedOptions(LOCKING_WORKER, options);
  }

  /** Aborts when the lock is lost, or the worker closes, while it works; `undefined` when it does not work. */
  get signal(): AbortSignal | undefined {
    return this.#signal;
  }

  /**
   * Asks for the work, and waits while another worker does it. A further call meanwhile returns the same promise.
   * Failures are `error` events.
   *
   * Resolves when this worker has nothing more to do: the work is done or exhausted, this worker's attempt has failed,
   * or the worker was closed.
   */
  acquire(): Promise<void> {
    if (this.#run === undefined) {
      this.#closing = new AbortController();
      this.#run = this.#stand().finally(() => {
        this.#run = undefined;
      });
    }
    return this.#run;
  }

  /**
   * Marks the work of this worker as done, so that the others stop. Resolves when it is marked. Does nothing unless the
   * worker is at work.
   *
   * @param value for the `done` event of all workers: up to 4 KiB of JSON
   */
  async done(value?: unknown): Promise<void> {
    if (this.#atWork === undefined) return;
    this.#atWork.resolve(value);
    await this.#run;
  }

  /**
   * Marks the attempt of this worker as failed. The next worker tries, except after a `NonRetryableError`. Resolves
   * when the failure is stored. Does nothing unless the worker is at work. Without a listener to `error`, it rejects
   * with this error, as `acquire()` does.
   */
  async fail(error: unknown = new Error('The worker has failed')): Promise<void> {
    if (this.#atWork === undefined) return;
    this.#atWork.reject(error);
    await this.#run;
  }

  /** Stops waiting. A running attempt fails, and the next worker tries. Resolves when that is stored. */
  async close(): Promise<void> {
    const reason = new Error('The worker was closed');
    this.#closing.abort(reason);
    this.#atWork?.reject(reason);
    await this.#run;
  }

  async #stand(): Promise<void> {
    const { signal } = this.#closing;
    try {
      let result = await this.#ask(0);
      if (result.outcome === 'busy') {
        this.#say('another caller does it: standing by');
        this.emit('locked');
      }
      while (result.outcome === 'busy') result = await this.#ask(STAND_BY);
      this.#tell(result);
    } catch (error) {
      if (signal.aborted) this.#say('closed');
      else {
        this.#say('the attempt failed');
        if (this.listenerCount('error') === 0) throw error;
        this.emit('error', error);
      }
    }
  }

  #ask(wait: Duration): Promise<RunOnceResult<unknown>> {
    const { lockKey, lockTimeoutMs, maxAttempts, keepDoneMs } = this.#options;
    const options = {
      wait,
      keepValue: true,
      signal: this.#closing.signal,
      ttl: lockTimeoutMs,
      attempts: maxAttempts,
      keepDone: keepDoneMs,
    };
    return this.#locks.runOnce(lockKey, options, (attempt) => this.#work(attempt));
  }

  async #work({ attempt, isLastAttempt, signal }: OnceAttempt): Promise<unknown> {
    signal.throwIfAborted();
    this.#signal = signal;
    const work = new Promise((resolve, reject) => {
      this.#atWork = { resolve, reject };
    });
    try {
      this.#say(`acquired, attempt ${String(attempt)}`);
      this.emit('acquired', attempt, isLastAttempt);
      return await work;
    } finally {
      this.#atWork = undefined;
      this.#signal = undefined;
    }
  }

  #tell({ outcome, attempts, value }: RunOnceResult<unknown>): void {
    if (outcome === 'superseded') {
      this.#say('another attempt has begun');
      throw new Error('The lock was lost, and another worker has taken over');
    }
    const isDone = outcome === 'completed' || outcome === 'done-elsewhere';
    this.#say(`${isDone ? 'done' : 'exhausted'}, in attempt ${String(attempts)}`);
    if (isDone) this.emit('done', value);
    else this.emit('exhausted');
  }

  #say(text: string): void {
    this.emit('status', text);
  }
}

/** A service that was not injected would be reported as late as in `acquire()`. */
function refuseNoService(locks: unknown): void {
  const { runOnce } = Object(locks) as Partial<RunsOnce>;
  if (typeof runOnce !== 'function')
    throw new LockConfigurationError(
      'LockingWorker needs a LockService as its first argument: new LockingWorker(locks, { lockKey, … }).',
    );
}
