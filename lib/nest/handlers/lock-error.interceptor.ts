import {
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { catchError, defer, mergeMap, throwError, type Observable } from 'rxjs';
import { LockError } from '../../errors.js';
import { transportOf } from '../transports/transport-of.js';

/** Calls that one of them sees: the first is the outermost, and whatever lies within sees the errors as they are. */
const seen = new WeakSet<ExecutionContext>();

/**
 * Gives lock errors of handlers, pipes and services the form of their transport, and `Retry-After` under any filter. `LockModule` provides
 * it for the whole application, and puts it on controllers of microservices, for hybrid applications without `inheritAppConfig`. On gateways
 * of Nest 11, where Nest applies nothing global, say `@UseInterceptors(LockErrorInterceptor)`.
 */
@Injectable()
export class LockErrorInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (seen.has(context)) return next.handle();
    seen.add(context);
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
