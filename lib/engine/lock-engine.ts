// Longer than a screen or two because it is the API: more than half of it is TSDoc for its users.
import { LockLostError, LockReturnKindError } from '../errors.js';
import { quoteKeys } from '../errors/quote-keys.js';
import { checkKey, nameOfKeys } from '../key/index.js';
import type { LeaderInfo } from '../leader/lead.js';
import { LEAD_KIND, type LeadOptions } from '../leader/lead-options.js';
import { Leaders, type Candidacy, type Leadership } from '../leader/leadership.js';
import type { CallSites } from '../lease/call-site.js';
import { LIMITER, type LimiterOptions } from '../options/limiter-options.js';
import type { DetachableLock, Lock } from '../lease/lock.js';
import type { CurrentEventName, LockEventListener, LockEventName } from '../observe/lock-events.js';
import type { OnceAttempt, RunOnceResult } from '../once/attempt.js';
import type { RunOnceOptions } from '../once/once-options.js';
import type { OnceRunner } from '../once/once-runner.js';
import {
  constantOptions,
  NO_OPTIONS,
  NO_WAIT,
  resolveAcquireOptions,
  type AcquireOptions,
  type ResolvedAcquireOptions,
  type RunOptions,
  type TryAcquireOptions,
  type TryRunOptions,
} from '../options/acquire-options.js';
import type { AttachOptions } from '../options/detach-options.js';
import { optionsAndWork, optionsOf } from '../options/call-arguments.js';
import { needsRedis } from '../options/one-redis.js';
import { checkedOptions } from '../options/unknown-option.js';
import type { LockModuleOptions } from '../options/lock-module-options.js';
import type { Scope } from '../sections/scope.js';
import { Section } from '../sections/section.js';
import { streamKindOf } from '../sections/stream-kind.js';
import type { StoreHealth } from '../store/lock-store.js';
import { unhealthy } from '../store/lock-store.js';
import { within } from '../time/clock.js';
import type { Runtime } from '../time/runtime.js';
import { attach } from './attach.js';
import { compose, type Components, type EngineContext } from './compose.js';
import { Limiter } from './limiter.js';
import { Granting, ifRefused, type ScopeOrigin } from './granting.js';
import { checkedIntervention, type InterventionRequest } from './interventions.js';
import { shutDown } from './shutdown.js';

/** The result of `inspect`. */
export type LockInspection =
  | { readonly held: false }
  | {
      readonly held: true;
      /** Milliseconds until the lease ends if it is not renewed; `Infinity` for a lock without TTL set by other software. */
      readonly remainingMs: number;
    };

/** The result of `tryRun`. */
export type TryRunResult<T> =
  | { readonly acquired: true; readonly value: T }
  | { readonly acquired: false; readonly retryAfterMs: number };

/** The API of a lock service, without Nest. Call `open()` first and `shutdown()` at the end. */
export class LockEngine<Token extends number | undefined = number> {
  readonly #parts: Components;
  readonly #granting: Granting;
  readonly #leaders = new Leaders();

  /** @internal Work that is done once. */
  readonly once: OnceRunner;

  /** @internal Applies the `errors` option to an error of the library. Any other error is returned as it is. */
  readonly present: <E>(error: E) => E;

  /** @internal Records where calls come from. */
  readonly sites: CallSites;

  /** @internal Time, timers, chance and ids. */
  readonly runtime: Runtime;

  /**
   * @internal
   * @throws LockConfigurationError for options that are wrong
   */
  constructor(options: LockModuleOptions, context: EngineContext) {
    this.#parts = compose(options, context);
    this.#granting = new Granting(this, this.#parts);
    this.once = this.#parts.once;
    this.present = this.#parts.present;
    this.sites = this.#parts.sites;
    this.runtime = context.runtime;
  }

