// Longer than a screen or two, because it is the API: more than half of it is what its users read.
import {
  LockLostError,
  LockNotAcquiredError,
  LockReturnKindError,
  LockStoreUnavailableError,
} from '../errors.js';
import { quoteKeys } from '../errors/quote-keys.js';
import { checkKey } from '../key/index.js';
import type { LeaderInfo } from '../leader/lead.js';
import { LEAD_KIND, type LeadOptions } from '../leader/lead-options.js';
import { Leaders } from '../leader/leaders.js';
import type { Leadership } from '../leader/leadership.js';
import type { CallSites } from '../lease/call-site.js';
import type { LockOrigin } from '../lease/grant.js';
import { LIMITER, type LimiterOptions } from '../options/limiter-options.js';
import type { DetachableLock, Lock } from '../lease/lock.js';
import type { LockEventListener, LockEventName } from '../observe/lock-events.js';
import type { OnceAttempt, RunOnceResult } from '../once/attempt.js';
import type { RunOnceOptions } from '../once/once-options.js';
import type { OnceRunner } from '../once/once-runner.js';
import {
  constantOptions,
  NO_OPTIONS,
  NO_WAIT,
  resolveAcquireOptions,
  type AcquireOptions,
  type RunOptions,
  type TryAcquireOptions,
  type TryRunOptions,
} from '../options/acquire-options.js';
import type { AttachOptions } from '../options/detach-options.js';
import { optionsAndWork, optionsOf } from '../options/call-arguments.js';
import { resolve } from '../options/schema.js';
import { refuseUnknown } from '../options/unknown-option.js';
import type { LockModuleOptions } from '../options/lock-module-options.js';
import type { Scope } from '../sections/scope.js';
import { Section } from '../sections/section.js';
import { streamKindOf } from '../sections/stream-kind.js';
import type { StoreHealth } from '../store/lock-store.js';
import { unhealthy } from '../store/unhealthy.js';
import type { Runtime } from '../time/runtime.js';
import { attach } from './attach.js';
import { compose, type Parts, type Surroundings } from './compose.js';
import { findLeader } from './find-leader.js';
import { Limiter } from './limiter.js';
import { Granting, type ScopeOrigin } from './granting.js';
import { checkedIntervention, type InterventionRequest } from './interventions.js';
import { Shutdown } from './shutdown.js';

/** What `inspect` says of a key. */
export type LockInspection =
  | { readonly held: false }
  | {
      readonly held: true;
      /** Milliseconds until the lease ends if it is not renewed; `Infinity` for a lock without TTL set by other software. */
      readonly remainingMs: number;
    };

/** What `tryRun` did. */
export type TryRunResult<T> =
  | { readonly acquired: true; readonly value: T }
  | { readonly acquired: false; readonly retryAfterMs: number };

/** Locks by hand, without Nest: call `open()` first and `shutdown()` at the end. */
export class LockEngine {
  readonly #parts: Parts;
  readonly #granting: Granting;
  readonly #leaders = new Leaders();

  /** @internal Work that is to be done once. */
  readonly once: OnceRunner;

  /** @internal Lets the `errors` option decide how an error of ours answers; any other error passes. */
  readonly present: <E>(error: E) => E;

  /** @internal Records where calls come from. */
  readonly sites: CallSites;

  /** @internal Time, timers, chance and ids. */
  readonly runtime: Runtime;

  /** @throws LockConfigurationError for options that are wrong */
  constructor(options: LockModuleOptions, surroundings: Surroundings) {
    this.#parts = compose(options, surroundings);
    this.#granting = new Granting(this, this.#parts);
    this.once = this.#parts.once;
    this.present = this.#parts.present;
    this.sites = this.#parts.sites;
    this.runtime = surroundings.runtime;
  }

