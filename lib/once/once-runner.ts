import {
  LockConfigurationError,
  LockLostError,
  LockNotAcquiredError,
  LockStoreUnavailableError,
} from '../errors.js';
import type { Holding } from '../sections/holding.js';
import type { Lock, LockHandle } from '../lease/lock.js';
import type { Section } from '../sections/section.js';
import { anyOf, onAbort } from '../queue/on-abort.js';
import type { RunOptions } from '../options/acquire-options.js';
import type { Unavailable } from '../store/lock-store.js';
import type { AttemptEnd, BeginOutcome, OnceReference, OnceStore } from '../store/once-store.js';
import type { Scheduler, Task } from '../time/scheduler.js';
import { elapsedMs } from '../time/clock.js';
import { PendingTasks } from '../time/pending-tasks.js';
import type { OnceAttempt, RunOnceResult } from './attempt.js';
import { NonRetryableError } from './non-retryable-error.js';
import {
  refuseUnknownOnce,
  resolveOnceOptions,
  type ResolvedOnceOptions,
  type RunOnceOptions,
} from './once-options.js';
import { errorText, valueAsJson, valueOfJson } from './texts.js';

interface Dependencies {
  readonly store: { readonly once?: OnceStore | undefined };
  readonly scheduler: Scheduler;
  readonly nodeTimeoutMs: number;
  /** Applied to every error that leaves. */
  readonly present: <E>(error: E) => E;
  readonly warn: (message: string) => void;
}

/** What the runner knows of work besides its lock. */
export interface OnceWork<T> {
  readonly options: ResolvedOnceOptions;
  /** The caller's. */
  readonly signal: AbortSignal | undefined;
  readonly work: (attempt: OnceAttempt) => T | PromiseLike<T>;
}

/** An attempt of this process that has not ended. */
interface Running {
  readonly reference: OnceReference;
  readonly options: ResolvedOnceOptions;
  readonly ttlMs: number;
  /** How long it is remembered unless it is kept, in ms. */
  readonly lifeMs: number;
  /** 0 until it has begun. */
  attempt: number;
  /** Its end is being told, or was. */
  isEnding: boolean;
  wasReturned: boolean;
  /** When it is kept for another while. */
  task: Task | undefined;
}

/** Between two tries to tell the store: doubled from the first to the longest. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** To begin is tried so often: one answer may have been lost. */
const BEGIN_TRIES = 2;

/**
 * What is known of an attempt outlives the lease of a process that died in it by this many TTLs and `keepDone`: the next in line has
 * to find it.
 */
const LIFE_TTLS = 3;

/** Work that is to be done once, in this process: begins attempts under the locks that it is given, and tells how they end. */
export class OnceRunner {
  readonly #deps: Dependencies;
  readonly #running = new Set<Running>();
  readonly #attempts = new WeakMap<Section, OnceAttempt>();
  readonly #pending = new PendingTasks();
  readonly #closing = new AbortController();

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  /**
   * Asks for the lock of the work, does the work under it, unless it was done, and gives it back.
   *
   * @param open acquires the lock
   */
  async runOnce<T>(
    key: string,
    given: RunOnceOptions,
    work: OnceWork<T>['work'],
    open: (key: string, options: RunOptions) => Promise<Holding>,
  ): Promise<RunOnceResult<T>> {
    refuseUnknownOnce(given);
    const { attempts, keepDone, keepValue, ...lockOptions } = given;
    const options = resolveOnceOptions({ attempts, keepDone, keepValue });
    this.assertPossible();
    let holding: Holding;
    try {
      // Inside a section that holds the key, this call could neither wait for it nor tell its own work from that one's.
      holding = await open(key, { ...lockOptions, reentrant: false });
    } catch (error) {
      if (!(error instanceof LockNotAcquiredError)) throw error;
      return this.refused(error);
    }
    return this.run(holding, { options, signal: lockOptions.signal, work });
  }

  /** @throws LockConfigurationError when the store keeps no account of such work */
  assertPossible(): void {
    this.#store();
  }

  /** The attempt of the innermost of these sections that is one. */
  attemptOf(sections: readonly Section[]): OnceAttempt | undefined {
    for (const section of sections) {
      const attempt = this.#attempts.get(section);
      if (attempt !== undefined) return attempt;
    }
    return undefined;
  }