  /**
   * Acquires one key, or several (up to 1,000): all or none. The call waits in line behind earlier callers, and the
   * release wakes it.
   *
   * A call that waits for several keys waits in the line of one key at a time. Meanwhile it holds some of the others for
   * at most 1 s, so later callers may get them first.
   *
   * The lock is renewed until it is released (`autoExtend`), so release it. `await using` does so.
   *
   * @throws LockNotAcquiredError when another caller still holds the lock after `wait`
   * @throws LockStoreUnavailableError when the store does not reply
   * @throws LockKeyError for a key that is not valid, for no key, and for more than 1,000
   * @throws LockServiceClosedError during shutdown
   * @throws the reason of `signal` when that aborts
   * @example
   * ```ts
   * await using lock = await locks.acquire('order:42', { wait: '5s' });
   * await charge('42', { signal: lock.signal });
   * ```
   */
  async acquire(
    keys: string | readonly string[],
    options?: AcquireOptions,
  ): Promise<DetachableLock<Token>> {
    return await this.acquireFrom(keys, optionsOf('acquire', options), {
      site: this.sites.here(1),
    });
  }

  /**
   * Returns the lock, or `null` at once when another caller holds one of the keys, or waits for it. Otherwise as
   * `acquire`.
   *
   * @example
   * ```ts
   * await using lock = await locks.tryAcquire('report');
   * if (lock !== null) await writeReport();
   * ```
   */
  async tryAcquire(
    keys: string | readonly string[],
    options?: TryAcquireOptions,
  ): Promise<DetachableLock<Token> | null> {
    const given = notWaiting(optionsOf('tryAcquire', options));
    const site = this.sites.here(1);
    return await this.acquireFrom(keys, given, { site }).catch(ifRefused(() => null));
  }

