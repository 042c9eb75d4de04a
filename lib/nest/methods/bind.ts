import type { LockService } from '../lock.service.js';
import { refuseRawPaths } from '../handlers/raw-paths.js';
import { featureOf } from './lock-feature.js';
import { lockedMethodsOf } from './locked-methods-of.js';

/**
 * Gives an object the service for those of its `@WithLock` methods that ask for a service of that name.
 *
 * @throws LockConfigurationError when one of them cannot work
 */
export function bindLockedMethods(instance: object, service: LockService): void {
  for (const locked of lockedMethodsOf(instance)) {
    const { slot } = locked;
    locked.check(instance);
    if (slot.serviceName !== service.name) continue;
    refuseRawPaths(instance, locked);
    service.checkOptions(locked, featureOf(instance));
    slot.bind(instance, service);
  }
}
