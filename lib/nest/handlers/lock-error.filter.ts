import 'reflect-metadata';
import {
  Catch,
  Inject,
  Injectable,
  Optional,
  type ArgumentsHost,
  type ExceptionFilter,
  type Type,
} from '@nestjs/common';
import { DiscoveryService, HttpAdapterHost, ModuleRef, type ApplicationConfig } from '@nestjs/core';
import { LockError } from '../../errors.js';
import { reportFault } from '../transports/faults.js';
import { transportOf } from '../transports/transport-of.js';

/** The metadata of `@Catch` with the classes of a filter. */
const CATCHES = '__filterCatchExceptions__';

/** The configuration of the application, by what a call has of its own beside its data. */
export const configurations = new WeakMap<object, ApplicationConfig>();

export const callOf = (host: ArgumentsHost): object =>
  host.getArgByIndex<object | undefined>(1) ?? {};

/** Whether Nest would ask the filter about the error. */
function catches(filter: ExceptionFilter, error: unknown): boolean {
  const classes = (Reflect.getMetadata(CATCHES, filter.constructor) ?? []) as readonly Type[];
  return classes.length === 0 || classes.some((each) => error instanceof each);
}

/**
 * Sets `Retry-After` on lock errors that no interceptor sees: those of guards, middleware and streamed bodies. It
 * leaves the answer to the filter that the application provides as `APP_FILTER`, or else to Nest. Filters of
 * `useGlobalFilters`, controllers and methods run before this one.
 *
 * `LockModule` provides it for the whole application. Nest applies nothing global to gateways, nor to hybrid
 * applications without `inheritAppConfig`: use `@UseFilters(LockErrorFilter)` there.
 */
@Catch(LockError)
@Injectable()
export class LockErrorFilter implements ExceptionFilter<LockError> {
  readonly #moduleRef: ModuleRef | undefined;

  /**
   * @param moduleRef of the module that uses the filter. Without it, the application is the one that was noted for the call
   */
  constructor(@Optional() @Inject(ModuleRef) moduleRef?: ModuleRef) {
    this.#moduleRef = moduleRef;
  }

  catch(error: LockError, host: ArgumentsHost): unknown {
    const transport = transportOf(host);
    transport.announce(error, host);
    // As in Nest, the last one that fits is used.
    const filter = this.#applications(host).findLast(
      (each) => !(each instanceof LockErrorFilter) && catches(each, error),
    );
    if (filter !== undefined) return filter.catch(error, host) as unknown;
    reportFault(error);
    return transport.respond(error, host, this.#moduleRef?.get(HttpAdapterHost, { strict: false }));
  }

  /** The filters that the application provides. */
  #applications(host: ArgumentsHost): readonly ExceptionFilter[] {
    if (this.#moduleRef === undefined)
      return configurations.get(callOf(host))?.getGlobalFilters() ?? [];
    return this.#moduleRef
      .get(DiscoveryService, { strict: false })
      .getProviders()
      .filter(({ subtype }) => subtype === 'filter')
      .map(({ instance }) => instance as ExceptionFilter);
  }
}
