import { BriefMap } from '../collections/brief-map.js';
import { LockNotAcquiredError } from '../errors.js';
import type { Scope } from '../sections/scope.js';
import type { Foundation } from '../lease/foundation.js';
import type { LockHandle } from '../lease/lock-handle.js';
import type { Section } from '../sections/section.js';
import { anyOf, pause } from '../queue/on-abort.js';
import { needsOneRedis } from '../options/one-redis.js';
import type { RunOptions } from '../options/acquire-options.js';
import type { OnceEnding, OnceProgress } from '../observe/lock-events.js';
import type { Unavailable } from '../store/lock-store.js';
import type { AttemptEnd, BeginOutcome } from '../store/once-store.js';
import { backOffMs, type BackOff } from '../time/back-off.js';
import { PendingTasks } from '../time/pending-tasks.js';
import { NonRetryableError, type OnceAttempt, type RunOnceResult } from './attempt.js';
import { AttemptRecord } from './attempt-record.js';
import {
  knownOnceOptions,
  resolveOnceOptions,
  type ResolvedOnceOptions,
  type RunOnceOptions,
} from './once-options.js';
import { errorText, valueAsJson, valueOfJson } from './texts.js';

/** The pause between two tries to reach the store. */
const RETRY: BackOff = { firstMs: 50, longestMs: 1_000 };

