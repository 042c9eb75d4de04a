import type { HoldMode } from '../store/owner-token.js';
import type { Duration } from '../options/duration.js';
import type { LeaseRequest } from '../store/lock-store.js';
import type { SectionLock } from './section.js';

/** The handle of a nested section: the same lease, which it cannot end, because the section around it still works under it. */
export class BorrowedLock implements SectionLock {
  readonly #lock: SectionLock;

  constructor(lock: SectionLock) {
    // Of a handle that was borrowed itself, what that stands for: calls may be nested deeper than the stack is.
    this.#lock = lock instanceof BorrowedLock ? lock.#lock : lock;
  }

  get lease(): LeaseRequest | undefined {
    return this.#lock.lease;
  }

  get keys(): readonly string[] {
    return this.#lock.keys;
  }

  get fencingToken(): number {
    return this.#lock.fencingToken;
  }

  get signal(): AbortSignal {
    return this.#lock.signal;
  }

  get remainingMs(): number {
    return this.#lock.remainingMs;
  }

  get isHeld(): boolean {
    return this.#lock.isHeld;
  }

  get mode(): HoldMode {
    return this.#lock.mode;
  }

  get isReleased(): boolean {
    return this.#lock.isReleased === true;
  }

  assertHeld(): void {
    this.#lock.assertHeld();
  }

  extend(ttl?: Duration): Promise<void> {
    return this.#lock.extend(ttl);
  }

  release(): Promise<boolean> {
    return Promise.resolve(this.isHeld);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}