  /**
   * Takes over a lock that was detached in this or another process. The lock keeps its keys, mode and fencing token,
   * and this service renews it from now on. A text that `lock.detach()` returned can be attached once. Release the lock
   * as one of `acquire`.
   *
   * @throws LockNotAttachedError when the text was attached before, or the lock has ended
   * @throws LockKeyError for a text that is not, or is no longer, the text of a detached lock
   * @throws LockConfigurationError over several masters, and when the lock was detached by a service that keeps its locks
   *   in another place
   * @throws LockStoreUnavailableError when the store does not reply: the text can be attached later
   * @throws LockServiceClosedError during shutdown
   * @example
   * ```ts
   * const lock = await locks.acquire('order:42');
   * const text = await lock.detach();
   * // In the worker that was given the text:
   * await using attached = await locks.attach(text);
   * ```
   */
  async attach(text: string, options?: AttachOptions): Promise<DetachableLock> {
    return attach(text, optionsOf('attach', options), this.#parts, this.sites.here(1));
  }

  /**
   * Runs `work` under the lock and resolves with what it returns. A call inside the work that asks for the same keys
   * reuses the lock: same lease, same fencing token. `run` waits for nested calls that still run when the work returns.
   *
   * @throws what `acquire` and `work` throw
   * @throws LockDeadlockError when the call, made inside another `run` or `@WithLock` method, would wait for a lock
   *   whose holder waits for the outer lock
   * @throws LockLostError when the lock was lost while the work ran
   * @throws LockReturnKindError when the work returns an Observable or an async generator
   * @example
   * ```ts
   * const receipt = await locks.run('order:42', ({ signal }) => charge('42', { signal }));
   * ```
   */
  run<T>(
    keys: string | readonly string[],
    work: (lock: Lock<Token>) => T | PromiseLike<T>,
  ): Promise<T>;
  run<T>(
    keys: string | readonly string[],
    options: RunOptions,
    work: (lock: Lock<Token>) => T | PromiseLike<T>,
  ): Promise<T>;
  async run<T>(keys: string | readonly string[], ...rest: RunArguments<T, Token>): Promise<T> {
    const [options, work] = optionsAndWork('run', rest);
    const scope = await this.openScope(keys, options, { site: this.sites.here(1) });
    return await scope.run(work, this.refuseStream);
  }

  /**
   * As `run`, but when another caller holds one of the keys, it resolves at once and does not run the work.
   *
   * @example
   * ```ts
   * const result = await locks.tryRun('report', () => writeReport());
   * if (!result.acquired) console.log(`busy for ${result.retryAfterMs} ms`);
   * ```
   */
  tryRun<T>(
    keys: string | readonly string[],
    work: (lock: Lock<Token>) => T | PromiseLike<T>,
  ): Promise<TryRunResult<T>>;
  tryRun<T>(
    keys: string | readonly string[],
    options: TryRunOptions,
    work: (lock: Lock<Token>) => T | PromiseLike<T>,
  ): Promise<TryRunResult<T>>;
  async tryRun<T>(
    keys: string | readonly string[],
    ...rest: RunArguments<T, Token>
  ): Promise<TryRunResult<T>> {
    const [options, work] = optionsAndWork('tryRun', rest);
    const from = { site: this.sites.here(1), whenBusy: 'refuse' } as const;
    const opening = this.openScope(keys, notWaiting(options), from);
    const scope = await opening.catch(ifRefused(({ retryAfterMs }) => retryAfterMs));
    if (typeof scope === 'number') return { acquired: false, retryAfterMs: scope };
    return { acquired: true, value: await scope.run(work, this.refuseStream) };
  }

  /**
   * Makes one of the callers that ask for this key do the work. One caller does it, under the lock of the key,
   * and the others wait in line. When it fails or its process dies, the next caller tries, up to `attempts` in all.
   * When the work is done, the others stop.
   *
   * The work is done at least once: an attempt that died, or lost its lock, may have had effects. How to handle that:
   * https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/once.md
   *
   * @throws what the work throws, after the next caller was admitted; after a `NonRetryableError` no caller is
   * @throws what `acquire` throws, except `LockNotAcquiredError`: the outcome is then `'busy'`
   * @throws LockReentrancyError inside a `run` or `@WithLock` that holds the key
   * @throws LockStoreUnavailableError also when the work is done and could not be marked
   * @throws LockConfigurationError over several masters, and with a driver
   * @example
   * ```ts
   * const { outcome } = await locks.runOnce('invoice:42', ({ signal }) => charge('42', { signal }));
   * ```
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
   * Makes this instance a candidate for a leadership. One candidate at a time is the leader, for as long as it lives.
   * `onElected` is called when this instance is elected. If a leader dies, another candidate is elected at most `ttl` +
   * 150 ms later. After `stop()` or the shutdown, this instance is no candidate any more.
   *
   * An outage does not make it fail: while the store is unreachable, it tries again. Errors of callbacks are logged.
   *
   * @throws LockConfigurationError for options that are wrong
   * @throws LockKeyError for a name that cannot be a key
   * @throws LockServiceClosedError during the shutdown
   * @example
   * ```ts
   * const leadership = locks.lead('reports', { onElected: () => writeReport() });
   * await leadership.stop();
   * ```
   */
  lead(name: string, options: LeadOptions): Leadership {
    return this.leadFrom(name, options, { site: this.sites.here(1) });
  }

  /**
   * Returns the leader, or `null` when there is none. It has no `term` if
   * the leader does not reply within 250 ms.
   *
   * @throws LockStoreUnavailableError for an outage
   * @throws LockConfigurationError with a driver
   * @example
   * ```ts
   * const leader = await locks.getLeader('reports');
   * ```
   */
  async getLeader(name: string): Promise<LeaderInfo | null> {
    return this.#about('getLeader()', name, async (key) => {
      const { store, presence } = this.#parts;
      const [found] = await store.admin.look([key]);
      const holder = found?.holders[0];
      return holder === undefined ? null : presence.leaderOf(key, holder);
    });
  }

  /**
   * Returns a semaphore: a key with a limit that can be read, and changed while the key is held. Its calls are those of
   * this service with the `limit` given here, unless another limit is set. The store is not asked before one of its
   * methods is called.
   *
   * @throws LockConfigurationError for options that are wrong, and over several masters
   * @throws LockKeyError for a key that must not be locked
   * @example
   * ```ts
   * const imports = locks.limiter('imports', { limit: 3 });
   * await imports.run(() => writeReport());
   * ```
   */
  limiter(key: string, options: LimiterOptions): Limiter {
    const { limit } = checkedOptions(LIMITER, options);
    const name = this.checked(() => checkKey(key));
    this.resolved({ limit });
    return new Limiter(name, limit, this as LockEngine, this.#parts.store);
  }

  /**
   * Returns the attempt that the calling code belongs to, inside the work of `runOnce` or `@RunOnce` of this service.
   *
   * @example
   * ```ts
   * if (locks.currentAttempt()?.isLastAttempt) console.log('no further attempt follows');
   * ```
   */
  currentAttempt(): OnceAttempt | undefined {
    return this.once.attemptOf(Section.around(this));
  }

  /**
   * Returns whether any caller holds a key, and for how long. It never returns which one.
   *
   * @throws LockStoreUnavailableError when the store does not reply
   * @example
   * ```ts
   * const { held } = await locks.inspect('order:42');
   * ```
   */
  async inspect(key: string): Promise<LockInspection> {
    return this.#about('inspect()', key, async (name) => {
      const [found] = await this.#parts.store.admin.look([name]);
      const remaining = found?.holders.map(({ remainingMs }) => remainingMs) ?? [];
      return remaining.length === 0
        ? { held: false }
        : { held: true, remainingMs: Math.max(...remaining) };
    });
  }

  /**
   * Ends the locks that hold a key at the moment of the call. Resolves with `true` when there was one. The
   * holder loses the lock while it works, and is notified at once (`LockLostError`, reason `'force-released'`). A
   * holder that cannot be notified detects the loss at its next renewal.
   *
   * For operators, use `LockAdmin`: it shows which caller holds a key, ends only the holder that was seen, and keeps an
   * audit log.
   *
   * @throws LockStoreUnavailableError when the store does not reply
   * @example
   * ```ts
   * await locks.forceRelease('order:42', { reason: 'incident 7' });
   * ```
   */
  async forceRelease(
    key: string,
    request: InterventionRequest = { reason: 'no reason was given' },
  ): Promise<boolean> {
    return this.#about('forceRelease()', key, (name) =>
      this.#parts.interventions.endHoldersOf(name, checkedIntervention(request)),
    );
  }

  /**
   * Checks the store: for each node whether it is reachable, its latency and its clock difference, and whether enough
   * nodes are reachable to grant locks. It runs what a grant runs, so missing rights show too. Checks that run at the same time
   * share one attempt. For health checks; it never rejects for an outage.
   *
   * @example
   * ```ts
   * const health = await locks.health();
   * ```
   */
  health(): Promise<StoreHealth> {
    const { store, queue } = this.#parts;
    return queue.isClosed
      ? Promise.resolve(unhealthy('the lock service is closed'))
      : store.health().then(this.#withWarning);
  }

  /** @internal As `health`. A server that has not replied within this many ms counts as not reachable. */
  async healthWithin(ms: number): Promise<StoreHealth> {
    const { store, queue } = this.#parts;
    if (queue.isClosed) return this.health();
    const health = store.health(ms);
    // The Redis store keeps the limit itself, for each server, and after a block of the event loop it needs a moment
    // for that.
    const found =
      (await within(this.runtime, ms, health)) ??
      (await within(this.runtime, HEALTH_SLACK_MS, health));
    return this.#withWarning(found ?? unhealthy(`no answer within ${String(ms)} ms`));
  }

  /**
   * Returns the lock of the innermost `run` or `@WithLock` of this service that the calling code runs in.
   *
   * @example
   * ```ts
   * const token = locks.current()?.fencingToken;
   * ```
   */
  current(): Lock<Token> | undefined {
    this.#parts.reportOutlivedWork?.(
      () => 'called current()',
      () => this.sites.here(3),
    );
    const [section] = Section.around(this);
    return section?.lock as Lock<Token> | undefined;
  }

  /**
   * Returns in how many nested sections of this service the calling code currently holds a key; 0 when it does not. A
   * lock of `acquire` is no section and does not count.
   *
   * @example
   * ```ts
   * const depth = locks.holdCount('order:42');
   * ```
   */
  holdCount(key: string): number {
    return Section.around(this).filter((section) => section.holds(this, key)).length;
  }

  /**
   * Throws a `LockLostError` unless the calling code runs in a `run` or `@WithLock` of this service that currently
   * holds the key.
   *
   * @example
   * ```ts
   * locks.assertHeld('order:42');
   * await ship('42');
   * ```
   */
  assertHeld(key: string): void {
    const section = Section.around(this).find((each) => each.covers([key]));
    if (section !== undefined) {
      section.lock.assertHeld();
      return;
    }
    const facts = { keys: [key], reason: 'not-held', lock: nameOfKeys(key) } as const;
    throw this.present(new LockLostError(facts));
  }

  /**
   * Calls `listener` for every event of this service: see `LockEvents`. Returns a function that ends the subscription.
   *
   * Channels of `node:diagnostics_channel` have the same events of all services of the process, with traces of calls
   * and holds: https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/telemetry.md
   *
   * @example
   * ```ts
   * const stop = locks.on('lost', ({ keys, reason }) => console.error(keys, reason));
   * ```
   */
  on<Name extends CurrentEventName>(
    name: Name,
    listener: LockEventListener<Name, Token>,
  ): () => void;
  /** @deprecated The event has another name now: see `LockEvents`. The next minor version removes this one. */
  on<Name extends LockEventName>(name: Name, listener: LockEventListener<Name, Token>): () => void;
  on<Name extends LockEventName>(name: Name, listener: LockEventListener<Name, Token>): () => void {
    return this.#parts.recorder.on(name, listener as LockEventListener<Name>);
  }

  /**
   * Connects, and waits until the store has replied or its time limit is over. The module calls it.
   *
   * @example
   * ```ts
   * await locks.open();
   * ```
   */
  async open(): Promise<void> {
    const { log, store, storeWarning } = this.#parts;
    if (storeWarning !== undefined) log.warn(storeWarning);
    await store.open();
    this.#parts.presence.start();
  }

  /**
   * Rejects the calls that wait, and every later call that would have to wait. Holders continue, except leaders. A call
   * that does not wait may still get a lock.
   *
   * @example
   * ```ts
   * locks.refuseWaiting();
   * ```
   */
  refuseWaiting(): void {
    this.#leaders.close();
    this.#parts.queue.refuseWaiting();
  }

  /**
   * Grants no more locks, lets holders finish for at most `shutdownTimeout`, releases all locks and closes the
   * connections. The module calls it.
   *
   * A store that does not reply delays it by at most one second. While there are locks to release, a store that replies
   * delays it by at most ten.
   *
   * @example
   * ```ts
   * await locks.shutdown(5_000);
   * ```
   */
  async shutdown(timeoutMs: number = this.shutdownTimeoutMs): Promise<void> {
    this.#leaders.close();
    await shutDown(this.#parts, timeoutMs);
  }

  /** @internal Makes the holders of a key in this process lose it at once, to test what the code does then. */
  lose(key: string): boolean {
    const { keeper } = this.#parts;
    const leases = keeper.leases.filter(({ keys }) => keys.includes(key));
    for (const lease of leases) keeper.lose(lease, 'stolen');
    return leases.length > 0;
  }

  /** @internal What `LockAdmin` reads and changes. */
  get administered(): Pick<
    Components,
    'store' | 'presence' | 'interventions' | 'present' | 'runtime'
  > {
    return this.#parts;
  }

  /** @internal Whether its locks stay taken when its process ends without releasing them. */
  get outlivesProcess(): boolean {
    return ['redis', 'driver'].includes(this.#parts.options.location.kind);
  }

  /** @internal How long a shutdown waits for holders. */
  get shutdownTimeoutMs(): number {
    return this.#parts.options.shutdownTimeoutMs;
  }

  /**
   * @internal Opens a section with its lock, for work that is not one function: streams and handlers.
   * @param from the outer section where the async context does not show it, and where the lock is asked for
   */
  openScope(
    keys: string | readonly string[],
    options: RunOptions,
    from: ScopeOrigin = {},
  ): Promise<Scope> {
    const parent = from.parent ?? Section.current();
    return this.#granting.open(keys, options, { ...from, parent });
  }

  /** @internal `lead` for callers that state where they call it from. */
  leadFrom(name: string, given: LeadOptions, from: ScopeOrigin): Leadership {
    this.needsRedis('A leader');
    const { ttlMs: ttl, rotateEveryMs, onElected, onLost } = checkedOptions(LEAD_KIND, given);
    const key = this.checked(() => checkKey(name));
    const options = constantOptions({ ttl, wait: 'forever', autoExtend: true, reentrant: false });
    this.resolved(options);
    const { log, scheduler, store } = this.#parts;
    const candidacy: Candidacy = {
      ...{ name: key, rotateEveryMs, onElected, onLost, log, scheduler },
      open: (signal) => this.#granting.open(key, options, { ...from, signal, isCandidate: true }),
      othersWait: async () => {
        const [found] = await store.admin.look([key]);
        return (found?.line.length ?? 0) > 0;
      },
    };
    return Section.outside(() => this.#leaders.stand(candidacy));
  }

  /** @internal `acquire` for callers that state where the lock is asked for. */
  acquireFrom(
    keys: string | readonly string[],
    options: RunOptions,
    from: ScopeOrigin,
  ): Promise<DetachableLock<Token>> {
    const taking: Promise<DetachableLock> = this.#granting.acquire(
      keys,
      this.resolved(options),
      from,
    );
    // The type of the service says whether its locks have fencing tokens.
    return taking as Promise<DetachableLock<Token>>;
  }

  /**
   * @internal The options of a call, with the defaults of the service.
   *
   * @throws LockConfigurationError for options that do not fit those of the service
   */
  resolved(options: RunOptions): ResolvedAcquireOptions {
    return resolveAcquireOptions(options, this.#parts.options);
  }

  /**
   * @internal Refuses what a driver cannot do.
   *
   * @throws LockConfigurationError
   */
  needsRedis(what: string): void {
    this.checked(() => {
      needsRedis(what, this.#parts.options.location);
    });
  }

  /** @internal Runs a check and presents its error. */
  checked<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      throw this.present(error);
    }
  }

  /** @internal A stream that the work returns would continue after the lock was released. */
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

  /** Runs a call about one key that a driver cannot do. */
  #about<T>(what: string, key: string, ask: (key: string) => Promise<T>): Promise<T> {
    this.needsRedis(what);
    const name = this.checked(() => checkKey(key));
    return this.presented(ask(name));
  }

  readonly #withWarning = (health: StoreHealth): StoreHealth => {
    const { storeWarning: warning } = this.#parts;
    return warning === undefined ? health : { ...health, warning };
  };

  /** @internal Applies the `errors` option to the error of a rejection. */
  async presented<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw this.present(error);
    }
  }
}

/** How long, in ms, a store may take to end a health check whose time is up. */
const HEALTH_SLACK_MS = 50;

/** `tryAcquire` and `tryRun`. */
const notWaiting = (options: RunOptions): RunOptions =>
  options === NO_OPTIONS ? NO_WAIT : { ...options, wait: 0 };

type RunArguments<T, Token extends number | undefined> =
  | [work: (lock: Lock<Token>) => T | PromiseLike<T>]
  | [options: RunOptions, work: (lock: Lock<Token>) => T | PromiseLike<T>];

type RunOnceArguments<T> =
  | [work: (attempt: OnceAttempt) => T | PromiseLike<T>]
  | [options: RunOnceOptions, work: (attempt: OnceAttempt) => T | PromiseLike<T>];
