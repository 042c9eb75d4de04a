import { Logger } from '@nestjs/common';
import { LockError, type LockErrorBody } from '../errors.js';
import type { LockErrorOptions } from './lock-module-options.js';

const logger = new Logger('Holdfast');

/** The `errors` option as a function over whatever was thrown. */
export function errorPresenter({ exposeKeys, body: change }: LockErrorOptions): <E>(error: E) => E {
  return (error) => {
    if (error instanceof LockError) {
      error.presentAs((body) => {
        const named =
          exposeKeys === true && error.keys.length > 0 ? { ...body, keys: error.keys } : body;
        return change === undefined ? named : changed(change, error, named);
      });
    }
    return error;
  };
}

/** A fault in the application's function must not hide what happened to the lock. */
function changed(
  change: NonNullable<LockErrorOptions['body']>,
  error: LockError,
  body: LockErrorBody,
): LockErrorBody {
  try {
    const result = change(error, body);
    if (Number.isInteger(result.statusCode)) return result;
    logger.error(
      'Option "errors.body" returned no body with a "statusCode": the usual one is sent',
    );
  } catch (fault) {
    logger.error('Option "errors.body" threw: the usual body is sent', fault);
  }
  return body;
}
