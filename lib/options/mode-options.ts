import { abortSignal, oneOf, wait } from './checks.js';
import { optional, type OneSchema, type OptionsOf } from './schema.js';
import { OTHER_WORDS, type Kind } from './unknown-option.js';

const UPGRADE = {
  /**
   * How long to wait for other readers of the lock; 0 does not wait. `'forever'` waits until they are done, `signal`
   * aborts, the lock is lost or the service shuts down.
   *
   * @defaultValue the module's
   */
  wait: optional(wait),
  /** Ends the wait when it aborts, with its reason. The lock stays upgradeable. */
  signal: optional(abortSignal),
};

const DOWNGRADE = {
  /**
   * The mode of the lock from now on. `'shared'`: other readers may hold it too. `'upgradeable'`: the same, and it can
   * be upgraded again.
   *
   * @defaultValue `'upgradeable'` for a lock that was upgraded, else `'shared'`
   */
  to: optional(oneOf('shared', 'upgradeable')),
};

/** Options of `lock.upgrade`. */
export interface UpgradeOptions extends OptionsOf<typeof UPGRADE>, OneSchema {}

/** Options of `lock.downgrade`. */
export interface DowngradeOptions extends OptionsOf<typeof DOWNGRADE>, OneSchema {}

/** The calls that change the mode of a lock. */
export const MODE_CHANGES = {
  upgrade: {
    called: 'upgrade()',
    options: UPGRADE,
    elsewhere: { ...OTHER_WORDS, ttl: 'It stays as it is: extend() changes it.' },
  },
  downgrade: {
    called: 'downgrade()',
    options: DOWNGRADE,
    elsewhere: { ...OTHER_WORDS, mode: "Give { to: 'shared' } or { to: 'upgradeable' }." },
  },
} satisfies Record<string, Kind>;
