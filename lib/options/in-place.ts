import { LockConfigurationError } from '../errors.js';

/** Has an error about options say where these stand. */
export function inPlace<T>(where: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw error instanceof LockConfigurationError
      ? new LockConfigurationError(`${where}: ${error.message}`)
      : error;
  }
}
