import { LockError, type LockErrorBody } from '../errors.js';
import type { Log } from '../observe/log.js';
import type { LockErrorOptions } from '../options/lock-module-options.js';

/** The `errors` option as a function over whatever was thrown. */
export function errorPresenter(
  { exposeKeys, body: change }: LockErrorOptions,
  log: Log,
): <E>(error: E) => E {
  return (error) => {
    if (error instanceof LockError) {
      error.presentAs((body) => {
        const named =
          exposeKeys === true && error.keys.length > 0 ? { ...body, keys: error.keys } : body;
        return change === undefined ? named : changed((usual) => change(error, usual), named, log);
      });
    }
    return error;
  };
}

/** A fault in the application's function must not hide what happened to the lock. */
function changed(
  change: (body: LockErrorBody) => LockErrorBody,
  body: LockErrorBody,
  log: Log,
): LockErrorBody {
  try {
    const result = change(body);
    const { statusCode } = result;
    // Others make Node fail, or the client wait for the response.
    if (Number.isInteger(statusCode) && statusCode >= 200 && statusCode <= 599) return result;
    log.error(
      'Option "errors.body" returned no body with a "statusCode" from 200 to 599: the usual one is sent',
    );
  } catch (fault) {
    log.error('Option "errors.body" threw: the usual body is sent', fault);
  }
  return body;
}
