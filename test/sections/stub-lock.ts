import type { LockHandle } from '../../lib/lease/lock-handle.js';
import type { HoldMode } from '../../lib/store/owner-token.js';

/** What a test sets of a lock, also while it is held. */
export interface StubFacts {
  readonly keys: readonly string[];
  readonly mode?: HoldMode;
  isHeld?: boolean;
  isReleased?: boolean;
}

/** A lock that no store knows: as much of it as sections look at. */
export function stubLock(facts: StubFacts): LockHandle {
  const lock = {
    keys: facts.keys,
    lease: { keys: facts.keys, token: 'token', ttlMs: 1_000 },
    mode: facts.mode ?? 'exclusive',
    remainingMs: 1_000,
    get isHeld() {
      return facts.isHeld ?? true;
    },
    get isReleased() {
      return facts.isReleased ?? false;
    },
    assertHeld() {
      if (!lock.isHeld) throw new Error('not held');
    },
    borrow: () => lock,
  };
  return lock as unknown as LockHandle;
}
