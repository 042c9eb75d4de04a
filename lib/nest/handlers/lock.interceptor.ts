import {
  Inject,
  Injectable,
  Optional,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { Observable } from 'rxjs';
import type { LockService } from '../lock.service.js';
import { HandlerFrame } from '../methods/handler-frame.js';
import { LOCK_FEATURE, type LockFeature } from '../methods/lock-feature.js';
import { lockedMethodOf } from '../methods/locked-methods-of.js';
import { getLockServiceToken } from '../tokens.js';
import { runHandler } from './run-handler.js';

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
  private readonly feature?: LockFeature;

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const locked = lockedMethodOf(context.getHandler());
    // Applied twice, once by the application: the outer interceptor has opened the frame.
    if (locked === undefined || HandlerFrame.of(locked)?.isOpen === true) return next.handle();
    const token = getLockServiceToken(locked.slot.serviceName);
    const service = this.moduleRef.get<LockService>(token, { strict: false });
    return runHandler({ locked, service, context, feature: this.feature }, next);
  }
}
