import type { CallHandler } from '@nestjs/common';
import { isObservable, Observable, of, Subscription } from 'rxjs';
import { HandlerFrame, type HandlerCall } from '../methods/handler-frame.js';
import { transportOf } from '../transports/transport-of.js';
import { convertLockErrors } from './lock-error.interceptor.js';

/**
 * The handler's stream, under its lock, for every transport. If the key needs only the request, the lock is acquired
 * before the handler's other interceptors and pipes, otherwise after the pipes. It is released when the stream has ended
 * and the handler's work is over.
 */
export function runHandler(call: HandlerCall, next: CallHandler): Observable<unknown> {
  const { locked, context } = call;
  const transport = transportOf(context);
  transport.keepMessages(context);
  const handled = new Observable((subscriber) => {
    const frame = new HandlerFrame(call);
    const inner = new Subscription();
    /** The response: kept until the lock is released, unless it is one of a stream of responses. */
    let answer: { readonly value: unknown } | undefined;

    const passOn = (): void => {
      if (answer !== undefined) subscriber.next(answer.value);
    };

    const fail = async (error: unknown): Promise<void> => {
      let own = error;
      // Work that continues after its stream has ended (a timeout, for instance) keeps the lock, and this response
      // does not wait for it.
      if (frame.isRunning) frame.leave();
      else own = await frame.fail(error);
      subscriber.error(own);
    };
    const complete = async (): Promise<void> => {
      const { args } = frame;
      const { propertyKey } = locked;
      const end = transport.responseEnd(context, { value: answer?.value, args, propertyKey });
      if (end !== undefined || frame.isRunning) frame.leave(end);
      else await frame.finish();
      passOn();
      subscriber.complete();
    };
    const start = async (): Promise<void> => {
      const refusal = locked.needsArguments ? undefined : await acquireFirst(frame);
      if (subscriber.closed) return;
      const subscribe = (): Subscription =>
        (refusal ?? next.handle()).subscribe({
          next: (value) => {
            if (locked.kind === 'observable') subscriber.next(value);
            else {
              passOn();
              answer = { value };
            }
          },
          error: (error: unknown) => void fail(error),
          complete: () => {
            complete().catch(fail);
          },
        });
      inner.add(frame.inside(subscribe));
    };

    start().catch(fail);
    return () => {
      inner.unsubscribe();
      frame.leave();
    };
  });
  return handled.pipe(convertLockErrors(context));
}

/**
 * Acquires before the handler is called. When another caller holds the lock, the result of `onLocked` replaces that of
 * the handler.
 */
async function acquireFirst(frame: HandlerFrame): Promise<Observable<unknown> | undefined> {
  try {
    await frame.acquire();
    return undefined;
  } catch (error) {
    const { answer } = await frame.call.locked.refused([], error);
    return isObservable(answer) ? answer : of(answer);
  }
}
