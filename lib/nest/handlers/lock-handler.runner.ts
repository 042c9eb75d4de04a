import { Injectable, type CallHandler, type ExecutionContext } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { isObservable, Observable, of, Subscription } from 'rxjs';
import { HandlerFrame } from '../methods/handler-frame.js';
import { onLocked } from '../methods/locked-call.js';
import type { LockFeature } from '../methods/lock-feature.js';
import type { LockedMethod } from '../methods/locked-method.js';
import { LockError } from '../../errors.js';
import type { RequestValues } from '../../key/index.js';
import type { LockService } from '../lock.service.js';
import { transportOf } from '../transports/transport-of.js';

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
   *
   * @param feature what the handler's module says, by `LockModule.forFeature`
   */
  run(
    locked: LockedMethod,
    context: ExecutionContext,
    next: CallHandler,
    feature?: LockFeature,
  ): Observable<unknown> {
    // Applied twice, by the application too: the outer one has opened the frame.
    if (HandlerFrame.current()?.fits(locked) === true) return next.handle();
    const transport = transportOf(context);
    return new Observable((subscriber) => {
      const frame = new HandlerFrame(locked, this.serviceOf(locked), {
        request: this.requestOf(context),
        className: context.getClass().name,
        feature,
        endsUnsubscribed: transport.endsUnsubscribed(context),
        watchClient: (gone) => transport.watchClient(context, gone),
      });
      const inner = new Subscription();
      /** The answer: held back until the lock is given back, unless it is one of a stream of them. */
      let answer: { readonly value: unknown } | undefined;

      const passOn = (): void => {
        if (answer !== undefined) subscriber.next(answer.value);
      };

      const fail = async (error: unknown): Promise<void> => {
        let own = error;
        // Work that goes on after its stream has ended (a timeout, say) keeps the lock, and nobody waits for it.
        if (frame.isRunning) frame.leave();
        else own = await frame.fail(error);
        subscriber.error(await this.#answer(own, context));
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
  }

  /** The service that the method's `instance` option names. */
  protected serviceOf(locked: LockedMethod): LockService {
    return this.#moduleRef.get<LockService>(locked.slot.token, { strict: false });
  }

  /** What `<params.id>`, `<body.id>`, `<query.id>`, `<headers.x>` and `<user.id>` mean for this call. */
  protected requestOf(context: ExecutionContext): RequestValues {
    return transportOf(context).requestValues(context);
  }

  /** What a call of this transport fails with. Errors of others pass. */
  protected async toAnswer(error: unknown, context: ExecutionContext): Promise<unknown> {
    return error instanceof LockError ? transportOf(context).failureOf(error, context) : error;
  }

  /** A fault of an override answers the call as well. */
  async #answer(error: unknown, context: ExecutionContext): Promise<unknown> {
    try {
      return await this.toAnswer(error, context);
    } catch (fault) {
      return fault;
    }
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
