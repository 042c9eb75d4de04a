import { EventEmitter } from 'node:events';
import {
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockService,
  LockStoreUnavailableError,
  type Lock,
  type RedisLocation,
} from 'nestjs-holdfast';
import { createLocks, type LockEngine } from 'nestjs-holdfast/tools';
import {
  ExecutionError,
  NO_QUORUM,
  ResourceLockedError,
  statsOf,
  type ExecutionResult,
  type ExecutionStats,
} from './errors.js';
import { inDatabase } from './database.js';
import { LONGEST_MS, settingsFrom, waitFrom, type Settings } from './settings.js';

/** As node-redlock has it: the error is also in `error`. */
export type RedlockAbortSignal = AbortSignal & { error?: Error };

/** By how much sooner than its time a lock may end: timers come up in slots. In ms. */
const EARLY_MS = 5;

/** What a lock was asked for with. */
interface Asked {
  readonly resources: readonly string[];
  readonly duration: number;
  readonly settings: Partial<Settings>;
}

type Routine<T> = (signal: RedlockAbortSignal) => Promise<T>;

let hasWarned = false;

function warnOnce(): void {
  if (hasWarned) return;
  hasWarned = true;
  process.emitWarning(
    '@nestjs-holdfast/redlock helps to migrate from node-redlock. The next major version removes it. Use LockService: https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/migrating.md#redlock-5',
    { type: 'DeprecationWarning', code: 'HOLDFAST_REDLOCK' },
  );
}

/**
 * The API of node-redlock 5 on Holdfast, for a migration: change the import first, and the calls one after the other.
 *
 * The next major version removes it: use `LockService` in new code.
 */
export class Redlock extends EventEmitter {
  readonly clients: ReadonlySet<RedisLocation>;
  readonly settings: Settings;
  readonly #locks: LockEngine;
  readonly #isOwn: boolean;
  readonly #released = new WeakSet<Lock>();
  #opened: Promise<void> | undefined;

  /**
   * @param source clients of ioredis, of which only the addresses are used, or a `LockService`, whose keys and
   *   connections are used. With clients, keys are as those of node-redlock, so that old and new processes exclude each
   *   other
   * @throws Error for a `db` that the source cannot use
   */
  constructor(source: Iterable<RedisLocation> | LockService, settings: Partial<Settings> = {}) {
    super();
    warnOnce();
    // As node-redlock: an emitter without a listener would throw.
    this.on('error', () => undefined);
    this.settings = settingsFrom(settings);
    this.#isOwn = !(source instanceof LockService);
    const { db } = this.settings;
    if (source instanceof LockService) {
      if (db !== undefined)
        throw new Error(
          'The setting db has no effect with a LockService: set the database in LockModule.',
        );
      this.clients = new Set();
      this.#locks = source;
      return;
    }
    this.clients = new Set(source);
    if (this.clients.size === 0)
      throw new Error('Redlock must be instantiated with at least one redis client.');
    const { driftFactor: clockDrift } = this.settings;
    this.#locks = createLocks(
      {
        redis: Array.from(this.clients, (client) => inDatabase(client, db)),
        keyPrefix: '',
        clockDrift,
        forgottenLocks: 'keep',
      },
      {
        warn: (message) => {
          process.emitWarning(message, 'HoldfastWarning');
          // What is wrong with a server. The end of a lock is no error of node-redlock.
          if (!/^Locks? "/.test(message)) this.emit('error', new Error(message));
        },
        error: (message, error) => {
          this.emit('error', error instanceof Error ? error : new Error(String(message)));
        },
      },
    );
  }

  /**
   * Waits for locks that are held, for 10 s at most, and releases them. Then it closes its own connections and those of
   * the clients. Closes nothing of a `LockService`.
   */
  async quit(): Promise<void> {
    if (!this.#isOwn) return;
    await this.#locks.shutdown();
    const clients = [...this.clients] as { quit?: () => Promise<unknown> }[];
    await Promise.all(clients.map(async (client) => client.quit?.()));
  }

  /**
   * Acquires a lock for `duration` ms, which is not renewed. Rejects with an `ExecutionError` when the retries would be
   * over.
   */
  async acquire(
    resources: string[],
    duration: number,
    settings: Partial<Settings> = {},
  ): Promise<RedlockLock> {
    refuseFraction(duration);
    const held = await this.#acquire(resources, duration, { settings, autoExtend: false });
    return this.#lockOf(held, { resources, duration, settings });
  }

  /** Releases a lock. Rejects with an `ExecutionError` when it was over already, and when it was released before. */
  async release(lock: RedlockLock): Promise<ExecutionResult> {
    const { held } = lock;
    const wasReleased = this.#released.has(held);
    this.#released.add(held);
    lock.expiration = 0;
    const isReleased = await this.#attempt(() => held.release());
    if (isReleased && !wasReleased) return { attempts: statsOf(this.clients, undefined) };
    throw this.#refusal(
      new ResourceLockedError(
        `The operation was applied to: 0 of the ${String(lock.resources.length)} requested resources.`,
      ),
    );
  }

  /** Renews a lock for `duration` ms from now. Continue with the lock that it resolves with. */
  async extend(
    existing: RedlockLock,
    duration: number,
    settings: Partial<Settings> = {},
  ): Promise<RedlockLock> {
    refuseFraction(duration);
    if (existing.expiration < Date.now())
      throw new ExecutionError('Cannot extend an already-expired lock.', []);
    const { held, resources } = existing;
    await this.#attempt(() => held.extend(leaseOf(duration)));
    existing.expiration = 0;
    return this.#lockOf(held, { resources, duration, settings });
  }