  /**
   * Does the work under a lock, unless it was done, and gives the lock back.
   *
   * @throws what the work throws; LockStoreUnavailableError when nobody knows whether it may begin, or whether it is marked as done;
   * LockLostError when the lock was lost before it began
   */
  async run<T>(holding: Holding, work: OnceWork<T>): Promise<RunOnceResult<T>> {
    let result: RunOnceResult<T>;
    try {
      result = await this.#attempt(holding.section, work);
    } catch (error) {
      throw await holding.fail(error);
    }
    // What counts is what has become of the attempt; a lock that was lost meanwhile says no more than that.
    await holding.finish().catch(() => undefined);
    return result;
  }

  /** What to say to somebody who was refused the lock for as long as it waited. */
  async refused<T>(error: LockNotAcquiredError): Promise<RunOnceResult<T>> {
    const [key = ''] = error.keys;
    const nobody = this.#deps.scheduler.runtime.uuid();
    const reference = { key, token: nobody, owner: nobody, fencingToken: 0 };
    const state = await this.#store().begin({ ...reference, attempts: 1, lifeMs: 1, keepMs: 1 });
    if (state.status === 'done') return doneElsewhere(state);
    if (state.status === 'exhausted') return exhausted(state);
    return { outcome: 'busy', attempts: state.status === 'lost' ? state.attempts : 0 };
  }

  /**
   * Gives back, at once, all attempts that have not ended: they do not count. The requests are sent when this returns, so that they go
   * ahead of the releases of their locks.
   */
  giveBack(): void {
    this.#closing.abort();
    for (const running of this.#running) {
      if (running.isEnding) continue;
      running.wasReturned = true;
      this.#leave(running);
      void this.#pending.add(this.#tell(running, 'returned'));
    }
  }

  /** Resolves when everything that was told has been answered. */
  settled(): Promise<void> {
    return this.#pending.settled();
  }

