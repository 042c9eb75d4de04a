import { flag, ttl, duration } from './checks.js';
import { optional, type OneSchema, type OptionsOf } from './schema.js';
import { OTHER_WORDS, type Kind } from './unknown-option.js';

const DETACH = {
  /**
   * How long, from now, the keys stay taken until the lock is attached. At least 50 ms. It must cover the time that the
   * text is on its way, such as the time that a job waits in its queue.
   *
   * @defaultValue the TTL of the lock
   */
  ttl: optional(ttl),
};

const ATTACH = {
  /**
   * How long the lease lasts unless it is renewed. At least 50 ms.
   *
   * @defaultValue the TTL that the lock had before it was detached
   */
  ttl: optional(ttl),
  /**
   * Whether the lease is renewed for as long as it is held.
   *
   * @defaultValue as before the lock was detached
   */
  autoExtend: optional(flag),
  /**
   * The longest time that the lock may be held, from now, renewals included. The `maxHold` before it was detached does
   * not count.
   *
   * @defaultValue no limit
   */
  maxHold: optional(duration()),
};

/** Options of `lock.detach`. */
export interface DetachOptions extends OptionsOf<typeof DETACH>, OneSchema {}

/** Options of `locks.attach`. */
export interface AttachOptions extends OptionsOf<typeof ATTACH>, OneSchema {}

/** The calls with which a lock goes from one process to another. */
export const TRAVELS = {
  detach: { called: 'detach()', options: DETACH, elsewhere: OTHER_WORDS },
  attach: {
    called: 'attach()',
    options: ATTACH,
    elsewhere: {
      ...OTHER_WORDS,
      wait: 'A lock that was detached is held for the process that attaches it: there is nothing to wait for.',
      minHold: 'It is that of the lock before it was detached.',
      release: 'It is that of the lock before it was detached.',
      mode: 'It is that of the lock before it was detached.',
      limit: 'It is that of the lock before it was detached.',
      places: 'They are those of the lock before it was detached.',
    },
  },
} satisfies Record<string, Kind>;
