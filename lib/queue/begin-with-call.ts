import { endsWhenDone, type Grant } from '../lease/grant.js';
import { validityMs } from '../options/validity.js';
import type { LineClaim } from '../store/lock-store.js';
import type { Instant } from '../time/clock.js';
import type { LockRequest } from './caller.js';

/** Who is called, and when. */
interface Called {
  readonly token: string;
  readonly clockDrift: number;
  readonly now: Instant;
}

/**
 * What a caller may begin with, before the store has confirmed it: with a claim of which more than half is left for certain. From that
 * follows when it is over unless it is renewed, which is asked for at the same time. `undefined` where that is not so, and for what would not
 * be renewed, or has to be kept for longer.
 */
export function grantOf(
  { fencingToken, turns, ttlMs: claimMs, ageMs = Infinity }: LineClaim,
  request: LockRequest,
  { token, clockDrift, now }: Called,
): Grant | undefined {
  const { keys, ttlMs, mode, autoExtend } = request;
  const isCertain = ageMs < validityMs(claimMs, clockDrift) / 2;
  if (!isCertain || !autoExtend || !endsWhenDone(request)) return undefined;
  if (mode !== 'exclusive' || keys.length !== 1) return undefined;
  const sentAt = { monotonicMs: now.monotonicMs - ageMs, wallMs: now.wallMs - ageMs };
  return { keys, token, ttlMs, claimMs, sentAt, fencingToken, turns };
}
