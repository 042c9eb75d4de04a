import { getEventListeners } from 'node:events';
import { quoteKeys } from '../errors/quote-keys.js';
import type { CancelTimer } from '../time/clock.js';
import type { CollectedWatch, Runtime } from '../time/runtime.js';
import type { LockHandle } from './lock-handle.js';
import type { LeaseKeeper } from './lease-keeper.js';
import type { Lease } from './lease.js';

/** Whether locks of `acquire` are watched. */
export type ForgottenLocksMode = 'release' | 'keep';

/**
 * Most locks are released sooner than this. They are not watched, because that would double the cost of a lock: the
 * quick garbage collections copy every object that is watched.
 */
const WATCHED_AFTER_MS = 1_000;

interface Dependencies {
  readonly mode: ForgottenLocksMode;
  readonly runtime: Runtime;
  readonly keeper: LeaseKeeper;
  readonly warn: (message: string) => void;
}

/**
 * Releases locks whose handles, and signals, were collected as garbage while they were held. No caller can release them any more, and
 * they would be renewed for as long as the process lives.
 */
export class ForgottenLocks {
  readonly #runtime: Runtime;
  readonly #keeper: LeaseKeeper;
  readonly #collected: CollectedWatch<Lease> | undefined;
  /** Cancels the next look at the locks that are not watched yet, if there may be any. */
  #cancelLook: CancelTimer | undefined;

  constructor({ mode, runtime, keeper, warn }: Dependencies) {
    this.#runtime = runtime;
    this.#keeper = keeper;
    if (mode === 'keep') return;
    this.#collected = runtime.watchCollected?.((lease: Lease) => {
      if (lease.isOver || this.#isSignalUsed(lease)) return;
      const place = lease.request.site?.place;
      warn(
        `The lock of ${quoteKeys(lease.keys)}${place === undefined ? '' : `, acquired at ${place},`} was never released, and its handle is ` +
          'garbage by now: it is released. Release a lock of acquire() in a finally block, or use run() or "await using". A lock that is to be ' +
          'held until the process ends needs a reference that lasts as long.',
      );
      keeper.lose(lease, 'forgotten');
    });
  }

  /** Code that was given the signal of a lock works under it, even if it has no handle. */
  #isSignalUsed(lease: Lease): boolean {
    const { givenSignal: signal } = lease;
    if (signal === undefined) return false;
    const isHeard = getEventListeners(signal, 'abort').length > 0;
    if (!isHeard) lease.loosenSignal();
    // A listener may be all that needs it: it is asked again after the next garbage collection.
    this.#collected?.register(isHeard ? {} : signal, lease);
    return true;
  }

  /** Whether locks are watched. */
  get isWatching(): boolean {
    return this.#collected !== undefined;
  }

  /** Gives the lock back. */
  readonly watch = (lock: LockHandle): LockHandle => {
    // Until it is watched, its lease keeps it from being collected.
    lock.lease.unwatched = lock;
    this.#cancelLook ??= this.#runtime.setTimer(this.#watchHeld, WATCHED_AFTER_MS, 'background');
    return lock;
  };

  close(): void {
    this.#cancelLook?.();
  }

  readonly #watchHeld = (): void => {
    this.#cancelLook = undefined;
    for (const lease of this.#keeper.leases) {
      const { unwatched } = lease;
      if (unwatched === undefined) continue;
      lease.unwatched = undefined;
      this.#collected?.register(unwatched, lease);
    }
  };
}
