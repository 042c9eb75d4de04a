import { placesOf, type HoldMode } from '../store/owner-token.js';
import type { HoldContext, LockSubject } from '../observe/contexts.js';
import { LockConfigurationError } from '../errors.js';
import { quoteKeys } from '../errors/quote-keys.js';
import { optionsOf } from '../options/call-arguments.js';
import type { DetachOptions } from '../options/detach-options.js';
import type { Duration } from '../options/duration.js';
import type { LeaseKeeper } from './lease-keeper.js';
import type { LeaseRequest, WriteCommand } from '../store/lock-store.js';
import type { Lease } from './lease.js';
import type { DetachableLock, LockHandle } from './lock.js';

/** The handle of a lease. */
export class HeldLock implements LockHandle, DetachableLock {
  readonly depth: number = 1;
  readonly #lease: Lease;
  readonly #keeper: LeaseKeeper;

  constructor(lease: Lease, keeper: LeaseKeeper) {
    this.#lease = lease;
    this.#keeper = keeper;
  }

  /** What is left of the lock when its handle is gone. */
  get leaseToWatch(): Lease {
    return this.#lease;
  }

  get lease(): LeaseRequest {
    const { keys, token, ttlMs } = this.#lease;
    return { keys, token, ttlMs };
  }

  get subject(): LockSubject {
    return this.#lease.subject;
  }

  get lockName(): string | undefined {
    return this.#lease.lockName;
  }

  get hold(): HoldContext | undefined {
    return this.#lease.hold;
  }

  /** The caller has the lock from now on. */
  begun(): void {
    this.#keeper.begun(this.#lease);
  }

  /** The work under the lock has failed. */
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

  get places(): number {
    return placesOf(this.#lease.token);
  }

  get isReleased(): boolean {
    return this.#lease.state.status === 'released';
  }

  assertHeld(): void {
    this.#keeper.assertHeld(this.#lease);
  }

  async extend(ttl?: Duration): Promise<void> {
    await this.#keeper.extend(this.#lease, ttl);
  }

  stopRenewal(): void {
    this.#lease.stopRenewal();
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

  borrow(): LockHandle {
    return new BorrowedLock(this.#lease, this.#keeper, this.depth + 1);
  }

  /**
   * Never rejects: the fate of the lock must not replace the result or the error of the block. A loss is reported by
   * signal and event.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => false); // the keeper has logged it
  }
}

/** The handle of a section, which releases its lock at its end. */
export class SectionLock extends HeldLock {
  /** For JavaScript: its type has no `detach`. */
  override detach(): Promise<string> {
    const refusal = new LockConfigurationError(
      `The lock of ${quoteKeys(this.keys)} cannot be detached: the run(), @WithLock, @RunOnce or @Leader that it belongs to releases it at ` +
        'its end. Take it with acquire(), and detach that.',
    );
    return Promise.reject(refusal);
  }
}

/** The handle of a nested section: the same lease, which it cannot end, because the section around it still works under it. */
class BorrowedLock extends SectionLock {
  override readonly depth: number;

  constructor(lease: Lease, keeper: LeaseKeeper, depth: number) {
    super(lease, keeper);
    this.depth = depth;
  }

  /** The holder has the lock already. */
  override begun(): void {
    return undefined;
  }

  /** The holder may live with that. */
  override failed(): void {
    return undefined;
  }

  override release(): Promise<boolean> {
    return Promise.resolve(this.isHeld);
  }
}
