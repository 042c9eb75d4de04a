import type { DetachOptions } from '../options/detach-options.js';
import type { Duration } from '../options/duration.js';
import type { WriteCommand } from '../store/lock-store.js';
import type { HoldMode } from '../store/owner-token.js';

/**
 * A lock that is held: `acquire` returns it, and the work of `run` is given it.
 *
 * @typeParam Token `undefined` for a lock of a `LockDriver`, which has no fencing token
 */
export interface Lock<Token extends number | undefined = number> extends AsyncDisposable {
  /** The locked keys: sorted, without duplicates, without `keyPrefix`. */
  readonly keys: readonly string[];
  /**
   * A safe integer that grows with every grant of each of the keys, even after the store lost its data. Send it to the
   * resource, and let the resource refuse a token smaller than the largest it has seen. That makes a lock safe against
   * pauses (Kleppmann 2016, "How to do distributed locking").
   *
   * Locks that hold a key together (`mode: 'shared'`, `limit`) have one fencing token, larger than those of all earlier
   * exclusive locks. A lock that also holds other keys may have a larger one. The limits:
   * https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/guarantees.md#shared-and-limited-locks
   */
  readonly fencingToken: Token;
  /**
   * Aborts with a `LockLostError` when the lock is lost: at the local deadline at the latest, even if Redis does not
   * reply. After the event loop was blocked, `lock.signal.aborted` is right at once. A signal that was read before the
   * block is aborted when `lock.signal` is read, or when the next timer runs.
   */
  readonly signal: AbortSignal;
  /**
   * Milliseconds for which the holder may still rely on the lock; 0 when it is not held. Renewals extend it.
   */
  readonly remainingMs: number;
  /** How the keys are held. */
  readonly mode: HoldMode;
  /**
   * Whether the lock is currently held. It compares the clocks, so it is right even after the event loop was blocked.
   */
  readonly isHeld: boolean;
  /**
   * How many nested sections hold the lock, down to this handle. It is 1 in `acquire` and in the outermost `run` or
   * `@WithLock`, 2 in a call nested in that, and so on.
   */
  readonly depth: number;
  /**
   * Throws a `LockLostError` unless the lock is currently held. Call it right before a step that cannot be undone.
   *
   * @example
   * ```ts
   * await locks.run('order:42', async (lock) => {
   *   lock.assertHeld();
   *   await ship('42');
   * });
   * ```
   */
  assertHeld(): void;
  /**
   * Renews the lock now, for `ttl` from now (default: the TTL in force), and makes that the TTL in force.
   *
   * @throws LockLostError when the lock is lost
   * @throws LockStoreUnavailableError when the store does not reply: the lock is then still held until `remainingMs` is
   *   over
   * @example
   * ```ts
   * await locks.run('report', async (lock) => {
   *   await lock.extend('5m');
   *   await writeReport();
   * });
   * ```
   */
  extend(ttl?: Duration): Promise<void>;
  /**
   * Runs commands on the Redis that has the lock, in one step with the check that the lock is still held. Commands that
   * a suspended holder sends after it lost the lock are not run. Resolves with the reply of each command.
   *
   * Keys are whole names, without any `keyPrefix`. On a Cluster they lie in the slot of the lock:
   * `{lock:order:42}:total`. Arguments are texts and numbers.
   *
   * @throws LockLostError when the lock is not held: no command was run
   * @throws GuardedCommandError when a command fails: the commands before it were run
   * @throws LockStoreUnavailableError when Redis does not reply: the commands may have been run
   * @throws LockConfigurationError over several masters, in memory, and for keys in another slot
   * @example
   * ```ts
   * await locks.run('order:42', async (lock) => {
   *   await lock.guarded([['SET', 'total:42', 17]]);
   * });
   * ```
   */
  guarded(commands: readonly WriteCommand[]): Promise<readonly unknown[]>;
  /**
   * Ends the automatic renewals, also for the sections around. Without a release, the lock is held until its TTL is
   * over and is then lost: reason `'expired'`, `signal` aborts. A renewal that is already sent still counts. `extend()`
   * renews by hand. Does nothing with `autoExtend: false`.
   *
   * @example
   * ```ts
   * await using lock = await locks.acquire('report', { ttl: '1m' });
   * lock.stopRenewal();
   * ```
   */
  stopRenewal(): void;
  /**
   * Releases the lock. Resolves with `true` when it was held until now, and with `false` when it was lost before.
   * Idempotent: a further call has the same result.
   *
   * @throws LockStoreUnavailableError when the store does not reply; the release is tried again in the background until
   *   the TTL is over
   * @example
   * ```ts
   * const lock = await locks.acquire('order:42');
   * try {
   *   await ship('42');
   * } finally {
   *   await lock.release();
   * }
   * ```
   */
  release(): Promise<boolean>;
}

/**
 * A lock that `acquire`, `tryAcquire` or `attach` returned. It belongs to no section, so another process can take it
 * over.
 */
export interface DetachableLock<Token extends number | undefined = number> extends Lock<Token> {
  /**
   * Ends the lock in this handle without releasing its keys. Returns a text with which this or another process takes
   * the lock over: `locks.attach(text)`. The attached lock has the same keys, mode and fencing token.
   *
   * From this call on, this handle holds nothing: `isHeld` is false, the lock is not renewed, and `release()` returns
   * false. Its `signal` does not abort, and no `lost` event is emitted.
   *
   * Any process that has the text can take the lock, once: treat the text as a credential. Until it is attached, the
   * keys stay taken for `ttl` from now (default: the TTL in force). After that they are free.
   *
   * @throws LockLostError when the lock was lost
   * @throws LockStoreUnavailableError when the store does not reply: the lock is then released
   * @throws LockConfigurationError for a `ttl` shorter than what is left of `minHold`, over several masters, and with
   *   a driver
   * @example
   * ```ts
   * const lock = await locks.acquire('order:42');
   * const text = await lock.detach({ ttl: '10m' });
   * ```
   */
  detach(options?: DetachOptions): Promise<string>;
}
