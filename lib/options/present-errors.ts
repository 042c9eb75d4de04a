import { LockError } from '../errors.js';
import type { LockErrorOptions } from './lock-module-options.js';

/** The `errors` option as a function over whatever was thrown. */
export function errorPresenter({ exposeKeys, body: change }: LockErrorOptions): <E>(error: E) => E {
  return (error) => {
    if (error instanceof LockError) {
      error.presentAs((body) => {
        const named =
          exposeKeys === true && error.keys.length > 0 ? { ...body, keys: error.keys } : body;
        return change === undefined ? named : change(error, named);
      });
    }
    return error;
  };
}
