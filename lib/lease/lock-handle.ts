import type { HoldMode } from '../store/owner-token.js';
import { LockConfigurationError } from '../errors.js';
import { quoteKeys } from '../errors/quote-keys.js';
import { optionsOf } from '../options/call-arguments.js';
import type { DetachOptions } from '../options/detach-options.js';
import type { Duration } from '../options/duration.js';
import type { LeaseKeeper } from './lease-keeper.js';
import type { WriteCommand } from '../store/lock-store.js';
import type { Lease } from './lease.js';
import type { DetachableLock } from './lock.js';

/** The handle of a lease that `acquire` or `attach` returns. */
export class LockHandle implements DetachableLock {
  /** More than 1 for the handle of a nested section, which borrows the lease of the section around it. */
  readonly depth: number;
  readonly #lease: Lease;
  readonly #keeper: LeaseKeeper;

  constructor(lease: Lease, keeper: LeaseKeeper, depth = 1) {
    this.#lease = lease;
    this.#keeper = keeper;
    this.depth = depth;
  }

  get lease(): Lease {
    return this.#lease;
  }

  /** Ends the trace of the acquisition: the caller has the lock from now on. */
  begun(): void {
    this.#keeper.begun(this.#lease);
  }

  /** Records for the trace that the work under the lock has failed. */
  failed(error: unknown): void {
    const { hold } = this.#lease;
    if (hold !== undefined && hold.outcome === undefined) hold.error ??= error;
  }

  get keys(): readonly string[] {
    return this.#lease.keys;
  }

  get fencingToken(): number {
    return this.#lease.shownToken;
  }

  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  get remainingMs(): number {
    return this.isHeld ? this.#lease.validForMs : 0;
  }

  get isHeld(): boolean {
    return this.#lease.isHeld;
  }

  get mode(): HoldMode {
    return this.#lease.mode;
  }

  /** How many of the places of a limit it takes; 1 without a limit. */
  get places(): number {
    return this.#lease.request.options.places;
  }

  /** Whether the work itself has released it. */
  get isReleased(): boolean {
    return this.#lease.status === 'released';
  }

  assertHeld(): void {
    this.#keeper.assertHeld(this.#lease);
  }

  async extend(ttl?: Duration): Promise<void> {
    await this.#keeper.extend(this.#lease, ttl);
  }

  stopRenewal(): void {
    // The next look at the lease finds no renewal to send.
    this.#lease.isRenewed = false;
  }

  release(): Promise<boolean> {
    return this.#keeper.release(this.#lease);
  }

  async detach(options?: DetachOptions): Promise<string> {
    const { ttl } = optionsOf<DetachOptions>('detach', options);
    return this.#keeper.detach(this.#lease, ttl);
  }

  async guarded(commands: readonly WriteCommand[]): Promise<readonly unknown[]> {
    return this.#keeper.write(this.#lease, commands);
  }

  /** The same lock for work nested in that of the holder. Such work cannot release it. */
  borrow(): SectionLock {
    return new SectionLock(this.#lease, this.#keeper, this.depth + 1);
  }

  /**
   * Never rejects: the fate of the lock must not replace the result or the error of the block. A loss is reported by
   * signal and event.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => false); // the keeper has logged it
  }
}

/** The handle of a section, which ends with its work: the outermost section releases the lease then. */
export class SectionLock extends LockHandle {
  /** For JavaScript: its type has no `detach`. */
  override detach(): Promise<string> {
    const refusal = new LockConfigurationError(
      `The lock of ${quoteKeys(this.keys)} cannot be detached: the run(), @WithLock, @RunOnce or @Leader that it belongs to releases it at ` +
        'its end. Take it with acquire(), and detach that.',
    );
    return Promise.reject(refusal);
  }

  /** The section around a nested one has the lock already. */
  override begun(): void {
    if (this.depth === 1) super.begun();
  }

  /** The section around a nested one may live with that. */
  override failed(error: unknown): void {
    if (this.depth === 1) super.failed(error);
  }

  /** The section around a nested one still works under the lock. */
  override release(): Promise<boolean> {
    return this.depth === 1 ? super.release() : Promise.resolve(this.isHeld);
  }
}
