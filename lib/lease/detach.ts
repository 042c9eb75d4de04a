import { LockConfigurationError } from '../errors.js';
import type { LockStore, TransferOutcome } from '../store/lock-store.js';
import { holdModeOf, placesOf } from '../store/owner-token.js';
import type { Runtime } from '../time/runtime.js';
import { writeDetached } from './detached-lock.js';
import type { Lease } from './lease.js';

interface Departure {
  /** For so long the keys stay taken. */
  readonly ttlMs: number;
  readonly place: string;
  readonly runtime: Runtime;
}

/** The text that a later `attach` is given, and the owner token under which the lease waits. */
export function toDetached(
  lease: Lease,
  { ttlMs, place, runtime }: Departure,
): ReturnType<typeof writeDetached> {
  const { keys, token, fencingToken, tenure, isRenewed, options } = lease;
  const places = placesOf(token);
  const minHoldMs = Math.ceil(lease.minHoldLeftMs);
  refuseBelowMinHold(ttlMs, minHoldMs);
  return writeDetached({
    ...{ place, keys, mode: holdModeOf(token), fencingToken, lastToken: tenure.lastToken },
    ...(places > 1 && { places }),
    ...{ ttlMs: lease.ttlMs, autoExtend: isRenewed, minHoldMs, release: options.release },
    ...{ keptForMs: ttlMs, untilMs: Math.ceil(runtime.now().wallMs + ttlMs) },
    nonce: runtime.uuid(),
  });
}

/**
 * The store gives the lease the token under which it waits. A request without a reply is sent a second time: no other
 * caller sends this request.
 */
export async function askToDetach(
  store: LockStore,
  lease: Lease,
  { to, ttlMs }: { readonly to: string; readonly ttlMs: number },
): Promise<TransferOutcome> {
  const { keys, token, tenure } = lease;
  const { lastToken } = tenure;
  const request = { keys, token, to, ttlMs, lastToken };
  const outcome = await store.transfer(request);
  // What never left this process was waited for by the store as long as it may.
  const isUnsure = outcome.status === 'unavailable' && outcome.sent !== false;
  return isUnsure && lease.validForMs > 0 ? store.transfer(request) : outcome;
}

function refuseBelowMinHold(ttlMs: number, minHoldMs: number): void {
  if (ttlMs >= minHoldMs) return;
  throw new LockConfigurationError(
    `detach({ ttl: ${String(ttlMs)} }) is shorter than what is left of the lock's "minHold", ${String(minHoldMs)} ms: if no process attaches it, the ` +
      'keys must stay taken until then. Give a longer "ttl".',
  );
}
