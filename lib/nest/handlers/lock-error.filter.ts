import {
  Catch,
  Inject,
  Injectable,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import { DiscoveryService, HttpAdapterHost, ModuleRef } from '@nestjs/core';
import { LockError } from '../../errors.js';
import { catches } from './catches.js';
import { reportFault } from '../transports/faults.js';
import { transportOf } from '../transports/transport-of.js';

/**
 * Sets `Retry-After` on lock errors that no interceptor sees, those of guards, middleware and streamed bodies, and leaves the answer to
 * whoever would have given it: a filter that the application provides as `APP_FILTER`, or Nest. Filters of `useGlobalFilters`,
 * controllers and methods go before this one. `LockModule` provides it for the whole application; where Nest applies nothing global
 * (gateways, hybrid applications without `inheritAppConfig`), say `@UseFilters(LockErrorFilter)`.
 */
@Catch(LockError)
@Injectable()
export class LockErrorFilter implements ExceptionFilter<LockError> {
  readonly #moduleRef: ModuleRef;

  /** Of whichever module it is used in. */
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

  /** The filter that the application provides for it; the later one goes first, as in Nest. */
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