  async #attempt<T>(section: Section, { options, signal, work }: OnceWork<T>) {
    const { lock } = section;
    const running = attemptUnder(lock, options, this.#deps.scheduler.runtime.uuid());
    this.#running.add(running);
    const begun = await this.#begin(running, lock).catch((error: unknown) => {
      this.#leave(running);
      throw error;
    });
    if (begun.status !== 'begun') {
      this.#leave(running);
      return begun.status === 'done' ? doneElsewhere<T>(begun) : exhausted<T>(begun);
    }
    const { attempt } = begun;
    running.attempt = attempt;
    this.#keepAlive(running);
    const ends = anyOf(signal === undefined ? [lock.signal] : [lock.signal, signal]);
    const isLastAttempt = attempt >= options.attempts;
    const context: OnceAttempt = { attempt, isLastAttempt, lock, signal: ends.signal };
    this.#attempts.set(section, context);

    let value: T;
    try {
      value = await section.inside(() => work(context));
    } catch (error) {
      await section.close();
      await this.#failed(running, lock, error);
      throw error;
    } finally {
      // What it has left running belongs to the work.
      await section.close();
      ends.unlink();
    }
    const counts = await this.#done(running, lock, value);
    return counts
      ? ({ outcome: 'completed', attempts: attempt, value } as const)
      : ({ outcome: 'superseded', attempts: attempt } as const);
  }

  async #begin(
    running: Running,
    lock: Lock,
  ): Promise<BeginOutcome & { readonly status: 'begun' | 'done' | 'exhausted' }> {
    const { reference, options, lifeMs } = running;
    const { attempts, keepDoneMs } = options;
    const request = { ...reference, attempts, lifeMs, keepMs: keepDoneMs };
    const outcome = await this.#insist(
      (tries) => tries < BEGIN_TRIES && lock.isHeld,
      () => this.#store().begin(request),
    );
    if (outcome.status === 'done' || outcome.status === 'exhausted') return outcome;
    if (outcome.status === 'begun' && lock.isHeld) return outcome;
    // What has begun, or may have, is given back ahead of the lock.
    if (outcome.status !== 'lost' && !running.wasReturned)
      void this.#pending.add(this.#tell(running, 'returned'));
    if (outcome.status === 'unavailable') throw this.#unavailable('begin', lock, outcome);
    lock.assertHeld();
    const { keys, fencingToken } = lock;
    throw this.#deps.present(new LockLostError({ keys, fencingToken, reason: 'stolen' }));
  }

  /** Answers whether it counts. */
  async #done(running: Running, lock: Lock, value: unknown): Promise<boolean> {
    if (running.wasReturned) return false;
    const { keepValue } = running.options;
    const { json, problem } = keepValue ? valueAsJson(value) : {};
    if (problem !== undefined) {
      const [key = ''] = lock.keys;
      this.#deps.warn(`The value of "${key}" is not kept for others ("keepValue"): ${problem}.`);
    }
    const outcome = await this.#end(running, lock, 'done', json);
    if (outcome.status === 'unavailable') throw this.#unavailable('finish', lock, outcome);
    return outcome.status === 'accepted';
  }

  async #failed(running: Running, lock: Lock, error: unknown): Promise<void> {
    if (running.wasReturned) return;
    const isFinal = error instanceof NonRetryableError;
    await this.#end(running, lock, isFinal ? 'final' : 'failed', errorText(error));
  }

  /** That work is done, or must not be tried again, is worth insisting on; that it failed shows when the next one begins. */
  #end(running: Running, lock: Lock, end: AttemptEnd, text: string | undefined) {
    this.#leave(running);
    const { scheduler, nodeTimeoutMs } = this.#deps;
    const { runtime } = scheduler;
    const since = runtime.now();
    const patienceMs = Math.max(lock.remainingMs, 2 * nodeTimeoutMs);
    return this.#pending.add(
      this.#insist(
        () => end !== 'failed' && elapsedMs(since, runtime.now()) < patienceMs,
        () => this.#tell(running, end, text),
      ),
    );
  }

  #leave(running: Running): void {
    running.isEnding = true;
    running.task?.cancel();
    this.#running.delete(running);
  }

  #tell({ reference, attempt, lifeMs, options }: Running, end: AttemptEnd, text?: string) {
    const isOver = end === 'done' || end === 'final';
    return this.#store().finish({
      ...reference,
      attempt,
      end,
      text,
      lifeMs: isOver ? options.keepDoneMs : lifeMs,
    });
  }

  /** Work may take longer than it is remembered for. */
  #keepAlive(running: Running): void {
    const { reference, attempt, lifeMs, options, ttlMs } = running;
    running.task = this.#deps.scheduler.schedule(ttlMs + options.keepDoneMs / 2, () => {
      void this.#store()
        .keep({ ...reference, attempt, lifeMs })
        .then(({ status }) => {
          if (!running.isEnding && status !== 'superseded') this.#keepAlive(running);
        });
    });
  }

  /** Asks again, for as long as `isWorth` says so, when there is no answer. */
  async #insist<Outcome extends { readonly status: string }>(
    isWorth: (tries: number) => boolean,
    ask: () => Promise<Outcome | Unavailable>,
  ): Promise<Outcome | Unavailable> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await ask();
      const { signal } = this.#closing;
      if (outcome.status !== 'unavailable' || !isWorth(tries) || signal.aborted) return outcome;
      await this.#pause(Math.min(FIRST_PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS));
    }
  }

  /** Shorter when the service closes. */
  async #pause(ms: number): Promise<void> {
    const { signal } = this.#closing;
    await new Promise<void>((resolve) => {
      const over = (): void => {
        task.cancel();
        ignore();
        resolve();
      };
      const task = this.#deps.scheduler.schedule(ms, over);
      const ignore = onAbort(signal, over);
    });
  }

  #store(): OnceStore {
    const { once } = this.#deps.store;
    if (once !== undefined) return once;
    throw new LockConfigurationError(
      'This store keeps no account of work that is to be done once: a LockStore of your own needs the property "once" (OnceStore) for ' +
        'runOnce, @RunOnce and LockingWorker.',
    );
  }

  #unavailable(operation: string, { keys }: Lock, { nodes }: Unavailable): unknown {
    return this.#deps.present(new LockStoreUnavailableError({ operation, keys, nodes }));
  }
}

function attemptUnder(
  { keys, lease, fencingToken }: LockHandle,
  options: ResolvedOnceOptions,
  owner: string,
): Running {
  const [key = ''] = keys;
  if (keys.length !== 1) {
    throw new LockConfigurationError(
      `Work that is to be done once has one key, not ${String(keys.length)}: it is what the work is called by.`,
    );
  }
  const { token, ttlMs } = lease;
  return {
    reference: { key, token, owner, fencingToken },
    options,
    ttlMs,
    lifeMs: LIFE_TTLS * ttlMs + options.keepDoneMs,
    attempt: 0,
    isEnding: false,
    wasReturned: false,
    task: undefined,
  };
}

const doneElsewhere = <T>({
  attempts,
  value,
}: BeginOutcome & { readonly status: 'done' }): RunOnceResult<T> => ({
  outcome: 'done-elsewhere',
  attempts,
  ...(valueOfJson(value) as { value?: T }),
});

const exhausted = <T>({
  attempts,
  error,
}: BeginOutcome & { readonly status: 'exhausted' }): RunOnceResult<T> => ({
  outcome: 'exhausted',
  attempts,
  ...(error !== undefined && { lastError: error }),
});
