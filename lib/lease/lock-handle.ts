import type { HoldMode } from '../store/owner-token.js';
import { LockConfigurationError } from '../errors.js';
import { describe } from '../errors/describe.js';
import { quoteKeys } from '../errors/quote-keys.js';
import { optionsOf } from '../options/call-arguments.js';
import type { DetachOptions } from '../options/detach-options.js';
import type { Duration } from '../options/duration.js';
import type { LeaseKeeper } from './lease-keeper.js';
import type { WriteCommand } from '../store/lock-store.js';
import type { Lease } from './lease.js';
import type { DetachableLock } from './lock.js';

/** The handle of a lease: of a caller that took it by hand, or of a section. */
export class LockHandle implements DetachableLock {
  readonly #lease: Lease;
  readonly #keeper: LeaseKeeper;
  /** The number of nested sections down to this handle; 0 for one by hand. A nested section borrows the lease of the one around it. */
  readonly #sections: number;

  constructor(lease: Lease, keeper: LeaseKeeper, sections = 0) {
    this.#lease = lease;
    this.#keeper = keeper;
    this.#sections = sections;
  }

  /** A getter, so that a logged lock does not show the owner token. */
  get lease(): Lease {
    return this.#lease;
  }

  get depth(): number {
    return Math.max(1, this.#sections);
  }

  /** Whether the section around it has the lock, and releases it. */
  get #isBorrowed(): boolean {
    return this.#sections > 1;
  }

  /** Records for the trace that the work under the lock has failed. The section around a nested one may live with that. */
  failed(error: unknown): void {
    const { hold } = this.#lease;
    if (!this.#isBorrowed && hold !== undefined && hold.outcome === undefined) hold.error ??= error;
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
    this.#lease.assertHeld();
  }

  async extend(ttl?: Duration): Promise<void> {
    await this.#keeper.extend(this.#lease, ttl);
  }

  stopRenewal(): void {
    // The next look at the lease finds no renewal to send.
    this.#lease.isRenewed = false;
  }

  release(): Promise<boolean> {
    return this.#isBorrowed ? Promise.resolve(this.isHeld) : this.#keeper.release(this.#lease);
  }

  async detach(options?: DetachOptions): Promise<string> {
    // For JavaScript: the type of the lock of a section has no `detach`.
    if (this.#sections > 0)
      throw new LockConfigurationError(
        `The lock of ${quoteKeys(this.keys)} cannot be detached: the run(), @WithLock, @RunOnce or @Leader that it belongs to ` +
          'releases it at its end. Take it with acquire(), and detach that.',
      );
    const { ttl } = optionsOf<DetachOptions>('detach', options);
    return this.#keeper.detach(this.#lease, ttl);
  }

  async guarded(commands: readonly WriteCommand[]): Promise<readonly unknown[]> {
    checkCommands(commands);
    return this.#keeper.write(this.#lease, commands);
  }

  /** The same lock for work nested in that of the holder. Such work cannot release it. */
  borrow(): LockHandle {
    return new LockHandle(this.#lease, this.#keeper, this.depth + 1);
  }

  /**
   * Never rejects: the fate of the lock must not replace the result or the error of the block. A loss is reported by
   * signal and event.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => false); // the keeper has logged it
  }
}

/** Lua cannot pass on more. */
const MOST_PARTS = 4_000;

/** A script with more would keep Redis busy for long. */
const MOST_PARTS_IN_ALL = 50_000;

/** For JavaScript, and for what no command can be. */
function checkCommands(commands: unknown): asserts commands is readonly WriteCommand[] {
  if (!Array.isArray(commands) || commands.length === 0) throw wrong(describe(commands));
  let parts = 0;
  for (const [index, command] of (commands as readonly unknown[]).entries()) {
    const which = `command ${String(index + 1)}`;
    if (!Array.isArray(command) || typeof command[0] !== 'string' || command[0] === '')
      throw wrong(`${describe(command)} as ${which}`);
    if (command.length > MOST_PARTS)
      throw wrong(
        `${which} with ${String(command.length)} parts, and ${String(MOST_PARTS)} are the most`,
      );
    const odd = (command as readonly unknown[]).find((part) => !isPart(part));
    if (command.some((part) => !isPart(part))) throw wrong(`${which} with ${describe(odd)} in it`);
    parts += command.length;
    if (parts > MOST_PARTS_IN_ALL)
      throw wrong(`more than ${String(MOST_PARTS_IN_ALL)} parts in all`);
  }
}

const isPart = (part: unknown): boolean =>
  typeof part === 'string' || (typeof part === 'number' && Number.isFinite(part));

const wrong = (received: string): LockConfigurationError =>
  new LockConfigurationError(
    `guarded() takes a list of commands of Redis, each a list of texts and numbers, received ${received}. ` +
      "Write lock.guarded([['set', 'balance:7', 90], ['incr', 'transfers']]).",
  );
