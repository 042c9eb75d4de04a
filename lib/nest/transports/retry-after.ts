import {
  LockDeadlockError,
  LockNotAcquiredError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  type LockError,
} from '../../errors.js';

/** A lock without TTL tells nothing; neither does an outage. */
const UNKNOWN_SECONDS = 1;

/** Whole seconds after which asking again may help, at least 1; `undefined` where asking again is not the answer. */
export function retryAfterSeconds(error: LockError): number | undefined {
  if (error instanceof LockNotAcquiredError) {
    const seconds = Math.ceil(error.retryAfterMs / 1_000);
    return Number.isFinite(seconds) ? Math.max(1, seconds) : UNKNOWN_SECONDS;
  }
  const passes =
    error instanceof LockStoreUnavailableError ||
    error instanceof LockServiceClosedError ||
    // The other one goes on.
    error instanceof LockDeadlockError;
  return passes ? UNKNOWN_SECONDS : undefined;
}
