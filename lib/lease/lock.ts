import type { HoldContext, LockSubject } from '../observe/contexts.js';
import type { DetachOptions } from '../options/detach-options.js';
import type { DowngradeOptions, UpgradeOptions } from '../options/mode-options.js';
import type { Duration } from '../options/duration.js';
import type { LeaseRequest, WriteCommand } from '../store/lock-store.js';
import type { HoldMode } from '../store/owner-token.js';

/** A lock that is held: what `acquire` returns and what the work of `run` is given. */
export interface Lock extends AsyncDisposable {
  /** What is locked: sorted, without duplicates, without `keyPrefix`. */
  readonly keys: readonly string[];
  /**
   * A safe integer that grows with every grant of each of the keys, also after the store lost its data. Send it along to the
   * resource, and let the resource refuse a smaller one than it has seen: that is what makes a lock safe against pauses
   * (Kleppmann 2016, "How to do distributed locking").
   *
   * Locks that hold a key together (`mode: 'shared'`, `limit`) have one fencing token, larger than those of all exclusive locks before
   * them. One that also holds other keys may have a larger one. The limits:
   * https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/guarantees.md#shared-and-limited-locks
   */
  readonly fencingToken: number;
  /** Aborts with a `LockLostError` when the lock is lost: at the local deadline at the latest, also when Redis is silent. */
  readonly signal: AbortSignal;
  /**
   * Milliseconds for which the holder may still rely on the lock; 0 when it is not held. Renewals move it. A lock that another process
   * handed over begins with under 1 s, and has its whole TTL as soon as its first renewal is confirmed, a round trip later.
   */
  readonly remainingMs: number;
  /**
   * How the keys are held now: as they were asked for, until `upgrade` or `downgrade` changes it. A downgrade counts from its call on, an
   * upgrade from its answer.
   */
  readonly mode: HoldMode;
  /** Whether the lock is held now. Compares the clocks, so it is right even after the event loop was blocked. */
  readonly isHeld: boolean;
  /**
   * How many sections hold the lock, down to this handle: 1 in `acquire` and in the outermost `run` or `@WithLock`, 2 in a call nested in
   * that, and so on.
   */
  readonly depth: number;
  /** Throws a `LockLostError` unless the lock is held now. Call it right before a step that cannot be undone. */
  assertHeld(): void;
  /**
   * Renews now, for `ttl` from now (default: the TTL in force), and makes that the TTL in force.
   *
   * @throws LockLostError when the lock is lost; LockStoreUnavailableError when the store did not answer: the lock is then
   * still held until `remainingMs` is over.
   */
  extend(ttl?: Duration): Promise<void>;
  /**
   * Admits readers, without a gap in which a writer could get the keys. An exclusive lock becomes shared, and one that was upgraded becomes
   * upgradeable again (`to` decides otherwise). Readers that stand first in line get the lock at once. A caller that waits for the keys
   * alone, and all behind it, continue to wait. Fencing token, renewals, `maxHold` and the section stay, and `release()` releases the share.
   * Does nothing if the lock is held in that mode already.
   *
   * Calls that are nested in the section when it is downgraded continue with readers beside them: wait for these calls first.
   *
   * @throws LockLostError when the lock is lost; LockStoreUnavailableError when the store did not answer: the lock counts as downgraded, and
   * readers are let in by the next renewal at the latest; LockConfigurationError for a lock that is weaker, that waits to be upgraded, in a
   * nested call, and for `to: 'upgradeable'` over several masters.
   */
  downgrade(options?: DowngradeOptions): Promise<void>;
  /**
   * Makes a lock of mode `'upgradeable'` exclusive, as soon as the readers beside it are done. The keys stay taken meanwhile, so what was read
   * under the lock is still true. While it waits, it stands before all others in line, and no reader joins the present ones.
   *
   * From then on `fencingToken` is a new one, larger than that of the readers. Does nothing for a lock that is exclusive already.
   *
   * @throws LockNotAcquiredError when they are not done within `wait`, the reason of `signal` when that aborts, and
   * LockStoreUnavailableError when the store did not answer: after each of them the lock is upgradeable as before. LockLostError when it was
   * lost or released meanwhile; LockServiceClosedError when the service shuts down; LockConfigurationError for mode `'shared'` and for
   * `limit`: two such holders would wait for each other.
   */
  upgrade(options?: UpgradeOptions): Promise<void>;
  /**
   * Runs commands on the Redis that has the lock, in one step with the check that the lock is still held: what a holder that was
   * suspended, or has lost its lock, sends late is not run. Resolves with the reply of each command. Keys are whole names, without any
   * `keyPrefix`; on a Cluster they lie in the slot of the lock: `{lock:order:42}:total`. Arguments are texts and numbers.
   *
   * @throws LockLostError when the lock is not held: nothing was run; GuardedCommandError when a command fails: those before it were run;
   * LockStoreUnavailableError when Redis did not answer: nobody knows whether they were run; LockConfigurationError over several masters,
   * in memory, and for keys in another slot.
   */
  guarded(commands: readonly WriteCommand[]): Promise<readonly unknown[]>;
  /**
   * Ends the automatic renewals, also for the sections around. The lock is held until its TTL is over, and is lost then (reason
   * `'expired'`, `signal` aborts) unless it is released before. A renewal that is on its way still counts. `extend()` renews by hand. Does
   * nothing with `autoExtend: false`.
   */
  stopRenewal(): void;
  /**
   * Gives the lock back. `true` when it was held until now, `false` when it was lost before. Idempotent: another call gives
   * the same answer.
   *
   * @throws LockStoreUnavailableError when the store did not answer; it is told again in the background until the TTL is over.
   */
  release(): Promise<boolean>;
}

/** A lock that `acquire`, `tryAcquire` or `attach` returned: it belongs to no section, so it can go to another process. */
export interface DetachableLock extends Lock {
  /**
   * Ends the lock here without giving its keys back, and returns a text with which another process, or this one, goes on:
   * `locks.attach(text)`. There it has the same keys, mode and fencing token. From this call on, this handle holds nothing: `isHeld` is
   * false, nothing is renewed, and `release()` returns false. Its `signal` does not abort, and no `lost` event is emitted.
   *
   * Whoever has the text can take the lock, once: treat it as a credential. While nobody has attached it, the keys stay taken for `ttl`
   * (default: the TTL in force) from now, and are free then.
   *
   * @throws LockLostError when the lock was lost; LockStoreUnavailableError when the store did not answer: the lock is given back then;
   * LockConfigurationError for a `ttl` that is shorter than what is left of `minHold`, and when a store of your own has no `transfer`.
   */
  detach(options?: DetachOptions): Promise<string>;
}

/** A lock as the library itself sees it. */
export interface LockHandle extends Lock {
  /** Given back by the work itself. */
  readonly isReleased: boolean;
  /** How many places it has of those that a limit counts; 1 without one. */
  readonly places: number;
  /** What is published of it while somebody subscribes to that; the same of a nested lock. */
  readonly hold: HoldContext | undefined;
  /** Its caller has it from now on, as far as those are concerned who trace that. */
  begun(): void;
  /** Its work has failed, for the same. */
  failed(error: unknown): void;
  /** For events. */
  readonly subject: LockSubject;
  /** What it is called by in the store. */
  readonly lease: LeaseRequest;
  /** For work nested in that of the holder: the same lock, which it cannot give back. */
  borrow(): LockHandle;
}
