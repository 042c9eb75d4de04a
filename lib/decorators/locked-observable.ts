import {
  EMPTY,
  from,
  isObservable,
  Observable,
  of,
  Subscription,
  type ObservableInput,
} from 'rxjs';
import type { Holding } from './holding.js';
import type { LockedCall } from './locked-call.js';
import { observableOf } from './return-kind.js';

/** An Observable: locked from its subscription to its end, for each subscriber. */
export function lockedObservable(call: LockedCall): Observable<unknown> {
  return new Observable((subscriber) => {
    const gone = new AbortController();
    const inner = new Subscription();
    let holding: Holding | undefined;
    const isGone = (): boolean => subscriber.closed;

    const fail = async (error: unknown): Promise<void> => {
      const own = holding === undefined ? error : await holding.fail(error);
      subscriber.error(own);
    };
    const complete = async (): Promise<void> => {
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
      const source = await observableOf(call, call.invoke(held));
      if (isGone()) return;
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
    };

    start().catch(fail);
    return () => {
      gone.abort();
      inner.unsubscribe();
      // Nobody listens any more; a loss was told by signal and event.
      holding?.finish().catch(() => undefined);
    };
  });
}

const asObservable = (answer: unknown): Observable<unknown> =>
  isObservable(answer) || answer instanceof Promise
    ? from(answer as ObservableInput<unknown>)
    : of(answer);
