import { EMPTY, Observable, Subscription } from 'rxjs';
import { Logger } from '@nestjs/common';
import { onAbort } from '../../queue/on-abort.js';
import { Scope } from '../../sections/scope.js';
import type { LockedCall } from './locked-call.js';
import { asObservable, streamOf } from './return-kind.js';

const logger = new Logger('Holdfast');

/**
 * An Observable: locked from its subscription to its end, for each subscriber. Unsubscribing ends it, except in a handler: a timeout,
 * or a client that goes away, does not end work that runs.
 */
export function lockedObservable(call: LockedCall): Observable<unknown> {
  return new Observable((subscriber) => {
    const gone = new AbortController();
    const inner = new Subscription();
    let scope: Scope | undefined;
    let ignoreLoss = (): void => undefined;
    const isGone = (): boolean => subscriber.closed;
    // In a handler, work continues after that, and keeps the lock, unless it is a feed.
    const { frame } = call;
    const endsUnsubscribed = frame?.transport.endsUnsubscribed(frame.call.context) ?? true;

    const fail = async (error: unknown): Promise<void> => {
      ignoreLoss();
      subscriber.error(scope === undefined ? error : await scope.fail(error));
    };
    const complete = async (): Promise<void> => {
      ignoreLoss();
      await scope?.finish();
      subscriber.complete();
    };
    /** After a loss there is no subscriber to catch what the source throws. */
    const lose = (loss: unknown): void => {
      try {
        inner.unsubscribe();
      } catch (fault) {
        logger.error(`The Observable of ${call.locked.name} threw when its lock was lost`, fault);
      }
      void fail(loss);
    };
    const start = async (): Promise<void> => {
      const entry = await call.enter(gone.signal);
      if (!(entry instanceof Scope)) {
        const nothing = frame?.nothing ?? EMPTY;
        inner.add((entry.skip ? nothing : asObservable(entry.answer)).subscribe(subscriber));
        return;
      }
      scope = entry;
      if (isGone()) {
        await entry.finish();
        return;
      }
      const source = await streamOf(call, entry, 'observable');
      // Work that outlives its subscriber may have begun with the call, and is over when its source ends.
      if (isGone() && endsUnsubscribed) return;
      const { lock } = entry;
      lock.assertHeld();
      // Events may never end by themselves, and those of the next holder have begun. Before the source begins: it may end at once.
      ignoreLoss = onAbort(lock.signal, () => {
        lose(lock.signal.reason);
      });
      const observer = {
        next: (value: unknown) => {
          subscriber.next(value);
        },
        error: (error: unknown) => void fail(error),
        complete: () => {
          complete().catch(fail);
        },
      };
      inner.add(call.inside(entry, () => source.subscribe(observer)));
    };

    start().catch(fail);
    return () => {
      gone.abort();
      // Without its lock (after `maxHold`, for instance) work that continues must not: the listener that was set when its
      // source began ensures that.
      if (scope !== undefined && !endsUnsubscribed) return;
      ignoreLoss();
      try {
        inner.unsubscribe();
      } finally {
        // No subscriber is left. A loss was reported by signal and event.
        scope?.finish().catch(() => undefined);
      }
    };
  });
}
