import { LockConfigurationError } from '../errors.js';
import { checkKey } from '../key/index.js';
import { withStackOf, type CallSite } from '../lease/call-site.js';
import { readDetached, type DetachedLock } from '../lease/detached-lock.js';
import { LockHandle } from '../lease/lock-handle.js';
import { refuseLongMinHold } from '../options/acquire-options.js';
import { TRAVELS, type AttachOptions } from '../options/detach-options.js';
import { needsOneRedis } from '../options/one-redis.js';
import { placeOf } from '../options/location.js';
import { ttlWithin, type ResolvedOptions } from '../options/resolve-options.js';
import { resolve } from '../options/schema.js';
import type { AttachRequest } from '../queue/attaching.js';
import type { Components } from './compose.js';

/** Takes over a lock that was detached: the handle of `attach`. */
export async function attach(
  text: string,
  given: AttachOptions,
  parts: Components,
  site: CallSite | undefined,
): Promise<LockHandle> {
  const { keeper, queue, events, forgotten, present } = parts;
  try {
    needsOneRedis('attach()', parts.options.location);
    const detached = readDetached(text);
    const request = { ...requestFor(detached, given, parts.options), site };
    const lease = await queue.attach(detached, request);
    const lock = new LockHandle(lease, keeper);
    if (events.isHeard('attached')) events.emit('attached', lease.subject);
    lock.begun();
    // The event loop may have been blocked since the store answered.
    lock.assertHeld();
    return forgotten.isWatching ? forgotten.watch(lock) : lock;
  } catch (error) {
    throw present(withStackOf(error, site));
  }
}

/** @throws LockKeyError, LockConfigurationError */
function requestFor(
  { keys, place, minHoldMs, release, ...before }: DetachedLock,
  given: AttachOptions,
  options: ResolvedOptions,
): AttachRequest {
  keys.forEach(checkKey);
  const here = placeOf(options.location, options.keyPrefix);
  if (place !== here)
    throw new LockConfigurationError(
      `The lock that was given to attach() was detached where locks are kept in another place (${place}) than here (${here}). Attach it with a ` +
        'service that has the options of the one that acquired it.',
    );
  const {
    ttlMs = before.ttlMs,
    autoExtend = before.autoExtend,
    maxHoldMs = Infinity,
  } = resolve(TRAVELS.attach.options, given);
  refuseLongMinHold(minHoldMs, ttlMs);
  ttlWithin(ttlMs, options.restartGuard);
  return { ttlMs, autoExtend, maxHoldMs, minHoldMs, release };
}
