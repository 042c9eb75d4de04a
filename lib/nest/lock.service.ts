import { Logger } from '@nestjs/common';
import {
  LockConfigurationError,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockReturnKindError,
  LockStoreUnavailableError,
} from '../errors.js';
import { bindLockedMethods } from './methods/bind.js';
import type { Invocation, LockedMethod } from './methods/locked-method.js';
import { canonicalKeys, checkKey, type RequestValues } from '../key/index.js';
import { Scheduler } from '../time/scheduler.js';
import { elapsedMs } from '../time/clock.js';
import { systemRuntime, type Runtime } from '../time/runtime.js';
import { callSite, withStackOf, type CallSite } from '../lease/call-site.js';
import { HeldLock } from '../lease/held-lock.js';
import { LeaseKeeper } from '../lease/lease-keeper.js';
import type { Lock } from '../lease/lock.js';
import { enterNested, Scope } from '../sections/scope.js';
import { Section } from '../sections/section.js';
import { WaitsFor } from '../sections/waits-for.js';
import { streamKindOf } from '../sections/stream-kind.js';
import {
  LockEventHub,
  type LockEventListener,
  type LockEventName,
} from '../observe/lock-events.js';
import {
  resolveAcquireOptions,
  type AcquireOptions,
  type ResolvedAcquireOptions,
  type RunOptions,
  type TryAcquireOptions,
  type TryRunOptions,
} from '../options/acquire-options.js';
import { optionsAndWork, optionsOf } from '../options/call-arguments.js';
import type { LockModuleOptions } from '../options/lock-module-options.js';
import { errorPresenter } from '../options/present-errors.js';
import { resolveOptions, ttlToMs, type ResolvedOptions } from '../options/resolve-options.js';
import type { OnceAttempt, RunOnceResult } from '../once/attempt.js';
import { OnceRunner } from '../once/once-runner.js';
import type { RunOnceOptions } from '../once/once-options.js';
import { LockQueue } from '../queue/lock-queue.js';
import { createStore, type OpenStore } from '../store/create-store.js';
import type { StoreHealth } from '../store/lock-store.js';

/** So long a shutdown waits for holders without a word. */
const SILENT_MS = 1_000;

/** Of the locks that a shutdown waits for, so many are named. */
const MOST_NAMED = 5;

/** How long, after its time is up, a shutdown waits for a store that does not answer. */
const GIVE_BACK_MS = 1_000;

/** The same of a store that does answer, when there is very much to give back. */
const LONGEST_GIVE_BACK_MS = 10_000;

/** Of all services of the process: what they wait for can close one circle. */
const waitsFor = new WaitsFor();

/** What `inspect` says of a key. */
export type LockInspection =
  | { readonly held: false }
  | {
      readonly held: true;
      /** Milliseconds until the lease ends if it is not renewed; `Infinity` for a lock without TTL set by other software. */
      readonly remainingMs: number;
    };

interface LockServiceSettings {
  readonly name?: string | symbol | undefined;
  readonly runtime?: Runtime;
}

/** Where a section is opened from. */
interface ScopeOrigin {
  readonly parent?: Section | undefined;
  readonly site?: CallSite | undefined;
}

/** What `tryRun` did. */
export type TryRunResult<T> =
  | { readonly acquired: true; readonly value: T }
  | { readonly acquired: false; readonly retryAfterMs: number };

/** Locks by hand. Injected; one per `RedisLockModule`. */
export class LockService {
  readonly #logger = new Logger('Holdfast');
  readonly #options: ResolvedOptions;
  readonly #runtime: Runtime;
  readonly #scheduler: Scheduler;
  readonly #events = new LockEventHub();
  readonly #store: OpenStore;
  readonly #keeper: LeaseKeeper;
  readonly #queue: LockQueue;
  /** Of each handler: the values of its key that somebody was warned of. */
  readonly #warnedOf = new WeakMap<LockedMethod, Set<string>>();

  /** @internal Work that is to be done once. */
  readonly once: OnceRunner;

  /** The `name` that the module registered it under. */
  readonly name: string | symbol | undefined;

