import {
  LockDeadlockError,
  LockNotAcquiredError,
  LockServiceClosedError,
  LockStoreUnavailableError,
} from '../errors.js';
import { ACQUIRE, HOLD } from '../observe/channels.js';
import { inPlaces, type AcquireContext } from '../observe/contexts.js';
import type { LockEventHub } from '../observe/lock-events.js';
import { traced } from '../observe/traced.js';
import type { LockRequest } from '../queue/caller.js';
import { elapsedMs } from '../time/clock.js';
import type { Runtime } from '../time/runtime.js';

/** Whether there are subscribers to calls for locks, or to how long they are held. */
export const isTraced = (): boolean => ACQUIRE.hasSubscribers || HOLD.hasSubscribers;

/** Publishes a call for a lock, from its beginning to its end. */
export function tracedCall<T>(
  call: Pick<LockRequest, 'keys' | 'mode' | 'places' | 'origin' | 'signal'>,
  { events, runtime }: { readonly events: LockEventHub; readonly runtime: Runtime },
  ask: (context: AcquireContext | undefined) => Promise<T>,
): Promise<T> {
  if (!ACQUIRE.hasSubscribers) return ask(undefined);
  const { service } = events;
  const { keys, mode, origin } = call;
  const context: AcquireContext = {
    ...(service !== undefined && { service }),
    ...{ keys, mode, ...inPlaces(call), ...origin },
    ...{ nested: false, hasWaited: false },
  };
  const since = runtime.now();
  return traced(ACQUIRE, context, async () => {
    try {
      const result = await ask(context);
      context.outcome = 'granted';
      return result;
    } catch (error) {
      context.outcome = outcomeOf(error, call.signal);
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