/** A begin is tried this often: one reply may have been lost. */
const BEGIN_TRIES = 2;

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
  readonly #foundation: Foundation;
  readonly #warn: (message: string) => void;
  /** The attempts that have not ended. */
  readonly #records = new BriefMap<AttemptRecord, true>();
  /** The attempts that have begun, by their keys. The later one of two with the same key has the lease. */
  readonly #begun = new BriefMap<string, AttemptRecord>();
  /** Ends the look at renewals. */
  #ignore: (() => void) | undefined;
  readonly #attempts = new WeakMap<Section, OnceAttempt>();
  readonly #pending = new PendingTasks();
  readonly #closing = new AbortController();

  constructor(foundation: Foundation, warn: (message: string) => void) {
    this.#foundation = foundation;
    this.#warn = warn;
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
    const { attempts, keepDone, keepValue, ...lockOptions } = knownOnceOptions(given);
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
    needsOneRedis('Work that is to be done once', this.#foundation.options.location);
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
    const { scheduler, store } = this.#foundation;
    const nobody = scheduler.runtime.uuid();
    const reference = { key, token: nobody, owner: nobody, fencingToken: 0 };
    const state = await store.once.begin({ ...reference, attempts: 1, lifeMs: 1, keepMs: 1 });
    if (state.status === 'done') return doneElsewhere(state);
    if (state.status === 'exhausted') return exhausted(state);
    return { outcome: 'busy', attempts: state.status === 'lost' ? state.attempts : 0 };
  }

  /**
   * Returns, at once, all attempts that have not ended: they do not count. The requests are sent when this method
   * returns, so they arrive before the releases of their locks.
   */
  giveBack(): void {
    this.#closing.abort();
    for (const record of this.#records.keys()) {
      if (record.isEnding) continue;
      record.wasReturned = true;
      this.#leave(record);
      void this.#pending.add(record.end('returned'));
    }
  }

  /** Resolves when the store has replied to every request. */
  settled(): Promise<void> {
    return this.#pending.settled();
  }

  async #attempt<T>(section: Section, work: OnceWork<T>): Promise<RunOnceResult<T>> {
    const record = new AttemptRecord(section.lock, work.options, this.#foundation);
    this.#records.set(record, true);
    try {
      const begun = await this.#begin(record, section.lock);
      if (begun.status === 'done') return doneElsewhere(begun);
      if (begun.status === 'exhausted') {
        const { attempts: attempt, status: outcome } = begun;
        this.#report(section.lock, { phase: 'refused', attempt, outcome });
        return exhausted(begun);
      }
      this.#keepAlive(record, begun.attempt);
      return await this.#perform(section, record, begun.attempt, work);
    } finally {
      this.#leave(record);
    }
  }

  async #begin(
    record: AttemptRecord,
    lock: LockHandle,
  ): Promise<BeginOutcome & { readonly status: 'begun' | 'done' | 'exhausted' }> {
    const outcome = await this.#insist(
      (tries) => tries < BEGIN_TRIES && lock.isHeld,
      () => record.begin(),
    );
    if (outcome.status === 'done' || outcome.status === 'exhausted') return outcome;
    if (outcome.status === 'begun' && lock.isHeld) return outcome;
    // An attempt that has begun, or may have begun, is returned before the lock is released.
    if (outcome.status !== 'lost' && !record.wasReturned)
      void this.#pending.add(record.end('returned'));
    if (outcome.status === 'unavailable') throw lock.lease.outageError('begin', outcome.nodes);
    lock.assertHeld();
    throw lock.lease.lossError('stolen');
  }

  async #perform<T>(
    section: Section,
    record: AttemptRecord,
    attempt: number,
    { options, signal, work }: OnceWork<T>,
  ): Promise<RunOnceResult<T>> {
    const { lock } = section;
    const ends = anyOf(signal === undefined ? [lock.signal] : [lock.signal, signal]);
    const context: OnceAttempt = {
      attempt,
      isLastAttempt: attempt >= options.attempts,
      lock,
      get signal() {
        // The signal of the lock compares the clocks when it is read, and aborts this one with it.
        if (lock.signal.aborted) ends.unlink();
        return ends.signal;
      },
    };
    this.#attempts.set(section, context);
    this.#report(lock, { phase: 'began', attempt });
    let outcome: OnceEnding = 'unavailable';
    section.endsWithWork = true;
    try {
      const working = section.inside(async () => work(context));
      const [done] = await Promise.allSettled([working]);
      // Calls that the work has left running belong to it.
      await section.close();
      ends.unlink();
      if (done.status === 'rejected') {
        const end = done.reason instanceof NonRetryableError ? 'final' : 'failed';
        outcome = end === 'failed' && context.isLastAttempt ? 'exhausted' : end;
        await this.#end(record, lock, end, errorText(done.reason));
        throw done.reason;
      }
      const { value } = done;
      const text = options.keepValue ? this.#kept(lock, value) : undefined;
      const counts = await this.#end(record, lock, 'done', text);
      outcome = counts ? 'completed' : 'superseded';
      return counts
        ? { outcome: 'completed', attempts: attempt, value }
        : { outcome: 'superseded', attempts: attempt };
    } finally {
      this.#report(lock, { phase: 'ended', attempt, outcome });
    }
  }

  /**
   * Sends the end of an attempt. That of work that is done, or must not be tried again, is sent until the store replies. A
   * failure needs no such care: it shows when the next attempt begins. Resolves with whether the end counts.
   *
   * @throws LockStoreUnavailableError when it is unknown whether the work is marked as done
   */
  async #end(
    record: AttemptRecord,
    lock: LockHandle,
    end: AttemptEnd,
    text: string | undefined,
  ): Promise<boolean> {
    if (record.wasReturned) return false;
    this.#leave(record);
    const { scheduler, options } = this.#foundation;
    const { runtime } = scheduler;
    const sinceMs = runtime.now().monotonicMs;
    const patienceMs = Math.max(lock.remainingMs, 2 * options.nodeTimeoutMs);
    const outcome = await this.#pending.add(
      this.#insist(
        () => end !== 'failed' && runtime.now().monotonicMs - sinceMs < patienceMs,
        () => record.end(end, text),
      ),
    );
    if (end === 'done' && outcome.status === 'unavailable')
      throw lock.lease.outageError('finish', outcome.nodes);
    return outcome.status === 'accepted';
  }

  /** The value as it is kept for other callers. */
  #kept({ keys: [key = ''] }: LockHandle, value: unknown): string | undefined {
    const { json, problem } = valueAsJson(value);
    if (problem !== undefined)
      this.#warn(`The value of "${key}" is not kept for others ("keepValue"): ${problem}.`);
    return json;
  }

  /** Tries again while there is no reply and `isWorth` returns true. */
  async #insist<Outcome extends { readonly status: string }>(
    isWorth: (tries: number) => boolean,
    ask: () => Promise<Outcome | Unavailable>,
  ): Promise<Outcome | Unavailable> {
    const { signal } = this.#closing;
    for (let tries = 1; ; tries += 1) {
      const outcome = await ask();
      if (outcome.status !== 'unavailable' || !isWorth(tries) || signal.aborted) return outcome;
      await pause(this.#foundation.scheduler, backOffMs(RETRY, tries - 1), signal);
    }
  }

  #report(lock: LockHandle, progress: OnceProgress): void {
    this.#foundation.recorder.emit('onceAttempt', lock.lease, progress);
  }

  #keepAlive(record: AttemptRecord, attempt: number): void {
    record.keepAlive(attempt);
    this.#begun.set(record.key, record);
    this.#ignore ??= this.#foundation.recorder.on('renewed', ({ keys: [key = ''] }) => {
      this.#begun.get(key)?.renewed();
    });
  }

  #leave(record: AttemptRecord): void {
    record.leave();
    this.#records.delete(record);
    if (this.#begun.get(record.key) === record) this.#begun.delete(record.key);
    if (this.#begun.size > 0) return;
    this.#ignore?.();
    this.#ignore = undefined;
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
