import { RELEASE } from '../observe/channels.js';
import type { ReleaseContext } from '../observe/contexts.js';
import { traced } from '../observe/traced.js';
import type { LockStore, ReleaseOutcome } from '../store/lock-store.js';
import type { Lease } from './lease.js';

/** Asks the store to release a lease, and once more if it does not reply while the lease is valid. */
export function askForRelease(
  store: LockStore,
  lease: Lease,
  service: string | undefined,
  heldMs: number,
): Promise<ReleaseOutcome> {
  const ask = (): Promise<ReleaseOutcome> => askOnce(store, lease, service, heldMs);
  return ask().then((outcome) => {
    // What never left this process was waited for by the store as long as it may.
    const isToRepeat = outcome.status === 'unavailable' && outcome.sent !== false;
    return isToRepeat && lease.validForMs > 0
      ? ask().then((second) => ofRepeated(second, lease))
      : outcome;
  });
}

/** While it was valid, no other caller could have removed it: the first request did, and only its reply was lost. */
const ofRepeated = (outcome: ReleaseOutcome, { validForMs }: Lease): ReleaseOutcome =>
  outcome.status === 'not-held' && validForMs > 0 ? { status: 'released' } : outcome;

/** Asks, and publishes that on `holdfast:release`. */
function askOnce(
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
