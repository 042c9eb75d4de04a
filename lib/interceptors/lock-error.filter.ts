import {
  Catch,
  Inject,
  Injectable,
  type ArgumentsHost,
  type ExceptionFilter,
  type Type,
} from '@nestjs/common';
import { BaseExceptionFilter, DiscoveryService, HttpAdapterHost } from '@nestjs/core';
import { throwError } from 'rxjs';
import { LockError } from '../errors.js';
import { setRetryAfter } from './answer-for.js';

/**
 * Sets `Retry-After` on lock errors that no interceptor sees, those of guards and middleware, and leaves the answer to whoever would
 * have given it: a filter that the application provides as `APP_FILTER`, or Nest. Filters of `useGlobalFilters`, controllers and
 * methods go before this one.
 */
@Catch(LockError)
@Injectable()
export class LockErrorFilter implements ExceptionFilter<LockError> {
  readonly #discovery: DiscoveryService;
  readonly #base: BaseExceptionFilter;

  constructor(
    @Inject(DiscoveryService) discovery: DiscoveryService,
    @Inject(HttpAdapterHost) host: HttpAdapterHost,
  ) {
    this.#discovery = discovery;
    this.#base = new BaseExceptionFilter(host.httpAdapter);
  }

  catch(error: LockError, host: ArgumentsHost): unknown {
    const type = host.getType<string>();
    if (type === 'rpc' || type === 'ws') return throwError(() => error);
    if (type !== 'http') throw error;
    setRetryAfter(error, host);
    const filter = this.#applications().find((each) => catches(each, error)) ?? this.#base;
    return filter.catch(error, host) as unknown;
  }

  /** The later one goes first, as in Nest. */
  #applications(): readonly ExceptionFilter[] {
    return this.#discovery
      .getProviders()
      .filter(
        ({ subtype, instance }) => subtype === 'filter' && !(instance instanceof LockErrorFilter),
      )
      .map(({ instance }) => instance as ExceptionFilter)
      .reverse();
  }
}

/** The name under which Nest keeps the classes of `@Catch`, learnt from what `@Catch` does. */
const [CATCHES] = Reflect.getOwnMetadataKeys(LockErrorFilter).filter(
  (key: string) =>
    Array.isArray(Reflect.getOwnMetadata(key, LockErrorFilter)) &&
    (Reflect.getOwnMetadata(key, LockErrorFilter) as unknown[])[0] === LockError,
) as string[];

function catches(filter: ExceptionFilter, error: LockError): boolean {
  const classes = (Reflect.getMetadata(CATCHES ?? '', filter.constructor) ?? []) as readonly Type[];
  return classes.length === 0 || classes.some((each) => error instanceof each);
}
