import { RELEASE } from '../observe/channels.js';
import type { ReleaseContext } from '../observe/contexts.js';
import { traced } from '../observe/traced.js';
import type { LockStore, ReleaseOutcome, TransferOutcome } from '../store/lock-store.js';
import { releaseAll, transferAll } from './every-key.js';
import type { Lease } from './lease.js';

/**
 * Whether to ask once more for the end of a lease: while it is valid, and the store may not have carried out the request. What never left
 * this process was waited for by the store as long as it may.
 */
const isUnsure = (lease: Lease, outcome: ReleaseOutcome | TransferOutcome): boolean =>
  outcome.status === 'unavailable' && outcome.sent !== false && lease.validForMs > 0;

/** The store gives the lease the token under which it waits. No other caller sends this request. */
export async function askToDetach(
  store: LockStore,
  lease: Lease,
  { to, ttlMs }: { readonly to: string; readonly ttlMs: number },
): Promise<TransferOutcome> {
  const { keys, token, fencingToken: lastToken } = lease;
  const request = { keys, token, to, ttlMs, lastToken };
  const outcome = await transferAll(store, request);
  return isUnsure(lease, outcome) ? transferAll(store, request) : outcome;
}

/** The store releases the lease. */
export async function askForRelease(
  store: LockStore,
  lease: Lease,
  service: string | undefined,
  heldMs: number,
): Promise<ReleaseOutcome> {
  const outcome = await askOnce(store, lease, service, heldMs);
  if (!isUnsure(lease, outcome)) return outcome;
  const repeated = await askOnce(store, lease, service, heldMs);
  // While it was valid, no other caller could have removed it: the first request did, and only its reply was lost.
  return repeated.status === 'not-held' && lease.validForMs > 0 ? { status: 'released' } : repeated;
}

/** Asks, and publishes that on `holdfast:release`. */
function askOnce(
  store: LockStore,
  lease: Lease,
  service: string | undefined,
  heldMs: number,
): Promise<ReleaseOutcome> {
  const { keys, token, longestTtlMs: ttlMs, fencingToken, tenure } = lease;
  const release = (): Promise<ReleaseOutcome> => {
    const { keepMs } = lease;
    const isPlain = tenure.isPlain && keepMs === 0;
    return releaseAll(store, { keys, token, ttlMs, isPlain }, fencingToken, keepMs);
  };
  if (!RELEASE.hasSubscribers) return release();
  const context: ReleaseContext = {
    ...(service !== undefined && { service }),
    ...lease.subject,
    heldMs,
  };
  return traced(RELEASE, context, async () => {
    const outcome = await release();
    context.outcome = outcome.status === 'not-held' ? 'lost' : outcome.status;
    return outcome;
  });
}
