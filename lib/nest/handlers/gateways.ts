import 'reflect-metadata';
import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { LockError } from '../../errors.js';
import { reportFault } from '../transports/faults.js';
import { enhance } from './enhance.js';
import { answerSocket } from '../transports/ws.js';

/** Where `@WebSocketGateway` notes that a class is one. */
const GATEWAY = 'websockets:is_gateway';

@Catch(LockError)
class GatewayFilter implements ExceptionFilter<LockError> {
  async catch(error: LockError, host: ArgumentsHost): Promise<void> {
    reportFault(error);
    await answerSocket(error, host);
  }
}

/** One filter for all applications of the process: it knows nothing of any. */
const filter = new GatewayFilter();

export const isGateway = (type: object): boolean => Reflect.hasMetadata(GATEWAY, type);

/**
 * Answers lock errors of gateways, including those of their guards and services. Nest applies filters of the
 * application to no gateway. It reports our errors as "Internal server error" there, and logs nothing.
 *
 * Filters that the application puts on a gateway run before this one. Call it before Nest connects the gateways, which
 * it does when the application is initialized.
 */
export function answerOnGateways(discovery: DiscoveryService): void {
  for (const { metatype } of discovery.getProviders()) {
    if (typeof metatype !== 'function' || !isGateway(metatype)) continue;
    enhance(metatype, '__exceptionFilters__', filter);
  }
}
