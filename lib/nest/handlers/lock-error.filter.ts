import {
  Catch,
  Inject,
  Injectable,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import { DiscoveryService, HttpAdapterHost, ModuleRef } from '@nestjs/core';
import { LockError } from '../../errors.js';
import { catches } from './own-answers.js';
import { reportFault } from '../transports/faults.js';
import { transportOf } from '../transports/transport-of.js';

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
  readonly #moduleRef: ModuleRef;

  /** @param moduleRef of the module that uses the filter */
  constructor(@Inject(ModuleRef) moduleRef: ModuleRef) {
    this.#moduleRef = moduleRef;
  }

  catch(error: LockError, host: ArgumentsHost): unknown {
    const transport = transportOf(host);
    transport.announce(error, host);
    const filter = this.#applicationsFor(error);
    if (filter !== undefined) return filter.catch(error, host) as unknown;
    reportFault(error);
    return transport.respond(error, host, this.#moduleRef.get(HttpAdapterHost, { strict: false }));
  }

  /** The filter that the application provides for the error. As in Nest, the last one that fits is used. */
  #applicationsFor(error: LockError): ExceptionFilter | undefined {
    return this.#moduleRef
      .get(DiscoveryService, { strict: false })
      .getProviders()
      .filter(({ subtype }) => subtype === 'filter')
      .map(({ instance }) => instance as ExceptionFilter)
      .filter((filter) => !(filter instanceof LockErrorFilter) && catches(filter, error))
      .at(-1);
  }
}
