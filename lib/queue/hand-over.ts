import { endsWhenDone, validityMs } from '../lease/grant.js';
import type { Lease } from '../lease/lease.js';
import type { Handoff } from '../options/resolve-options.js';
import { holdModeOf } from '../store/owner-token.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import type { LockRequest } from './caller.js';

/** What a hand-over is measured by. */
interface Bounds {
  readonly handoff: Handoff;
  readonly clockDrift: number;
  readonly now: Instant;
}

/** Whether a lease may be handed to a caller of this process: within the bounds of a tenure, and if it is what the caller asks for. */
export function mayPass(lease: Lease, request: LockRequest, bounds: Bounds): boolean {
  const { tenure, ttlMs, options } = lease;
  const { handoff, clockDrift, now } = bounds;
  return (
    tenure.nextToken !== undefined &&
    // A place that is held passes to whoever waits for one; a reader has nothing to pass on that others could not have at once.
    request.mode !== 'shared' &&
    holdModeOf(lease.token) === request.mode &&
    (!tenure.othersWait || tenure.turns < handoff.turns) &&
    elapsedMs(tenure.since, now) < handoff.tenureMs &&
    // Who asks for another lease gets it from the store.
    isAlike({ ...options, ttlMs }, request) &&
    // What is left of this one need not cover it.
    endsWhenDone(request) &&
    options.autoExtend &&
    lease.validForMsAt(now) > validityMs(ttlMs, clockDrift) / 2
  );
}

/** Whether a lease for the one would do for the other. */
export const isAlike = (
  one: Pick<LockRequest, 'ttlMs' | 'autoExtend'>,
  other: Pick<LockRequest, 'ttlMs' | 'autoExtend'>,
): boolean => one.ttlMs === other.ttlMs && one.autoExtend === other.autoExtend;
