import {
  LockDeadlockError,
  LockNotAcquiredError,
  LockServiceClosedError,
  LockStoreUnavailableError,
} from '../errors.js';
import { ACQUIRE, HOLD } from '../observe/channels.js';
import type { AcquireContext } from '../observe/contexts.js';
import type { LockEventHub } from '../observe/lock-events.js';
import { traced } from '../observe/traced.js';
import type { LockRequest } from '../lease/lock-request.js';
import { elapsedMs } from '../time/clock.js';
import type { Runtime } from '../time/runtime.js';

/** Whether there are subscribers to calls for locks, or to how long they are held. */
export const isTraced = (): boolean => ACQUIRE.hasSubscribers || HOLD.hasSubscribers;

/** Publishes a call for a lock, from its beginning to its end. */
export function tracedCall<T>(
  request: LockRequest,
  { events, runtime }: { readonly events: LockEventHub; readonly runtime: Runtime },
  ask: () => Promise<T>,
): Promise<T> {
  if (!ACQUIRE.hasSubscribers) return ask();
  const { service } = events;
  const context: AcquireContext = {
    ...(service !== undefined && { service }),
    ...request.subject,
    ...{ nested: false, hasWaited: false },
  };
  request.observed = context;
  const since = runtime.now();
  return traced(ACQUIRE, context, async () => {
    try {
      const result = await ask();
      context.outcome = 'granted';
      return result;
    } catch (error) {
      context.outcome = outcomeOf(error, request.signal);
      throw error;
    } finally {
      context.waitedMs = Math.round(elapsedMs(since, runtime.now()));
    }
  });
}

function outcomeOf(error: unknown, signal: AbortSignal | undefined): AcquireContext['outcome'] {
  if (error instanceof LockNotAcquiredError) return 'refused';
  if (error instanceof LockStoreUnavailableError) return 'unavailable';
  if (error instanceof LockServiceClosedError) return 'closed';
  if (error instanceof LockDeadlockError) return 'deadlock';
  return signal?.aborted === true && error === signal.reason ? 'aborted' : 'failed';
}
