import { Logger } from '@nestjs/common';
import { LockDeadlockError, type LockError } from '../../errors.js';

const logger = new Logger('Holdfast');

/** Logs what is wrong in the application itself: the client is told nothing of it, and Nest logs no `HttpException`. */
export function reportFault(error: LockError): void {
  if (error.getStatus() === 500 || error instanceof LockDeadlockError)
    logger.error(error.detail, error.stack);
}

/**
 * A lock error as the exception of another transport.
 *
 * @param load the class of its package: these packages are optional, and loaded when a call of theirs has failed
 */
export async function convert(
  error: LockError,
  load: () => Promise<new (body: object) => Error>,
): Promise<Error> {
  reportFault(error);
  const Exception = await load();
  const converted = new Exception(error.reply);
  converted.cause = error;
  return converted;
}
