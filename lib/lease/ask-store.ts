import { RELEASE } from '../observe/channels.js';
import type { ReleaseContext } from '../observe/contexts.js';
import { traced } from '../observe/traced.js';
import type { LockStore, ReleaseOutcome, TransferOutcome } from '../store/lock-store.js';
import type { Lease } from './lease.js';

/** Asks the store to end a lease, and once more if it does not reply while the lease is valid. */
function insist<Outcome extends ReleaseOutcome | TransferOutcome>(
  lease: Lease,
  ask: () => Promise<Outcome>,
  ofRepeated: (outcome: Outcome) => Outcome = (outcome) => outcome,
): Promise<Outcome> {
  return ask().then((outcome) => {
    // What never left this process was waited for by the store as long as it may.
    const isUnsure = outcome.status === 'unavailable' && outcome.sent !== false;
    return isUnsure && lease.validForMs > 0 ? ask().then(ofRepeated) : outcome;
  });
}

/** The store gives the lease the token under which it waits. No other caller sends this request. */
export function askToDetach(
  store: LockStore,
  lease: Lease,
  { to, ttlMs }: { readonly to: string; readonly ttlMs: number },
): Promise<TransferOutcome> {
  const { keys, token, fencingToken: lastToken } = lease;
  const request = { keys, token, to, ttlMs, lastToken };
  return insist(lease, () => store.transfer(request));
}

/** The store releases the lease. */
export function askForRelease(
  store: LockStore,
  lease: Lease,
  service: string | undefined,
  heldMs: number,
): Promise<ReleaseOutcome> {
  return insist(
    lease,
    () => askOnce(store, lease, service, heldMs),
    (outcome) => ofRepeated(outcome, lease),
  );
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
  const { keys, token, longestTtlMs: ttlMs, fencingToken, tenure } = lease;
  const release = (): Promise<ReleaseOutcome> => {
    const { keepMs } = lease;
    const isPlain = tenure.isPlain && keepMs === 0;
    return store.release({ keys, token, ttlMs, isPlain }, fencingToken, keepMs);
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
