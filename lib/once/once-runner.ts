import { BriefMap } from '../collections/brief-map.js';
import { LockLostError, LockNotAcquiredError, LockStoreUnavailableError } from '../errors.js';
import type { Scope } from '../sections/scope.js';
import type { LockHandle } from '../lease/lock-handle.js';
import type { Section } from '../sections/section.js';
import { anyOf } from '../queue/on-abort.js';
import type { RunOptions } from '../options/acquire-options.js';
import type { LockEventHub, OnceProgress } from '../observe/lock-events.js';
import type { Unavailable } from '../store/lock-store.js';
import type { AttemptEnd, BeginOutcome, OnceStore } from '../store/once-store.js';
import type { Scheduler } from '../time/scheduler.js';
import { elapsedMs } from '../time/clock.js';
import { PendingTasks } from '../time/pending-tasks.js';
import { NonRetryableError, type OnceAttempt, type RunOnceResult } from './attempt.js';
import {
  refuseUnknownOnce,
  resolveOnceOptions,
  type ResolvedOnceOptions,
  type RunOnceOptions,
} from './once-options.js';
import { BEGIN_TRIES, OnceAccount } from './once-account.js';
import { attemptUnder, type Running } from './running.js';
import { errorText, valueAsJson, valueOfJson } from './texts.js';

interface Dependencies {
  readonly store: { readonly once: OnceStore };
  readonly scheduler: Scheduler;
  readonly events: LockEventHub;
  readonly nodeTimeoutMs: number;
  /** Applied to every error before a caller gets it. */
  readonly present: <E>(error: E) => E;
  readonly warn: (message: string) => void;
  /** Throws where the locks are kept on several masters, or by a driver. */
  readonly needsOneRedis: (what: string) => void;
}

/** The work, as the runner sees it, besides its lock. */
export interface OnceWork<T> {
  readonly options: ResolvedOnceOptions;
  /** The caller's. */
  readonly signal: AbortSignal | undefined;
  readonly work: (attempt: OnceAttempt) => T | PromiseLike<T>;
}

/**
 * Runs work that is to be done once, in this process. It begins attempts under the locks that it is given, and records
 * how they end.
 */
