import {
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { catchError, tap, throwError, type MonoTypeOperatorFunction, type Observable } from 'rxjs';
import { LockError } from '../../errors.js';
import { transportOf } from '../transports/transport-of.js';

/** Gives the lock errors of a call the form of its transport. */
export const convertLockErrors = (context: ExecutionContext): MonoTypeOperatorFunction<unknown> =>
  catchError((error: unknown) => {
    if (!(error instanceof LockError)) return throwError(() => error);
    const failing = async (): Promise<never> => {
      throw await transportOf(context).failureOf(error, context);
    };
    return failing();
  });

/**
 * Calls that one of these interceptors has seen. The first one is the outermost. Everything inside it gets the errors
 * unchanged.
 */
const seen = new WeakSet<ExecutionContext>();

/**
 * Gives lock errors of handlers, pipes and services the form of their transport, and sets `Retry-After` under any
 * filter.
 *
 * `LockModule` puts it around all interceptors of the application: one of them may try again, or answer itself. For
 * hybrid applications without `inheritAppConfig`, it also puts it on controllers of microservices. On gateways of Nest
 * 11, where Nest applies nothing global, use `@UseInterceptors(LockErrorInterceptor)`.
 */
@Injectable()
export class LockErrorInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (seen.has(context)) return next.handle();
    seen.add(context);
    const announce = (error: unknown): void => {
      if (error instanceof LockError) transportOf(context).announce(error, context);
    };
    return next.handle().pipe(tap({ error: announce }), convertLockErrors(context));
  }
}