  /** Runs `routine` under a lock that is renewed; its signal aborts when the lock is lost. */
  using<T>(
    resources: string[],
    duration: number,
    settings: Partial<Settings>,
    routine?: Routine<T>,
  ): Promise<T>;
  using<T>(resources: string[], duration: number, routine: Routine<T>): Promise<T>;
  async using<T>(
    resources: string[],
    duration: number,
    settingsOrRoutine: Partial<Settings> | Routine<T>,
    optionalRoutine?: Routine<T>,
  ): Promise<T> {
    refuseFraction(duration);
    const isSettled = typeof settingsOrRoutine !== 'function';
    const settings = settingsFrom(isSettled ? settingsOrRoutine : {}, this.settings);
    const routine = isSettled ? optionalRoutine : settingsOrRoutine;
    if (typeof routine !== 'function') throw new Error('INVARIANT: routine is not a function.');
    if (settings.automaticExtensionThreshold > duration - 100)
      throw new Error(
        'A lock `duration` must be at least 100ms greater than the `automaticExtensionThreshold` setting.',
      );
    const held = await this.#acquire(resources, duration, { settings, autoExtend: true });
    const lock = this.#lockOf(held, { resources, duration, settings });
    const signal: RedlockAbortSignal = held.signal;
    signal.addEventListener('abort', () => {
      signal.error = this.#failureOf(signal.reason as Error);
    });
    try {
      return await routine(signal);
    } finally {
      await lock.release();
    }
  }

  /** The lock counts what remains from the request that was granted, and not from the call that waited for it. */
  #lockOf(held: Lock, { resources, duration, settings }: Asked): RedlockLock {
    const { driftFactor } = settingsFrom(settings, this.settings);
    const longestMs = duration - (Math.round(driftFactor * duration) + 2);
    const remainingMs = Math.min(held.remainingMs - EARLY_MS, longestMs);
    const expiration = Math.floor(Date.now() + remainingMs);
    const attempts = statsOf(this.clients, undefined);
    return RedlockLock.of(this, held, { resources: [...resources], attempts, expiration });
  }

  async #acquire(
    resources: string[],
    duration: number,
    how: { readonly settings: Partial<Settings>; readonly autoExtend: boolean },
  ): Promise<Lock> {
    const wait = waitFrom(settingsFrom(how.settings, this.settings));
    this.#opened ??= this.#isOwn ? this.#locks.open() : Promise.resolve();
    await this.#opened;
    const { autoExtend } = how;
    const ttl = leaseOf(duration);
    return this.#attempt(() => this.#locks.acquire(resources, { ttl, wait, autoExtend }));
  }

  async #attempt<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      throw this.#failureOf(error as Error);
    }
  }

  /** Refusals of Holdfast become errors of node-redlock. Other errors are mistakes, and stay as they are. */
  #failureOf(error: Error): Error {
    if (error instanceof LockNotAcquiredError || error instanceof LockLostError)
      return this.#refusal(new ResourceLockedError(error.message, { cause: error }));
    if (error instanceof LockStoreUnavailableError) return this.#refusal(error);
    if (error instanceof LockKeyError)
      return new Error(error.detail + hintFor(error.detail), { cause: error });
    return error;
  }

  #refusal(cause: Error): ExecutionError {
    this.emit('error', cause);
    return new ExecutionError(NO_QUORUM, statsOf(this.clients, cause), { cause });
  }
}

function refuseFraction(duration: number): void {
  if (Math.floor(duration) !== duration)
    throw new Error('Duration must be an integer value in milliseconds.');
}

const hintFor = (detail: string): string =>
  detail.includes('contains a brace')
    ? " For a hash tag such as {orders}, set keyPrefix: '{orders}' in LockModule, and pass its LockService to new Redlock."
    : '';

/** A longer lease would be refused. */
const leaseOf = (duration: number): number => Math.min(duration, LONGEST_MS);

type Granted = Pick<RedlockLock, 'resources' | 'attempts' | 'expiration'>;

/** A lock of `Redlock.acquire`. */
export class RedlockLock {
  readonly redlock: Redlock;
  readonly resources: string[];
  /** The fencing token. Owner tokens of Holdfast are never disclosed. */
  readonly value: string;
  readonly attempts: readonly Promise<ExecutionStats>[];
  /** In ms since 1970; 0 when it was released or extended: after `extend`, use the lock that it returned. */
  expiration: number;
  /** @internal */
  readonly held: Lock;

  private constructor(redlock: Redlock, held: Lock, { resources, attempts, expiration }: Granted) {
    this.redlock = redlock;
    this.resources = resources;
    this.value = String(held.fencingToken);
    this.attempts = attempts;
    this.expiration = expiration;
    this.held = held;
  }

  /** @internal */
  static of(redlock: Redlock, held: Lock, granted: Granted): RedlockLock {
    return new RedlockLock(redlock, held, granted);
  }

  release(): Promise<ExecutionResult> {
    return this.redlock.release(this);
  }

  extend(duration: number): Promise<RedlockLock> {
    return this.redlock.extend(this, duration);
  }
}