export class OnceRunner {
  readonly #deps: Dependencies;
  readonly #running = new BriefMap<Running, true>();
  readonly #attempts = new WeakMap<Section, OnceAttempt>();
  readonly #pending = new PendingTasks();
  readonly #account: OnceAccount;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
    this.#account = new OnceAccount(dependencies.store, dependencies.scheduler);
  }

  /**
   * Asks for the lock of the work, does the work under it unless it was done, and releases the lock.
   *
   * @param open acquires the lock
   */
  async runOnce<T>(
    key: string,
    given: RunOnceOptions,
    work: OnceWork<T>['work'],
    open: (key: string, options: RunOptions) => Promise<Scope>,
  ): Promise<RunOnceResult<T>> {
    refuseUnknownOnce(given);
    const { attempts, keepDone, keepValue, ...lockOptions } = given;
    const options = resolveOnceOptions({ attempts, keepDone, keepValue });
    this.assertPossible();
    let scope: Scope;
    try {
      // Inside a section that holds the key, this call could neither wait for it nor tell its own work from that of
      // the section.
      scope = await open(key, { ...lockOptions, reentrant: false });
    } catch (error) {
      if (!(error instanceof LockNotAcquiredError)) throw error;
      return this.refused(error);
    }
    return this.run(scope, { options, signal: lockOptions.signal, work });
  }

  /** @throws LockConfigurationError over several masters, and with a driver */
  assertPossible(): void {
    this.#deps.needsOneRedis('Work that is to be done once');
  }

  /** The attempt of the innermost of these sections that is an attempt. */
  attemptOf(sections: readonly Section[]): OnceAttempt | undefined {
    for (const section of sections) {
      const attempt = this.#attempts.get(section);
      if (attempt !== undefined) return attempt;
    }
    return undefined;
  }

  /**
   * Does the work under a lock, unless it was done, and releases the lock.
   *
   * @throws what the work throws
   * @throws LockStoreUnavailableError when it is unknown whether the work may begin, or whether it is marked as done
   * @throws LockLostError when the lock was lost before the work began
   */
  async run<T>(scope: Scope, work: OnceWork<T>): Promise<RunOnceResult<T>> {
    let result: RunOnceResult<T>;
    try {
      result = await this.#attempt(scope.section, work);
    } catch (error) {
      throw await scope.fail(error);
    }
    // The outcome of the attempt decides. A lock that was lost meanwhile adds nothing to it.
    await scope.finish().catch(() => undefined);
    return result;
  }

  /** The result for a caller that was refused the lock for as long as it waited. */
  async refused<T>(error: LockNotAcquiredError): Promise<RunOnceResult<T>> {
    const [key = ''] = error.keys;
    const nobody = this.#deps.scheduler.runtime.uuid();
    const reference = { key, token: nobody, owner: nobody, fencingToken: 0 };
    const state = await this.#account.store.begin({
      ...reference,
      attempts: 1,
      lifeMs: 1,
      keepMs: 1,
    });
    if (state.status === 'done') return doneElsewhere(state);
    if (state.status === 'exhausted') return exhausted(state);
    return { outcome: 'busy', attempts: state.status === 'lost' ? state.attempts : 0 };
  }

  /**
   * Returns, at once, all attempts that have not ended: they do not count. The requests are sent when this method
   * returns, so they arrive before the releases of their locks.
   */
  giveBack(): void {
    this.#account.close();
    for (const running of this.#running.keys()) {
      if (running.isEnding) continue;
      running.wasReturned = true;
      this.#leave(running);
      void this.#pending.add(this.#account.tell(running, 'returned'));
    }
  }

  /** Resolves when the store has replied to every request. */
  settled(): Promise<void> {
    return this.#pending.settled();
  }

  async #attempt<T>(section: Section, { options, signal, work }: OnceWork<T>) {
    const { lock } = section;
    const running = attemptUnder(lock, options, this.#deps.scheduler.runtime.uuid());
    this.#running.set(running, true);
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
    this.#account.keepAlive(running);
    const ends = anyOf(signal === undefined ? [lock.signal] : [lock.signal, signal]);
    const isLastAttempt = attempt >= options.attempts;
    const context: OnceAttempt = {
      attempt,
      isLastAttempt,
      lock,
      get signal() {
        // The signal of the lock compares the clocks when it is read, and aborts this one with it.
        if (lock.signal.aborted) ends.unlink();
        return ends.signal;
      },
    };
    this.#attempts.set(section, context);
    this.#report(lock, { phase: 'began', attempt });

    let value: T;
    section.endsWithWork = true;
    try {
      value = await section.inside(() => work(context));
    } catch (error) {
      await section.close();
      await this.#failed(running, lock, error);
      const outcome = error instanceof NonRetryableError ? 'final' : 'failed';
      this.#report(lock, { phase: 'ended', attempt, outcome });
      throw error;
    } finally {
      // Calls that the work has left running belong to it.
      await section.close();
      ends.unlink();
    }
    const counts = await this.#done(running, lock, value).catch((error: unknown) => {
      this.#report(lock, { phase: 'ended', attempt, outcome: 'unavailable' });
      throw error;
    });
    const outcome = counts ? 'completed' : 'superseded';
    this.#report(lock, { phase: 'ended', attempt, outcome });
    return counts
      ? ({ outcome: 'completed', attempts: attempt, value } as const)
      : ({ outcome: 'superseded', attempts: attempt } as const);
  }

  async #begin(
    running: Running,
    lock: LockHandle,
  ): Promise<BeginOutcome & { readonly status: 'begun' | 'done' | 'exhausted' }> {
    const outcome = await this.#account.insist(
      (tries) => tries < BEGIN_TRIES && lock.isHeld,
      () => this.#account.begin(running),
    );
    if (outcome.status === 'done' || outcome.status === 'exhausted') return outcome;
    if (outcome.status === 'begun' && lock.isHeld) return outcome;
    // An attempt that has begun, or may have begun, is returned before the lock is released.
    if (outcome.status !== 'lost' && !running.wasReturned)
      void this.#pending.add(this.#account.tell(running, 'returned'));
    if (outcome.status === 'unavailable') throw this.#unavailable('begin', lock, outcome);
    lock.assertHeld();
    throw this.#deps.present(new LockLostError(lock.lease.lossFacts('stolen')));
  }

  /** Resolves with whether the value counts. */
  async #done(running: Running, lock: LockHandle, value: unknown): Promise<boolean> {
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

  async #failed(running: Running, lock: LockHandle, error: unknown): Promise<void> {
    if (running.wasReturned) return;
    const isFinal = error instanceof NonRetryableError;
    await this.#end(running, lock, isFinal ? 'final' : 'failed', errorText(error));
  }

  /**
   * The end of work that is done, or must not be tried again, is sent until the store replies. A failure needs no such care: it
   * shows when the next attempt begins.
   */
  #end(running: Running, lock: LockHandle, end: AttemptEnd, text: string | undefined) {
    this.#leave(running);
    const { scheduler, nodeTimeoutMs } = this.#deps;
    const { runtime } = scheduler;
    const since = runtime.now();
    const patienceMs = Math.max(lock.remainingMs, 2 * nodeTimeoutMs);
    return this.#pending.add(
      this.#account.insist(
        () => end !== 'failed' && elapsedMs(since, runtime.now()) < patienceMs,
        () => this.#account.tell(running, end, text),
      ),
    );
  }

  #report(lock: LockHandle, progress: OnceProgress): void {
    const { events } = this.#deps;
    if (events.isHeard('once')) events.emit('once', { ...lock.lease.subject, ...progress });
  }

  #leave(running: Running): void {
    running.isEnding = true;
    running.task?.cancel();
    this.#running.delete(running);
  }

  #unavailable(
    operation: string,
    { keys, lease: { lockName: lock } }: LockHandle,
    { nodes }: Unavailable,
  ): unknown {
    return this.#deps.present(new LockStoreUnavailableError({ operation, keys, nodes, lock }));
  }
}

export const doneElsewhere = <T>({
  attempts,
  value,
}: BeginOutcome & { readonly status: 'done' }): RunOnceResult<T> => ({
  outcome: 'done-elsewhere',
  attempts,
  ...(valueOfJson(value) as { value?: T }),
});

export const exhausted = <T>({
  attempts,
  error,
}: BeginOutcome & { readonly status: 'exhausted' }): RunOnceResult<T> => ({
  outcome: 'exhausted',
  attempts,
  ...(error !== undefined && { lastError: error }),
});
