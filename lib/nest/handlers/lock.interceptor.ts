import {
  Inject,
  Injectable,
  Optional,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { ModuleRef, type DiscoveryService } from '@nestjs/core';
import { Observable, type Subscription } from 'rxjs';
import type { LockService } from '../lock.service.js';
import { HandlerFrame, type HandlerCall } from '../methods/handler-frame.js';
import { genuineFeature, LOCK_FEATURE } from '../methods/lock-feature.js';
import { lockedMethodOf, methodsOf } from '../methods/locked-methods-of.js';
import { asObservable } from '../methods/return-kind.js';
import { getLockServiceToken } from '../tokens.js';
import { transportOf } from '../transports/transport-of.js';
import { convertLockErrors } from './lock-error.interceptor.js';
import { enhancersOf, INTERCEPTORS } from './own-answers.js';

/**
 * Takes the lock of handlers that have `@WithLock`, which puts it first among their interceptors.
 */
@Injectable()
export class LockInterceptor implements NestInterceptor {
  @Inject(ModuleRef)
  private readonly moduleRef!: ModuleRef;

  /** Nest creates an interceptor for each module. */
  @Optional()
  @Inject(LOCK_FEATURE)
  private readonly feature?: unknown;

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const locked = lockedMethodOf(context.getHandler());
    if (locked === undefined) return next.handle();
    // Applied twice, once by the application: the outer interceptor has opened the frame.
    const frame = HandlerFrame.ofRequest(context);
    if (frame?.isBefore(this) === true) return frame.restore(() => next.handle());
    const token = getLockServiceToken(locked.slot.serviceName);
    const service = this.moduleRef.get<LockService>(token, { strict: false });
    const feature = genuineFeature(this.feature);
    return runHandler({ interceptor: this, locked, service, context, feature }, next);
  }
}

/** Behind an interceptor that may have queued the call. */
const restoring: NestInterceptor = {
  intercept(context, next) {
    const frame = HandlerFrame.ofRequest(context);
    return frame === undefined ? next.handle() : frame.restore(() => next.handle());
  },
};

/**
 * Puts one more interceptor behind each of those of locked methods: the next one may lock something, too, inside the lock of the method.
 * Call it before Nest makes handlers of them.
 */
export function restoreFrames(discovery: DiscoveryService): void {
  const all = [...discovery.getProviders(), ...discovery.getControllers()];
  for (const { metatype } of all)
    for (const { method } of methodsOf((metatype?.prototype ?? null) as object | null))
      if (lockedMethodOf(method) !== undefined) {
        const others = enhancersOf(method, INTERCEPTORS, restoring);
        const all = others.flatMap((each) => [each, restoring]);
        Reflect.defineMetadata(INTERCEPTORS, all, method);
      }
}

/**
 * The handler's stream, under its lock, for every transport. If the key of `@WithLock` needs only the request, the lock is
 * acquired before the handler's other interceptors and pipes, otherwise after the pipes. It is released when the stream has
 * ended and the handler's work is over.
 */
function runHandler(call: HandlerCall, next: CallHandler): Observable<unknown> {
  const { locked, context } = call;
  transportOf(context).keepMessages(context);
  const handled = new Observable((subscriber) => {
    const frame = new HandlerFrame(call);
    let last: unknown;
    /** Whether the last response is kept until the lock is released. */
    let isKept = false;

    const passOn = (): void => {
      if (isKept) subscriber.next(last);
      isKept = false;
    };
    const fail = async (error: unknown): Promise<void> => {
      subscriber.error(await frame.fail(error));
    };
    const complete = async (): Promise<void> => {
      await frame.complete(last);
      passOn();
      subscriber.complete();
    };
    const start = async (): Promise<void> => {
      // Once-only work asks for its lock itself: its record may answer a call that was refused.
      const isLater = locked.needsArguments || locked.decorator.isOnce === true;
      // Before the handler is called. The result of `onLocked` replaces that of the handler.
      const refusal = isLater
        ? undefined
        : await frame
            .inside(() => frame.acquire())
            .then(
              () => undefined,
              (error: unknown) => locked.refused([], error),
            );
      if (subscriber.closed) return;
      const answer = (): Observable<unknown> => {
        if (refusal === undefined) return next.handle();
        return refusal.skip ? frame.nothing : asObservable(refusal.answer);
      };
      const subscribe = (): Subscription =>
        answer().subscribe({
          next: (value) => {
            passOn();
            last = value;
            isKept = true;
            // Others may be waiting for each response of a stream.
            if (locked.kind === 'observable') passOn();
          },
          error: (error: unknown) => void fail(error),
          complete: () => {
            complete().catch(fail);
          },
        });
      subscriber.add(frame.inside(subscribe));
    };

    start().catch(fail);
    return () => {
      frame.leave();
    };
  });
  return handled.pipe(convertLockErrors(context));
}
