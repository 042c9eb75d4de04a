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
import { LOCK_FEATURE, type LockFeature } from '../methods/lock-feature.js';
import { lockedMethodOf } from '../methods/locked-methods-of.js';
import { runHandler } from './run-handler.js';

/**
 * Takes the lock of handlers that have `@WithLock`, which puts it first among their interceptors.
 */
@Injectable()
export class LockInterceptor implements NestInterceptor {
  readonly #moduleRef: ModuleRef;
  readonly #feature: LockFeature | undefined;

  /** Nest creates an interceptor for each module. */
  constructor(
    @Inject(ModuleRef) moduleRef: ModuleRef,
    @Optional() @Inject(LOCK_FEATURE) feature?: LockFeature,
  ) {
    this.#moduleRef = moduleRef;
    this.#feature = feature;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const locked = lockedMethodOf(context.getHandler());
    if (locked === undefined) return next.handle();
    return runHandler(locked, {
      context,
      next,
      feature: this.#feature,
      moduleRef: this.#moduleRef,
    });
  }
}
