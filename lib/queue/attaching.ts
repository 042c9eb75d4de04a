import {
  LockNotAttachedError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  type NotAttachedReason,
} from '../errors.js';
import { transferAll } from '../lease/every-key.js';
import type { DetachedLock } from '../lease/detached-lock.js';
import type { Grant, LeaseOptions } from '../lease/grant.js';
import type { Lease } from '../lease/lease.js';
import { validityMs } from '../options/validity.js';
import type { TransferOutcome, Unavailable } from '../store/lock-store.js';
import { elapsedMs, type Instant } from '../time/clock.js';
import { tooLate, type LockRequests, type RequestDependencies } from './requests.js';

/** How the lease is held from now on. */
export interface AttachRequest extends LeaseOptions {
  readonly ttlMs: number;
}

interface Dependencies extends RequestDependencies {
  readonly requests: LockRequests;
  /** Whether the service still grants locks. */
  readonly isOpen: () => boolean;
}

/**
 * Takes over a lock that was detached.
 *
 * @throws LockNotAttachedError, LockStoreUnavailableError, LockServiceClosedError
 */
export async function attach(
  detached: DetachedLock,
  request: AttachRequest,
  dependencies: Dependencies,
): Promise<Lease> {
  const { store, keeper, scheduler, events, options, requests, isOpen } = dependencies;
  const { keys, mode, places = 1, fencingToken, keptForMs, untilMs } = detached;
  const { ttlMs } = request;
  const token = requests.newToken({ mode, places });
  const transfer = (from: string, to: string, forMs: number): Promise<TransferOutcome> =>
    transferAll(store, { keys, token: from, to, ttlMs: forMs, lastToken: fencingToken });
  /**
   * The lock may be ours while no caller has it. Puts it back under its old token, so that another try with the text
   * finds it. This request arrives after the one without a reply, over the same connection. If that one is carried out
   * even later, the clean-up frees the keys.
   */
  const putBack = (): void => {
    const returned = transfer(token, detached.token, keptForMs).then(() => {
      keeper.discard({ keys, token }, ttlMs);
    });
    void requests.pending.add(returned);
  };
  const unavailable = ({ nodes }: Unavailable): LockStoreUnavailableError => {
    const operation = 'attach';
    if (events.isHeard('unavailable')) events.emit('unavailable', { keys, mode, operation, nodes });
    return new LockStoreUnavailableError({ operation, keys, nodes });
  };
  const sentAt = scheduler.runtime.now();
  const outcome = await transfer(detached.token, token, ttlMs);
  const now = scheduler.runtime.now();
  if (outcome.status === 'lost')
    throw new LockNotAttachedError({ keys, fencingToken, reason: whyLost(outcome, now, untilMs) });
  if (outcome.status === 'unavailable') {
    if (outcome.sent !== false) putBack();
    throw unavailable(outcome);
  }
  const elapsed = elapsedMs(sentAt, now);
  const isInTime = elapsed < validityMs(ttlMs, options.clockDrift);
  if (!isInTime || !isOpen()) {
    putBack();
    throw isInTime ? new LockServiceClosedError(keys) : unavailable(tooLate(elapsed, ttlMs));
  }
  const grant: Grant = { keys, token, ttlMs, sentAt, fencingToken };
  return keeper.adopt(grant, request, now);
}

/** The store does not know what was before a key was free. */
function whyLost(
  { reason }: TransferOutcome & { readonly status: 'lost' },
  { wallMs }: Instant,
  untilMs: number,
): NotAttachedReason {
  if (reason !== 'gone') return reason;
  return wallMs >= untilMs ? 'expired' : 'released-elsewhere';
}
