import type { Location } from '../options/location.js';

/** Why locks cannot be upgraded where the store has no way to do it. */
export const noUpgradesIn = ({ kind }: Location): string =>
  kind === 'redis'
    ? "Locks are upgraded on one Redis, not over several masters: each of them may know other readers. Take the lock as 'exclusive', and " +
      "downgrade() it to 'shared' when the writing is over."
    : 'Locks cannot be upgraded: the store given as "store" has no method "upgrade" (see LockStore).';
