import {
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { catchError, defer, mergeMap, throwError, type Observable } from 'rxjs';
import { LockError } from '../../errors.js';
import { transportOf } from '../transports/transport-of.js';

/**
 * Gives lock errors of handlers, pipes and services the form of their transport, and `Retry-After` under any filter. `LockModule` provides
 * it for the whole application; where Nest applies nothing global (gateways of Nest 11, hybrid applications without `inheritAppConfig`),
 * say `@UseInterceptors(LockErrorInterceptor)`.
 */
@Injectable()
export class LockErrorInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next
      .handle()
      .pipe(
        catchError((error: unknown) =>
          error instanceof LockError
            ? defer(async () => transportOf(context).failureOf(error, context)).pipe(
                mergeMap((answer) => throwError(() => answer)),
              )
            : throwError(() => error),
        ),
      );
  }
}