  /** Applications get theirs from `RedisLockModule`; by hand, call `open()` first and `shutdown()` at the end. */
  constructor(
    options: LockModuleOptions,
    { name, runtime = systemRuntime }: LockServiceSettings = {},
  ) {
    this.name = name;
    this.#options = resolveOptions(options);
    this.present = errorPresenter(this.#options.errors);
    this.#runtime = runtime;
    this.#scheduler = new Scheduler(runtime);
    this.#store = createStore(this.#options, runtime, (message) => {
      this.#logger.warn(message);
    });
    const { clockDrift, nodeTimeoutMs } = this.#options;
    const shared = { store: this.#store, runtime, scheduler: this.#scheduler, clockDrift };
    this.#queue = new LockQueue({
      ...shared,
      adopt: (grant, options) => this.#keeper.adopt(grant, options),
      discard: (lease, ttlMs) => {
        this.#keeper.discard(lease, ttlMs);
      },
      takeTurn: (lease, options) => this.#keeper.takeTurn(lease, options),
      release: (lease) => this.#keeper.release(lease),
      holds: (token) => this.#keeper.holds(token),
      holderOf: (key) => this.#keeper.holderOf(key),
      handoff: this.#options.handoff,
    });
    this.#keeper = new LeaseKeeper({
      ...shared,
      events: this.#events,
      present: this.present,
      ttlToMs: (ttl) => ttlToMs(ttl, this.#options.restartGuard),
      passOn: (lease) => this.#queue.passOn(lease),
      onEnd: (keys) => {
        this.#queue.wake(keys);
      },
      onReleaseFailed: (error) => {
        this.#logger.warn(error.message);
      },
    });
    this.once = new OnceRunner({
      ...shared,
      nodeTimeoutMs,
      present: this.present,
      warn: (message) => {
        this.#logger.warn(message);
      },
    });
    this.on('lost', (event) => {
      this.#logger.warn(new LockLostError(event).message);
    });
  }

  /**
   * Acquires one key, or several (up to 1,000) all or none, and waits for them: in line behind those who came before, woken by the release.
   * While it waits for several, others may get some of them first for 1 s. Then those that are free are kept for it.
   *
   * The lock is renewed until it is released (`autoExtend`), so release it: `await using lock = await locks.acquire(…)`.
   *
   * @throws LockNotAcquiredError when the wait (default 10 s) was in vain; LockStoreUnavailableError when the store does not
   * answer; LockKeyError for a key that must not be locked; LockServiceClosedError during shutdown; the reason of `signal`
   * when that aborts.
   */
  async acquire(keys: string | readonly string[], options?: AcquireOptions): Promise<Lock> {
    const resolved = resolveAcquireOptions(optionsOf('acquire', options), this.#options);
    return this.#acquire(this.#keys(keys), resolved, callSite(1));
  }

  /** The lock, or `null` at once when somebody else holds one of the keys. Everything else as `acquire`. */
  async tryAcquire(
    keys: string | readonly string[],
    options?: TryAcquireOptions,
  ): Promise<Lock | null> {
    const given = optionsOf('tryAcquire', options);
    const resolved = resolveAcquireOptions({ ...given, wait: 0 }, this.#options);
    const canonical = this.#keys(keys);
    try {
      return await this.#acquire(canonical, resolved, callSite(1));
    } catch (error) {
      if (error instanceof LockNotAcquiredError) return null;
      throw error;
    }
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
    const scope = await this.openScope(keys, options, { site: callSite(1) });
    return scope.run((lock) => this.#whole(work, lock));
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
      const site = callSite(1);
      const parent = Section.current();
      scope = await this.#open(keys, { ...options, wait: 0 }, { parent, site, takesTurns: false });
    } catch (error) {
      if (!(error instanceof LockNotAcquiredError)) throw error;
      return { acquired: false, retryAfterMs: error.retryAfterMs };
    }
    return { acquired: true, value: await scope.run((lock) => this.#whole(work, lock)) };
  }

  /**
   * Has work done once by all who ask for it under this key: one does it, under the lock of the key, the others stand by, in line. When
   * it fails or dies the next one tries, up to `attempts` in all; when it is done the others stop. Done at least once: an attempt that
   * died, or lost its lock, may have got far. Read docs/once.md.
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
    const site = callSite(1);
    return this.once.runOnce(
      key,
      options,
      (attempt) => this.#whole(() => work(attempt), attempt.lock),
      (keys, lockOptions) => this.openScope(keys, lockOptions, { site }),
    );
  }

  /** The attempt that the calling code is, in the work of `runOnce` or `@RunOnce` of this service. */
  currentAttempt(): OnceAttempt | undefined {
    return this.once.attemptOf(Section.current()?.enclosing(this) ?? []);
  }

  /** Whether a key is held by anybody, and for how long. Never tells who. */
  async inspect(key: string): Promise<LockInspection> {
    const outcome = await this.#store.inspect(this.#checked(() => checkKey(key)));
    if (outcome.status === 'unavailable') throw this.#unavailable('inspect', key, outcome);
    return outcome.status === 'free'
      ? { held: false }
      : { held: true, remainingMs: outcome.remainingMs };
  }

  /**
   * Ends whoever's lock of a key. `true` when there was one. For operators: its holder loses the lock while it works, and learns of
   * it at its next renewal.
   */
  async forceRelease(key: string): Promise<boolean> {
    const outcome = await this.#store.forceRelease(this.#checked(() => checkKey(key)));
    if (outcome.status === 'unavailable') throw this.#unavailable('release', key, outcome);
    return outcome.status === 'released';
  }

  /**
   * How each node of the store is: reachable or not, how fast it answers, by how much its clock differs; and whether enough of them are
   * there to grant locks. For health checks. Never rejects for an outage.
   */
  health(): Promise<StoreHealth> {
    return this.#store.health();
  }

  /** The lock of the innermost `run` or `@WithLock` of this service that the calling code runs in. */
  current(): Lock | undefined {
    const [section] = Section.current()?.enclosing(this) ?? [];
    return section?.lock;
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

  /** Calls back for every lock acquired, refused, lost or released by this service. Returns the function that stops it. */
  on<Name extends LockEventName>(name: Name, listener: LockEventListener<Name>): () => void {
    return this.#events.on(name, listener);
  }

  /**
   * Gives an object that Nest did not make, so that it got no injection, the service for its `@WithLock` methods.
   *
   * @throws LockConfigurationError for options of theirs that this service cannot fulfil: `limit` over several masters
   */
  bind<T extends object>(instance: T): T {
    bindLockedMethods(instance, this);
    return instance;
  }

  /** Connects, and waits until the store answered or its time limit is over. The module does it. */
  open(): Promise<void> {
    return this.#store.open();
  }

  /** Sends those away who wait, and lets nobody wait any more; holders go on, and who does not wait may still get a lock. */
  refuseWaiting(): void {
    this.#queue.refuseWaiting();
  }

  /**
   * Grants nothing any more, lets holders finish for at most `shutdownTimeout`, gives everything back, closes connections. A silent
   * store delays it by one second at the most; one that answers, while there are locks to give back, by ten.
   */
  async shutdown(timeoutMs: number = this.#options.shutdownTimeoutMs): Promise<void> {
    const since = this.#runtime.now();
    this.#queue.close();
    const drained = this.#keeper.drained();
    const silentMs = Math.min(timeoutMs, SILENT_MS);
    if (!(await this.#within(silentMs, drained))) {
      this.#reportHeld(timeoutMs - silentMs);
      await this.#within(timeoutMs - silentMs, drained);
    }
    const overtimeMs = timeoutMs - elapsedMs(since, this.#runtime.now()) + GIVE_BACK_MS;
    // Holders are told before anything is waited for. Attempts go back ahead of their locks.
    this.once.giveBack();
    this.#keeper.endAll('shutdown');
    await this.#whileConfirmed(
      overtimeMs,
      Promise.all([this.once.settled(), this.#queue.settled().then(() => this.#keeper.finish())]),
    );
    this.#keeper.close();
    this.#scheduler.clear();
    await this.#store.close();
  }

  /** @internal The keys of a decorated call. */
  keysOf(
    locked: LockedMethod,
    call: Invocation,
    request: RequestValues | undefined,
  ): readonly string[] {
    return this.#checked(() => {
      try {
        return locked.resolve(call, request);
      } catch (error) {
        if (error instanceof LockKeyError && error.fromRequest) this.#warnOfKey(locked, error);
        throw error;
      }
    });
  }

  /**
   * @internal Whether the options of decorated calls fit those of the service.
   *
   * @throws LockConfigurationError
   */
  checkOptions({ where, runOptions }: LockedMethod): void {
    try {
      resolveAcquireOptions(runOptions, this.#options);
    } catch (error) {
      if (!(error instanceof LockConfigurationError)) throw error;
      throw new LockConfigurationError(`${where}: ${error.message}`);
    }
  }

  /** @internal Lets the `errors` option decide how an error of ours answers; any other error passes. */
  readonly present: <E>(error: E) => E;

  /** @internal Makes the holder of a key, in this process, lose it at once; for tests of what code does then. */
  lose(key: string): boolean {
    return this.#keeper.loseKey(key, 'stolen');
  }

  /** @internal How long a shutdown waits for holders. */
  get shutdownTimeoutMs(): number {
    return this.#options.shutdownTimeoutMs;
  }

  /**
   * @internal A lock and the section it opens, for those who cannot put their work into one function: streams and handlers.
   * @param from the section to be nested in, where the async context does not tell, and where the lock is asked for
   */
  async openScope(
    keys: string | readonly string[],
    options: RunOptions,
    { parent = Section.current(), site }: ScopeOrigin = {},
  ): Promise<Scope> {
    return this.#open(keys, options, { parent, site, takesTurns: true });
  }

  async #open(
    keys: string | readonly string[],
    options: RunOptions,
    { parent, site, takesTurns }: ScopeOrigin & { readonly takesTurns: boolean },
  ): Promise<Scope> {
    const canonical = this.#keys(keys);
    const resolved = resolveAcquireOptions(options, this.#options);
    let waitIsOver = (): void => undefined;
    try {
      // Calls side by side in one section are one caller's: not to wait is not to wait for others.
      const waitMs = (options.wait !== undefined && resolved.waitMs) || Infinity;
      const turnWithinMs = takesTurns ? waitMs : 0;
      const nested = await enterNested(
        this,
        canonical,
        { ...resolved, turnWithinMs, scheduler: this.#scheduler },
        parent,
      );
      if (nested !== undefined) return nested;
      const sections = resolved.waitMs > 0 ? (parent?.enclosing() ?? []) : [];
      if (sections.length > 0)
        waitIsOver = waitsFor.begin({
          owner: this,
          keys: canonical,
          mode: resolved.mode,
          sections,
        });
    } catch (error) {
      throw this.present(withStackOf(error, site));
    }
    const lock = await this.#acquire(canonical, resolved, site).finally(waitIsOver);
    return new Scope(new Section(this, lock, parent), () => releaseOf(lock));
  }

  /** The client is told that its request is at fault. Where every request is, it is the key, and nobody else would say so. */
  #warnOfKey(locked: LockedMethod, { what = '', problem }: LockKeyError): void {
    const warned = this.#warnedOf.get(locked) ?? new Set();
    if (warned.has(what)) return;
    this.#warnedOf.set(locked, warned.add(what));
    const templates = locked.templates.map(({ source }) => JSON.stringify(source));
    const key = templates.length > 0 ? templates.join(', ') : 'a function';
    this.#logger.warn(
      `${problem} The request was answered with 400, and this is logged once. If all requests are, the key of this handler (${key}) is ` +
        'wrong: is a name misspelt, or set by a guard that this route does not have?',
    );
  }

  /** What a shutdown waits for, or ends. */
  #reportHeld(forMs: number): void {
    const { held } = this.#keeper;
    if (held.length === 0) return;
    const now = this.#runtime.now();
    const named = held.slice(0, MOST_NAMED).map((lease) => {
      const place = lease.options.site?.place;
      const where = place === undefined ? '' : `, acquired at ${place}`;
      const keys = lease.keys.map((key) => `"${key}"`).join(', ');
      return `${keys} (held for ${String(Math.round(lease.heldForMs(now)))} ms${where})`;
    });
    if (held.length > MOST_NAMED) named.push(`and ${String(held.length - MOST_NAMED)} more`);
    const count = held.length === 1 ? '1 lock' : `${String(held.length)} locks`;
    const what =
      forMs > 0
        ? `The shutdown waits up to ${String(Math.round(forMs))} ms more for ${count} not released yet`
        : `The shutdown ends ${count} not released yet`;
    this.#logger.warn(
      `${what}: ${named.join('; ')}. A lock of acquire() is held until it is released: do it in a finally block, or use run() or "await using".`,
    );
  }

  /** Resolves when the work has ended, or `ms` have; with whether it has ended. */
  async #within(ms: number, work: Promise<unknown>): Promise<boolean> {
    let cancel = (): void => undefined;
    const timeIsUp = new Promise<false>((resolve) => {
      cancel = this.#runtime.setTimer(() => {
        resolve(false);
      }, ms);
    });
    const isOver = await Promise.race([work.then(() => true), timeIsUp]);
    cancel();
    return isOver;
  }

  /** Resolves when everything is given back; or in `ms`, or later, when the store has confirmed nothing for a second. */
  async #whileConfirmed(ms: number, givenBack: Promise<unknown>): Promise<void> {
    const since = this.#runtime.now();
    let left = this.#keeper.unconfirmed;
    let isOver = await this.#within(ms, givenBack);
    while (!isOver && this.#keeper.unconfirmed < left) {
      if (elapsedMs(since, this.#runtime.now()) >= LONGEST_GIVE_BACK_MS) return;
      left = this.#keeper.unconfirmed;
      isOver = await this.#within(GIVE_BACK_MS, givenBack);
    }
  }

  async #acquire(
    keys: readonly string[],
    options: ResolvedAcquireOptions,
    site: CallSite | undefined,
  ): Promise<HeldLock> {
    const since = this.#runtime.now();
    try {
      const around = Section.current();
      const isHeldAround = (key: string): boolean =>
        around?.enclosing(this).some((section) => section.holds(this, key)) ?? false;
      const lease = await this.#queue.acquire({ keys, ...options, site }, isHeldAround);
      const waitedMs = Math.round(elapsedMs(since, this.#runtime.now()));
      this.#events.emit('acquired', { keys, fencingToken: lease.fencingToken, waitedMs });
      const lock = new HeldLock(lease, this.#keeper);
      // The event loop may have been blocked since the grant.
      lock.assertHeld();
      return lock;
    } catch (error) {
      if (error instanceof LockNotAcquiredError) {
        const { retryAfterMs } = error;
        this.#events.emit('refused', {
          keys,
          retryAfterMs,
          waitedMs: Math.round(elapsedMs(since, this.#runtime.now())),
        });
      }
      throw this.present(withStackOf(error, site));
    }
  }

  /** A stream that the work returns would go on after the lock was given back. */
  async #whole<T>(work: (lock: Lock) => T | PromiseLike<T>, lock: Lock): Promise<T> {
    const value = await work(lock);
    if (streamKindOf(value) === undefined) return value;
    throw this.present(
      new LockReturnKindError(
        `The work under ${lock.keys.map((key) => `"${key}"`).join(', ')} returned a stream, which would go on without the lock. ` +
          `Consume it inside the work, or return it from a method with @WithLock(…, { returns: 'observable' | 'iterable' }).`,
        lock.keys,
      ),
    );
  }

  #keys(keys: string | readonly string[]): readonly string[] {
    return this.#checked(() => canonicalKeys(keys));
  }

  #checked<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      throw this.present(error);
    }
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

/** A release that the store did not confirm is logged by the keeper, and must not replace what the work returned. */
async function releaseOf(lock: HeldLock): Promise<void> {
  const released = await lock.release().catch(() => true);
  if (!released) lock.assertHeld();
}

type RunArguments<T> =
  | [work: (lock: Lock) => T | PromiseLike<T>]
  | [options: RunOptions, work: (lock: Lock) => T | PromiseLike<T>];

type RunOnceArguments<T> =
  | [work: (attempt: OnceAttempt) => T | PromiseLike<T>]
  | [options: RunOnceOptions, work: (attempt: OnceAttempt) => T | PromiseLike<T>];
