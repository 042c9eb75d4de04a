import type { Location } from '../options/location.js';

/** Why locks cannot be detached and attached; `undefined` where only the store decides. */
export const noDetachingIn = (location: Location): string | undefined =>
  location.kind === 'redis' && location.redis.length > 1
    ? `Locks are detached on one Redis, and option "redis" lists ${String(location.redis.length)}: callers that attach a lock together could get ` +
      'some masters each, and none of them a majority.'
    : undefined;
