import type { Location } from '../options/location.js';

/** Why `guarded` is refused, where the store has none. */
export const noWritesIn = ({ kind }: Location): string =>
  `guarded() runs commands on the Redis that has the lock, and ${
    kind === 'memory'
      ? 'these locks are in memory. Give "redis", or in a test a stub in its place.'
      : 'the store given as "store" has no method "write" (see LockStore).'
  }`;
