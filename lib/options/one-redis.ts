import { LockConfigurationError } from '../errors.js';
import type { Location } from './location.js';

/**
 * Over several masters and in the database of a driver there are exclusive locks, and nothing else. Masters would have to agree on more
 * than one holder, and a driver has three operations on one key.
 *
 * @param what the option, call or decorator that needs one Redis
 * @throws LockConfigurationError where the locks are kept on several masters, or by a driver
 */
export function needsOneRedis(what: string, location: Location): void {
  const elsewhere = insteadOfOneRedis(location);
  if (elsewhere === undefined) return;
  throw new LockConfigurationError(
    `${what} needs one Redis, and option ${elsewhere}. Use a second, named service on one Redis: ` +
      "LockModule.forRoot({ name: 'single', redis: 'redis://…' }), chosen by the decorator's option \"instance\" or by " +
      "@InjectLockService('single').",
  );
}

/** The same, for what works over several masters, too. */
export function needsRedis(what: string, location: Location): void {
  if (location.kind === 'driver') needsOneRedis(what, location);
}

function insteadOfOneRedis(location: Location): string | undefined {
  if (location.kind === 'driver')
    return '"store" is a driver, whose locks are exclusive and have no fencing tokens';
  if (location.kind !== 'redis' || location.redis.length === 1) return undefined;
  return `"redis" lists ${String(location.redis.length)} masters, over which locks are exclusive`;
}
