import type { Location } from '../options/location.js';

const REMEDY =
  'Send the fencing token along with each write, and let the resource refuse smaller ones:';

const FENCING = 'https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/fencing.md';

/** Why `guarded` is refused, where the store has none. */
export function noWritesIn({ kind }: Location): string {
  if (kind === 'memory')
    return 'guarded() runs commands on the Redis that has the lock, and these locks are in memory. Give "redis", or in a test a stub in its place.';
  if (kind === 'store')
    return 'guarded() runs commands on the Redis that has the lock, and the store given as "store" has no method "write" (see LockStore).';
  return (
    'guarded() runs commands on the one Redis that has the lock, and option "redis" lists several masters, each of which would have data of ' +
    `its own. ${REMEDY} ${FENCING}`
  );
}
