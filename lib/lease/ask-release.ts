import { RELEASE } from '../observe/channels.js';
import type { ReleaseContext } from '../observe/contexts.js';
import { traced } from '../observe/traced.js';
import type { LockStore, ReleaseOutcome } from '../store/lock-store.js';
import type { Lease } from './lease.js';

/** Asks the store to release a lease, and a second time where the answer to the first was lost. */
export async function askForRelease(store: LockStore, lease: Lease): Promise<ReleaseOutcome> {
  const { keys, token, longestTtlMs: ttlMs, fencingToken } = lease;
  const outcome = await store.release({ keys, token, ttlMs }, fencingToken, lease.keepMs);
  // What never left this process was waited for by the store as long as it may.
  if (outcome.status !== 'unavailable' || outcome.sent === false || lease.validForMs <= 0)
    return outcome;
  const second = await store.release({ keys, token, ttlMs }, fencingToken, lease.keepMs);
  // Nobody else could have removed it while it was valid: the first request did, only its answer was lost.
  return second.status === 'not-held' && lease.validForMs > 0 ? { status: 'released' } : second;
}

/** The same, published on `holdfast:release`. */
export function askTraced(
  store: LockStore,
  lease: Lease,
  { service, heldMs }: Pick<ReleaseContext, 'service' | 'heldMs'>,
): Promise<ReleaseOutcome> {
  const context: ReleaseContext = {
    ...(service !== undefined && { service }),
    ...lease.subject,
    heldMs,
  };
  return traced(RELEASE, context, async () => {
    const outcome = await askForRelease(store, lease);
    context.outcome = outcome.status === 'not-held' ? 'lost' : outcome.status;
    return outcome;
  });
}
