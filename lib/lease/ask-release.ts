import { RELEASE } from '../observe/channels.js';
import type { ReleaseContext } from '../observe/contexts.js';
import { traced } from '../observe/traced.js';
import type { LockStore, ReleaseOutcome } from '../store/lock-store.js';
import type { Lease } from './lease.js';

/** Asks the store to release a lease, and publishes that on `holdfast:release`. */
export function askForRelease(
  store: LockStore,
  lease: Lease,
  service: string | undefined,
  heldMs: number,
): Promise<ReleaseOutcome> {
  const { keys, token, longestTtlMs: ttlMs, fencingToken } = lease;
  if (!RELEASE.hasSubscribers)
    return store.release({ keys, token, ttlMs }, fencingToken, lease.keepMs);
  const context: ReleaseContext = {
    ...(service !== undefined && { service }),
    ...lease.subject,
    heldMs,
  };
  return traced(RELEASE, context, async () => {
    const outcome = await store.release({ keys, token, ttlMs }, fencingToken, lease.keepMs);
    context.outcome = outcome.status === 'not-held' ? 'lost' : outcome.status;
    return outcome;
  });
}
