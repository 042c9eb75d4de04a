import { LockConfigurationError } from '../errors.js';
import type { Location } from './location.js';

/**
 * Over several masters there are exclusive locks, and nothing else: any other kind would need an agreement of the
 * masters on more than one holder.
 *
 * @param what the option, call or decorator that needs one Redis
 * @throws LockConfigurationError where the locks are kept on several masters
 */
export function refuseOverMasters(what: string, location: Location): void {
  if (location.kind !== 'redis' || location.redis.length === 1) return;
  const count = String(location.redis.length);
  throw new LockConfigurationError(
    `${what} needs one Redis, and option "redis" lists ${count} masters, over which locks are exclusive. Use a second, named service on ` +
      "one Redis: LockModule.forRoot({ name: 'single', redis: 'redis://…' }), chosen by the decorator's option \"instance\" or by " +
      "@InjectLockService('single').",
  );
}
