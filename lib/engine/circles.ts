import type { Lease } from '../lease/lease.js';
import { Section } from '../sections/section.js';
import { WaitsFor } from '../sections/waits-for.js';

/** Of all services of the process: what they wait for can close one circle. */
export const waitsFor = new WaitsFor();

/**
 * An upgrade begins to wait, in the sections of the calling code. Returns a function that ends the wait.
 *
 * @throws LockDeadlockError
 */
export const beginUpgradeOf =
  (owner: object) =>
  (lease: Lease): (() => void) =>
    waitsFor.begin({
      ...{ owner, keys: lease.keys, mode: 'exclusive', upgrades: lease },
      sections: Section.current()?.enclosing() ?? [],
    });
