import {
  Inject,
  Injectable,
  Optional,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import type { Observable } from 'rxjs';
import { LOCK_FEATURE, type LockFeature } from '../methods/lock-feature.js';
import { lockedMethodOf } from '../methods/locked-methods-of.js';
import { importRemedy } from '../methods/service-slot.js';
import { LockHandlerRunner } from './lock-handler.runner.js';

/** Nest prints it when it cannot inject, so it names the remedy. */
const RUNNER = Symbol(`what locks handlers: ${importRemedy()}`);

/**
 * Takes the lock of handlers that have `@WithLock`, which puts it first among their interceptors. `LockHandlerRunner`
 * decides how.
 */
@Injectable()
export class LockInterceptor implements NestInterceptor {
  @Inject(LockHandlerRunner)
  private readonly [RUNNER]!: LockHandlerRunner;

  /** Nest creates an interceptor for each module. */
  @Optional()
  @Inject(LOCK_FEATURE)
  private readonly [LOCK_FEATURE]?: LockFeature;

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const locked = lockedMethodOf(context.getHandler());
    return locked === undefined
      ? next.handle()
      : this[RUNNER].run(locked, context, next, this[LOCK_FEATURE]);
  }
}
