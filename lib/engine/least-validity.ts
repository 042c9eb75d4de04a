import { LockStoreUnavailableError } from '../errors.js';
import type { LockHandle } from '../lease/lock.js';

/** How much validity a lock is to have when it is handed out. */
export interface LeastValidity {
  readonly minValidityMs: number;
  /** What it is renewed for where the TTL in force is shorter. */
  readonly ttlMs: number;
}

/**
 * Renews a lock that has less validity left than its caller asked for. It may be a turn that was passed on, the lease
 * of an outer section, or a grant whose reply was slow.
 *
 * @throws LockStoreUnavailableError when it could not be renewed, or the reply was slow again
 * @throws LockLostError when it was lost meanwhile
 */
export async function renewForValidity(
  lock: LockHandle,
  { minValidityMs, ttlMs }: LeastValidity,
): Promise<void> {
  if (lock.remainingMs >= minValidityMs) return;
  await lock.extend(Math.max(ttlMs, lock.lease.ttlMs));
  const { keys, remainingMs } = lock;
  if (remainingMs >= minValidityMs) return;
  const message =
    `renewed, and ${remainingMs.toFixed(0)} ms of validity were left when the answer came: ` +
    `"minValidity" asks for ${String(minValidityMs)} ms`;
  throw new LockStoreUnavailableError({
    operation: 'extend',
    keys,
    nodes: [{ node: 'store', kind: 'timeout', message }],
    lock: lock.lockName,
  });
}
