import { Injectable, type CallHandler, type ExecutionContext } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { isObservable, Observable, of, type Subscription } from 'rxjs';
import { HandlerFrame } from '../decorators/handler-frame.js';
import { onLocked } from '../decorators/locked-call.js';
import type { LockedMethod } from '../decorators/locked-method.js';
import { LockError } from '../errors.js';
import type { RequestValues } from '../key/index.js';
import type { LockService } from '../lock.service.js';
import { answerFor } from './answer-for.js';
import { requestValues } from './request-values.js';
import { responseEnd } from './response-end.js';

/**
 * Runs a handler under its lock, whatever the transport. To change one decision for an application or a module, extend this class,
 * override a protected method, and provide it: `{ provide: LockHandlerRunner, useClass: MyRunner }`.
 */
@Injectable()
export class LockHandlerRunner {
  readonly #moduleRef: ModuleRef;

  constructor(moduleRef: ModuleRef) {
    this.#moduleRef = moduleRef;
  }

  /**
   * The handler's stream, under the lock: acquired before the handler's other interceptors and pipes when the key needs only the
   * request, and after the pipes otherwise; given back when the stream has ended and the handler's work is over.
   */
  run(locked: LockedMethod, context: ExecutionContext, next: CallHandler): Observable<unknown> {
    // Applied twice, by the application too: the outer one has opened the frame.
    if (HandlerFrame.current()?.awaits(locked) === true) return next.handle();
    return new Observable((subscriber) => {
      const frame = new HandlerFrame(locked, this.serviceOf(locked), this.requestOf(context));
      let inner: Subscription | undefined;
      let last: unknown;
      let left = false;
      const isGone = (): boolean => subscriber.closed;

      const fail = (error: unknown): void => {
        void this.toAnswer(error, context).then((answer) => {
          subscriber.error(answer);
        });
      };
      /** Gives the lock back when all that works under it has ended; what becomes of it is told by signal, event and log. */
      const leave = (end: Promise<void> = Promise.resolve()): void => {
        if (left) return;
        left = true;
        // The end of a response ends the iteration that fed it, even if nobody asked the iterator to return.
        const work = locked.kind === 'iterable' ? end : Promise.all([end, frame.settled()]);
        work.then(() => frame.finish()).catch(() => undefined);
      };
      const onError = async (error: unknown): Promise<void> => {
        if (frame.isRunning) leave();
        else error = await frame.fail(error);
        fail(error);
      };
      const onComplete = async (): Promise<void> => {
        const end = responseEnd(context, last, frame.args);
        // The work goes on after its stream has ended (a timeout, say), or in the response: it keeps the lock, nobody waits for it.
        if (frame.isRunning || end !== undefined) leave(end);
        else await frame.finish();
        subscriber.complete();
      };

      const start = async (): Promise<void> => {
        if (!locked.needsArguments) {
          const answer = await acquireFirst(frame);
          if (answer !== undefined) {
            inner = answer.subscribe(subscriber);
            return;
          }
        }
        if (isGone()) {
          await frame.finish();
          return;
        }
        inner = frame.inside(() =>
          next.handle().subscribe({
            next: (value: unknown) => {
              last = value;
              subscriber.next(value);
            },
            error: (error: unknown) => void onError(error),
            complete: () => {
              onComplete().catch(fail);
            },
          }),
        );
        if (isGone()) inner.unsubscribe();
      };
      start().catch(fail);
      return () => {
        inner?.unsubscribe();
        leave();
      };
    });
  }

  /** The service that the method's `instance` option names. */
  protected serviceOf(locked: LockedMethod): LockService {
    return this.#moduleRef.get<LockService>(locked.slot.token, { strict: false });
  }

  /** What `<params.id>`, `<body.id>`, `<query.id>`, `<headers.x>` and `<user.id>` mean for this call. */
  protected requestOf(context: ExecutionContext): RequestValues {
    return requestValues(context);
  }

  /** What a call of this transport fails with. Errors of others pass. */
  protected async toAnswer(error: unknown, context: ExecutionContext): Promise<unknown> {
    return error instanceof LockError ? answerFor(error, context) : error;
  }
}

/** Acquires before the handler is called; answers in its place when somebody else holds the lock and `onLocked` says so. */
async function acquireFirst(frame: HandlerFrame): Promise<Observable<unknown> | undefined> {
  try {
    await frame.acquire();
    return undefined;
  } catch (error) {
    const { answer } = (await onLocked(frame.locked, [], error)) as { answer: unknown };
    return isObservable(answer) ? answer : of(answer);
  }
}