  /**
   * Acquires one key, or several (up to 1,000) all or none, and waits for them: in line behind those who came before, woken by the release.
   * While it waits for several, others may get some of them first for 1 s. Then those that are free are kept for it.
   *
   * The lock is renewed until it is released (`autoExtend`), so release it: `await using lock = await locks.acquire(…)`.
   *
   * @throws LockNotAcquiredError when the wait (default 10 s) timed out; LockStoreUnavailableError when the store does not
   * answer; LockKeyError for a key that must not be locked; LockServiceClosedError during shutdown; the reason of `signal`
   * when that aborts.
   */
  async acquire(
    keys: string | readonly string[],
    options?: AcquireOptions,
  ): Promise<DetachableLock> {
    const resolved = resolveAcquireOptions(optionsOf('acquire', options), this.#parts.options);
    return this.#granting.acquire(keys, resolved, { site: this.sites.here(1) });
  }

  /** The lock, or `null` at once when somebody else holds one of the keys. Everything else as `acquire`. */
  async tryAcquire(
    keys: string | readonly string[],
    options?: TryAcquireOptions,
  ): Promise<DetachableLock | null> {
    const given = optionsOf('tryAcquire', options);
    const resolved = resolveAcquireOptions(notWaiting(given), this.#parts.options);
    try {
      return await this.#granting.acquire(keys, resolved, { site: this.sites.here(1) });
    } catch (error) {
      if (error instanceof LockNotAcquiredError) return null;
      throw error;
    }
  }

  /**
   * Takes over a lock that was detached, here or in another process: the same keys, mode and fencing token, renewed from now on by this
   * service. The text that `lock.detach()` returned works once. Release the lock as one of `acquire`.
   *
   * @throws LockNotAttachedError when somebody has attached it, or it is over; LockKeyError for a text that is not, or no longer, the text of
   * a detached lock; LockConfigurationError when it was detached where locks are kept in another place; LockStoreUnavailableError when the
   * store does not answer: the text is good for another try then; LockServiceClosedError during shutdown.
   */
  async attach(text: string, options?: AttachOptions): Promise<DetachableLock> {
    return attach(text, optionsOf('attach', options), this.#parts, this.sites.here(1));
  }

  /**
   * Runs `work` under the lock and gives back what it returns. A call from inside the work that asks for the same keys goes through
   * (same lease, same fencing token); one that is left running is waited for.
   *
   * @throws what `acquire` throws; LockDeadlockError when it would wait, inside another `run` or `@WithLock` method, for a lock whose holder
   * waits for that one's; what `work` throws; LockLostError when the lock was lost while the work ran; LockReturnKindError
   * when the work returns an Observable or an async generator.
   */
  run<T>(keys: string | readonly string[], work: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  run<T>(
    keys: string | readonly string[],
    options: RunOptions,
    work: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<T>;
  async run<T>(keys: string | readonly string[], ...rest: RunArguments<T>): Promise<T> {
    const [options, work] = optionsAndWork('run', rest);
    const scope = await this.openScope(keys, options, { site: this.sites.here(1) });
    return scope.run(work, this.refuseStream);
  }

  /** As `run`, but when somebody else holds one of the keys it says so at once and does not run the work. */
  tryRun<T>(
    keys: string | readonly string[],
    work: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<TryRunResult<T>>;
  tryRun<T>(
    keys: string | readonly string[],
    options: TryRunOptions,
    work: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<TryRunResult<T>>;
  async tryRun<T>(
    keys: string | readonly string[],
    ...rest: RunArguments<T>
  ): Promise<TryRunResult<T>> {
    const [options, work] = optionsAndWork('tryRun', rest);
    let scope: Scope;
    try {
      const site = this.sites.here(1);
      scope = await this.openScope(keys, notWaiting(options), { site, whenBusy: 'refuse' });
    } catch (error) {
      if (!(error instanceof LockNotAcquiredError)) throw error;
      return { acquired: false, retryAfterMs: error.retryAfterMs };
    }
    return { acquired: true, value: await scope.run(work, this.refuseStream) };
  }

  /**
   * Has work done once by all who ask for it under this key: one does it, under the lock of the key, the others stand by, in line. When
   * it fails or dies the next one tries, up to `attempts` in all; when it is done the others stop. Done at least once: an attempt that
   * died, or lost its lock, may have got far. How to live with that:
   * https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/once.md
   *
   * @throws what the work throws, after the next one was let in; `NonRetryableError` lets nobody in. What `acquire` throws, but no
   * `LockNotAcquiredError`: that is the outcome `'busy'`. LockReentrancyError inside a `run` or `@WithLock` that holds the key;
   * LockStoreUnavailableError also when the work is done and could not be marked; LockConfigurationError when a store of your own has no
   * `once`.
   */
  runOnce<T>(
    key: string,
    work: (attempt: OnceAttempt) => T | PromiseLike<T>,
  ): Promise<RunOnceResult<T>>;
  runOnce<T>(
    key: string,
    options: RunOnceOptions,
    work: (attempt: OnceAttempt) => T | PromiseLike<T>,
  ): Promise<RunOnceResult<T>>;
  async runOnce<T>(key: string, ...rest: RunOnceArguments<T>): Promise<RunOnceResult<T>> {
    const [options, work] = optionsAndWork('runOnce', rest);
    const site = this.sites.here(1);
    return this.once.runOnce(
      key,
      options,
      async (attempt) => {
        const value = await work(attempt);
        this.refuseStream(value, attempt.lock);
        return value;
      },
      (keys, lockOptions) => this.openScope(keys, lockOptions, { site }),
    );
  }

  /**
   * Stands for the lead of something: of all instances that do, one leads at a time, for as long as it lives. `onElected` is called when this
   * one is elected. When a leader dies another one is elected within its `ttl` and 150 ms. Ended by `stop()`, and by the shutdown.
   *
   * @throws LockConfigurationError for options that are wrong; LockKeyError for a name that cannot be a key; LockServiceClosedError during
   * the shutdown. It never rejects: while the store cannot be reached it tries again, and failures of callbacks are logged.
   */
  lead(name: string, options: LeadOptions): Leadership {
    return this.#stand(name, options, { site: this.sites.here(1) });
  }

  /**
   * Who leads, or `null` when nobody does. The leader itself is asked for its term, and has 250 ms to answer.
   *
   * @throws LockStoreUnavailableError for an outage; LockConfigurationError when a store of your own has no `admin`
   */
  async getLeader(name: string): Promise<LeaderInfo | null> {
    const key = this.checked(() => checkKey(name));
    try {
      return await findLeader(key, this.#parts);
    } catch (error) {
      throw this.present(error);
    }
  }

  /**
   * A key with a limit that can be read, and changed while it is held: a semaphore. Its calls are those of this service with the `limit` given
   * here, as long as no other one is set. Nothing is asked of the store before one of its methods is called.
   *
   * @throws LockConfigurationError for options that are wrong, and over several masters; LockKeyError for a key that must not be locked
   */
  limiter(key: string, options: LimiterOptions): Limiter {
    refuseUnknown(LIMITER, options);
    const { limit } = resolve(LIMITER.options, options);
    const name = this.checked(() => checkKey(key));
    this.assertFits({ limit });
    return new Limiter(name, limit, { locks: this, store: this.#parts.store });
  }

  /** The attempt that the calling code is, in the work of `runOnce` or `@RunOnce` of this service. */
  currentAttempt(): OnceAttempt | undefined {
    return this.once.attemptOf(Section.current()?.enclosing(this) ?? []);
  }

  /** Whether a key is held by anybody, and for how long. Never tells who. */
  async inspect(key: string): Promise<LockInspection> {
    const outcome = await this.#parts.store.inspect(this.checked(() => checkKey(key)));
    if (outcome.status === 'unavailable') throw this.#unavailable('inspect', key, outcome);
    return outcome.status === 'free'
      ? { held: false }
      : { held: true, remainingMs: outcome.remainingMs };
  }

  /**
   * Ends the lock of a key, whoever holds it. `true` when there was one. For operators: its holder loses the lock while it works, and is
   * notified at once (`LockLostError`, reason `'force-released'`). One that cannot be notified learns of it at its next renewal. `LockAdmin`
   * shows who holds a key, and keeps an audit log.
   */
  async forceRelease(
    key: string,
    request: InterventionRequest = { reason: 'no reason was given' },
  ): Promise<boolean> {
    const intervention = checkedIntervention(request);
    const name = this.checked(() => checkKey(key));
    const ended = this.#parts.interventions.endHoldersOf(name, intervention);
    if (await this.#presented(ended)) return true;
    // What is left: votes on a minority of masters, or a key that could not be looked at.
    const outcome = await this.#parts.store.forceRelease(name);
    if (outcome.status === 'unavailable') throw this.#unavailable('release', key, outcome);
    return outcome.status === 'released';
  }

  /**
   * How each node of the store is: reachable or not, how fast it answers, by how much its clock differs; and whether enough of them are
   * there to grant locks. It does what a grant does, rights included. Checks that run at the same time share one attempt. For health
   * checks. Never rejects for an outage.
   */
  health(): Promise<StoreHealth> {
    const { store, queue } = this.#parts;
    return queue.isClosed
      ? Promise.resolve(unhealthy('the lock service is closed'))
      : store.health();
  }

  /** @internal As `health`. A server that has not answered within so many ms counts as not reachable. */
  async healthWithin(ms: number): Promise<StoreHealth> {
    const { store, queue } = this.#parts;
    if (queue.isClosed) return this.health();
    let cancel = (): void => undefined;
    // The Redis store keeps the limit itself, server by server, and after a block of the event loop it needs a moment for that.
    const timeIsUp = new Promise<StoreHealth>((resolve) => {
      cancel = this.runtime.setTimer(() => {
        cancel = this.runtime.setTimer(() => {
          resolve(unhealthy(`no answer within ${String(ms)} ms`));
        }, HEALTH_SLACK_MS);
      }, ms);
    });
    try {
      return await Promise.race([store.health(ms), timeIsUp]);
    } finally {
      cancel();
    }
  }

  /** The lock of the innermost `run` or `@WithLock` of this service that the calling code runs in. */
  current(): Lock | undefined {
    const [section] = Section.current()?.enclosing(this) ?? [];
    return section?.lock;
  }

  /**
   * In how many sections of this service, one nested in the other, the calling code holds a key now; 0 when it does not. A lock of
   * `acquire` is no section and does not count.
   */
  holdCount(key: string): number {
    const around = Section.current()?.enclosing(this) ?? [];
    return around.filter((section) => section.holds(this, key)).length;
  }

  /** Throws a `LockLostError` unless the calling code runs in a `run` or `@WithLock` of this service that holds the key now. */
  assertHeld(key: string): void {
    for (const section of Section.current()?.enclosing(this) ?? []) {
      if (section.covers([key])) {
        section.lock.assertHeld();
        return;
      }
    }
    throw this.present(new LockLostError({ keys: [key], reason: 'not-held' }));
  }

  /**
   * Calls back for every event of this service, see `LockEvents`. Returns the function that stops it. The same events of all services of
   * the process are on channels of `node:diagnostics_channel`, with traces of calls and holds:
   * https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/telemetry.md
   */
  on<Name extends LockEventName>(name: Name, listener: LockEventListener<Name>): () => void {
    return this.#parts.events.on(name, listener);
  }

  /** Connects, and waits until the store answered or its time limit is over. The module does it. */
  async open(): Promise<void> {
    await this.#parts.store.open();
    this.#parts.presence?.start();
  }

  /** @internal Has its leaders step down, and lets nobody stand for election any more. */
  stopLeading(): void {
    this.#leaders.close();
  }

  /**
   * Sends those away who wait, and lets nobody wait any more; holders go on, except leaders, and who does not wait may still get a lock.
   */
  refuseWaiting(): void {
    this.#leaders.close();
    this.#parts.queue.refuseWaiting();
  }

  /**
   * Grants nothing any more, lets holders finish for at most `shutdownTimeout`, gives everything back, closes connections. A silent
   * store delays it by one second at the most; one that answers, while there are locks to give back, by ten.
   */
  async shutdown(timeoutMs: number = this.shutdownTimeoutMs): Promise<void> {
    this.#leaders.close();
    await new Shutdown(this.#parts).run(timeoutMs);
  }

  /** @internal Makes the holder of a key, in this process, lose it at once; for tests of what code does then. */
  lose(key: string): boolean {
    return this.#parts.keeper.loseKey(key, 'stolen');
  }

  /** @internal What operators see of it and do to it goes through these. */
  get administered(): Pick<Parts, 'store' | 'presence' | 'interventions' | 'present' | 'runtime'> {
    return this.#parts;
  }

  /** @internal How long a shutdown waits for holders. */
  get shutdownTimeoutMs(): number {
    return this.#parts.options.shutdownTimeoutMs;
  }

  /**
   * @internal A lock and the section it opens, for those who cannot put their work into one function: streams and handlers.
   * @param origin the section to be nested in, where the async context does not tell, and where the lock is asked for
   */
  openScope(
    keys: string | readonly string[],
    options: RunOptions,
    origin: ScopeOrigin = {},
  ): Promise<Scope> {
    const parent = origin.parent ?? Section.current();
    return this.#granting.open(keys, options, { ...origin, parent });
  }

  /** @internal `lead` for those who say themselves where it is called from. */
  leadFrom(name: string, options: LeadOptions, origin: LockOrigin): Leadership {
    return this.#stand(name, options, { origin });
  }

  /** @internal `acquire` for those who say themselves where the lock is asked for. */
  acquireFrom(
    keys: string | readonly string[],
    options: RunOptions,
    from: Pick<ScopeOrigin, 'origin' | 'site' | 'isAdjustable'>,
  ): Promise<DetachableLock> {
    const resolved = resolveAcquireOptions(options, this.#parts.options);
    return this.#granting.acquire(keys, resolved, from);
  }

  /**
   * @internal Whether options fit those of the service.
   *
   * @throws LockConfigurationError
   */
  assertFits(options: RunOptions): void {
    resolveAcquireOptions(options, this.#parts.options);
  }

  /** @internal Runs a check whose error leaves. */
  checked<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      throw this.present(error);
    }
  }

  /** @internal A stream that the work returns would go on after the lock was given back. */
  readonly refuseStream = (value: unknown, lock: Lock): void => {
    if (streamKindOf(value) === undefined) return;
    throw this.present(
      new LockReturnKindError(
        `The work under ${quoteKeys(lock.keys)} returned a stream, which would continue without the lock. ` +
          `Consume it inside the work, or return it from a method with @WithLock(…, { returns: 'observable' | 'iterable' }).`,
        lock.keys,
      ),
    );
  };

  /** Errors leave as the `errors` option has them. */
  async #presented<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw this.present(error);
    }
  }

  #stand(name: string, given: LeadOptions, from: ScopeOrigin): Leadership {
    refuseUnknown(LEAD_KIND, given);
    const { ttlMs: ttl, rotateEveryMs, onElected, onLost } = resolve(LEAD_KIND.options, given);
    const key = this.checked(() => checkKey(name));
    const options = constantOptions({ ttl, wait: 'forever', autoExtend: true, reentrant: false });
    this.assertFits(options);
    const { log, scheduler, store } = this.#parts;
    return this.#leaders.stand({
      ...{ name: key, rotateEveryMs, onElected, onLost, log, scheduler },
      open: (signal) => this.openScope(key, options, { ...from, signal }),
      othersWait: async () => {
        const { admin } = store;
        if (admin === undefined) return true;
        const [found] = await admin.look([key]);
        return (found?.line.length ?? 0) > 0;
      },
    });
  }

  #unavailable(
    operation: string,
    key: string,
    outcome: { readonly nodes: LockStoreUnavailableError['nodes'] },
  ): unknown {
    return this.present(
      new LockStoreUnavailableError({ operation, keys: [key], nodes: outcome.nodes }),
    );
  }
}

/** So long, in ms, a store may take to end a health check whose time is up. */
const HEALTH_SLACK_MS = 50;

/** `tryAcquire` and `tryRun`. */
const notWaiting = (options: RunOptions): RunOptions =>
  options === NO_OPTIONS ? NO_WAIT : { ...options, wait: 0 };

type RunArguments<T> =
  | [work: (lock: Lock) => T | PromiseLike<T>]
  | [options: RunOptions, work: (lock: Lock) => T | PromiseLike<T>];

type RunOnceArguments<T> =
  | [work: (attempt: OnceAttempt) => T | PromiseLike<T>]
  | [options: RunOnceOptions, work: (attempt: OnceAttempt) => T | PromiseLike<T>];
