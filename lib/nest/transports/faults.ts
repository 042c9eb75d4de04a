import { HttpException, Logger } from '@nestjs/common';
import { LockDeadlockError, type LockError } from '../../errors.js';

const logger = new Logger('Holdfast');

/**
 * Logs faults of the application itself. Responses to clients do not describe them, and Nest logs no `HttpException`.
 */
export function reportFault(error: LockError): void {
  if (error.getStatus() === 500 || error instanceof LockDeadlockError)
    logger.error(`${error.detail} See ${error.docs}`, error.stack);
}

/**
 * A lock error as the exception of another transport.
 *
 * @param answer what the client gets
 * @param load the class of its package: these packages are optional, and loaded when a call of theirs has failed
 */
export async function convert(
  error: LockError,
  answer: object,
  load: () => Promise<new (answer: object) => Error>,
): Promise<Error> {
  reportFault(error);
  const Exception = await load();
  const converted = new Exception(answer);
  converted.cause = error;
  return converted;
}

/** A lock error as microservices throw it. */
export const rpcException = (error: LockError, answer: object): Promise<Error> =>
  convert(error, answer, async () => (await import('@nestjs/microservices')).RpcException);

/** No client reads the response, but Nest logs errors that are no `HttpException`. */
const CLIENT_CLOSED_REQUEST = 499;

/** What ends a wait whose client has gone. */
export const clientGone = (): Error =>
  new HttpException('The client went away while it waited.', CLIENT_CLOSED_REQUEST);
