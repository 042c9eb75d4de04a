import { Logger, type ExecutionContext } from '@nestjs/common';
import { throwError } from 'rxjs';
import { LockLostError, type LockError } from '../../errors.js';
import { rpcException } from './faults.js';
import { otherTransport, type Transport } from './transport.js';

/** What `@EventPattern` notes on a handler. */
const [HANDLER_TYPE, EVENT, PATTERN] = ['microservices:handler_type', 2, 'microservices:pattern'];

const logger = new Logger('Holdfast');

/** The sender of an event gets no answer, and Nest 11 logs nothing. */
function reportEvent(error: LockError, context: ExecutionContext): void {
  if (error instanceof LockLostError) return; // is logged as such, and its work ran
  const handler = context.getHandler();
  if (Reflect.getMetadata(HANDLER_TYPE, handler) !== EVENT) return;
  const patterns = [Reflect.getMetadata(PATTERN, handler) as unknown].flat();
  const pattern = patterns.map((each) => JSON.stringify(each)).join(', ');
  logger.warn(
    `${context.getClass().name}.${handler.name} did not handle an event ${pattern}, and is not given it again unless the broker does so: ` +
      error.detail,
  );
}

/** Microservices; those over gRPC have a file of their own. */
export const rpcTransport: Transport = {
  ...otherTransport,

  requestValues: (context) => ({ body: context.switchToRpc().getData<unknown>() }),

  failureOf: (error, context) => {
    reportEvent(error, context);
    return rpcException(error, error.reply);
  },

  // A microservice sends what its filter's stream fails with.
  respond: (error) => throwError(() => error.reply),

  // Nest joins what the handlers of an event return, and waits for a value of each.
  sendsEach: (context) => Reflect.getMetadata(HANDLER_TYPE, context.getHandler()) !== EVENT,
};
