import { inPlace } from '../../options/in-place.js';
import { refuseRawPaths } from '../handlers/template-checks.js';
import { features } from './lock-feature.js';
import { lockedMethodsOf } from './locked-methods-of.js';
import type { NamedLocks } from './service-slot.js';

/**
 * Gives an object the service for those of its `@WithLock` methods that ask for a service of that name.
 *
 * @throws LockConfigurationError when one of them cannot work
 */
export function bindLockedMethods(instance: object, service: NamedLocks): void {
  for (const locked of lockedMethodsOf(instance)) {
    const { slot } = locked;
    locked.check(instance);
    if (slot.serviceName !== service.name) continue;
    refuseRawPaths(instance, locked);
    inPlace(locked.where, () => {
      service.assertFits(locked.lockingIn(features.get(instance)).run);
      if (locked.decorator.isOnce === true) service.once.assertPossible();
    });
    slot.set(instance, service);
  }
}
