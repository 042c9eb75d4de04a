import {
  EMPTY,
  from,
  isObservable,
  Observable,
  of,
  Subscription,
  type ObservableInput,
} from 'rxjs';
import { onAbort } from '../../queue/on-abort.js';
import type { Holding } from '../../sections/holding.js';
import type { LockedCall } from './locked-call.js';
import { observableOf } from './return-kind.js';

/**
 * An Observable: locked from its subscription to its end, for each subscriber. Unsubscribing ends it, except in a handler: a timeout,
 * or a client that goes away, does not end work that runs.
 */
export function lockedObservable(call: LockedCall): Observable<unknown> {
  return new Observable((subscriber) => {
    const gone = new AbortController();
    const inner = new Subscription();
    let holding: Holding | undefined;
    let hasEnded = false;
    let ignoreLoss: (() => void) | undefined;
    const isGone = (): boolean => subscriber.closed;

    const fail = async (error: unknown): Promise<void> => {
      if (hasEnded) return;
      hasEnded = true;
      const own = holding === undefined ? error : await holding.fail(error);
      subscriber.error(own);
    };
    const complete = async (): Promise<void> => {
      if (hasEnded) return;
      hasEnded = true;
      ignoreLoss?.();
      await holding?.finish();
      subscriber.complete();
    };
    const start = async (): Promise<void> => {
      const entry = await call.enter(gone.signal);
      if (entry.status === 'locked') {
        const nothing = call.isHandlers ? of(undefined) : EMPTY;
        inner.add((entry.skip ? nothing : asObservable(entry.answer)).subscribe(subscriber));
        return;
      }
      const held = entry.holding;
      holding = held;
      if (isGone()) {
        await held.finish();
        return;
      }
      const { lock } = held.section;
      const source = await observableOf(call, call.invoke(held));
      lock.assertHeld();
      // Work that outlives its subscriber may have begun with the call, and is over when its source ends.
      if (isGone() && !call.outlivesSubscriber) return;
      const subscribe = (): Subscription =>
        source.subscribe({
          next: (value) => {
            subscriber.next(value);
          },
          error: (error: unknown) => void fail(error),
          complete: () => {
            complete().catch(fail);
          },
        });
      inner.add(call.inside(held, subscribe));
      // Events may never end by themselves, and the next holder's have begun.
      ignoreLoss = onAbort(lock.signal, () => {
        inner.unsubscribe();
        void fail(lock.signal.reason);
      });
    };
    const end = (): void => {
      ignoreLoss?.();
      inner.unsubscribe();
      // Nobody listens any more; a loss was told by signal and event.
      holding?.finish().catch(() => undefined);
    };

    start().catch(fail);
    return () => {
      gone.abort();
      if (hasEnded || holding === undefined || !call.outlivesSubscriber) {
        end();
        return;
      }
      // Without its lock (after `maxHold`, say) nothing is to go on.
      const { signal } = holding.section.lock;
      if (signal.aborted) end();
      else onAbort(signal, end);
    };
  });
}

const asObservable = (answer: unknown): Observable<unknown> =>
  isObservable(answer) || answer instanceof Promise
    ? from(answer as ObservableInput<unknown>)
    : of(answer);
