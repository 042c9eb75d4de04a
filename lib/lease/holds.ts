import { LockLostError, type LockLossReason } from '../errors.js';
import { HOLD } from '../observe/channels.js';
import { began, ended } from '../observe/traced.js';
import type { Lease } from './lease.js';

/** Publishes that the lock is held from now on. */
export function beginHold(lease: Lease, service: string | undefined): void {
  if (lease.isOver) return;
  const { subject, follows } = lease;
  lease.hold = { ...(service !== undefined && { service }), ...subject, follows };
  lease.follows = undefined;
  began(HOLD, lease.hold);
}

/** How a hold ended. */
interface HoldEnd {
  readonly outcome: 'released' | 'detached' | 'lost';
  readonly heldMs: number;
  readonly reason?: LockLossReason;
}

/** Publishes that the lock is no longer held. Does nothing if its beginning was not published. */
export function endHold(lease: Lease, { outcome, heldMs, reason }: HoldEnd): void {
  const { hold } = lease;
  if (hold?.outcome !== undefined || hold === undefined) return;
  hold.outcome = outcome;
  hold.heldMs = heldMs;
  if (reason !== undefined) {
    hold.reason = reason;
    hold.error ??= new LockLostError(lease.lossFacts(reason));
  }
  ended(HOLD, hold);
  // A long line of turns would be kept in memory by its last one.
  hold.follows = undefined;
}
