import type { CallHandler, ExecutionContext } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { isObservable, Observable, of, Subscription } from 'rxjs';
import { HandlerFrame } from '../methods/handler-frame.js';
import type { LockFeature } from '../methods/lock-feature.js';
import type { LockedMethod } from '../methods/locked-method.js';
import type { LockService } from '../lock.service.js';
import { getLockServiceToken } from '../tokens.js';
import { transportOf } from '../transports/transport-of.js';
import { convertLockErrors } from './lock-error.interceptor.js';

interface HandlerCall {
  readonly context: ExecutionContext;
  readonly next: CallHandler;
  /** The defaults of the handler's module, from `LockModule.forFeature`. */
  readonly feature: LockFeature | undefined;
  readonly moduleRef: ModuleRef;
}

/**
 * The handler's stream, under its lock, for every transport. If the key needs only the request, the lock is acquired
 * before the handler's other interceptors and pipes, otherwise after the pipes. It is released when the stream has ended
 * and the handler's work is over.
 */
export function runHandler(
  locked: LockedMethod,
  { context, next, feature, moduleRef }: HandlerCall,
): Observable<unknown> {
  // Applied twice, once by the application: the outer interceptor has opened the frame.
  if (HandlerFrame.of(locked)?.isOpen === true) return next.handle();
  const transport = transportOf(context);
  transport.keepMessages(context);
  const handled = new Observable((subscriber) => {
    const token = getLockServiceToken(locked.slot.serviceName);
    const service = moduleRef.get<LockService>(token, { strict: false });
    const frame = new HandlerFrame({ locked, service, context, feature });
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
      const refusal = locked.needsArguments ? undefined : await acquireFirst(locked, frame);
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
async function acquireFirst(
  locked: LockedMethod,
  frame: HandlerFrame,
): Promise<Observable<unknown> | undefined> {
  try {
    await frame.acquire();
    return undefined;
  } catch (error) {
    const { answer } = await locked.refused([], error);
    return isObservable(answer) ? answer : of(answer);
  }
}
