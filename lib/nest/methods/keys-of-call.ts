import { Logger } from '@nestjs/common';
import { LockKeyError } from '../../errors.js';
import type { RequestValues } from '../../key/index.js';
import { lockNameOf } from '../../lease/grant.js';
import type { Invocation, LockedMethod } from './locked-method.js';
import type { NamedLocks } from './service-slot.js';

const logger = new Logger('Holdfast');

/** For each service and each handler, the values of its key that a warning was logged for. */
const warnedOf = new WeakMap<NamedLocks, WeakMap<LockedMethod, Set<string>>>();

/**
 * The keys of a decorated call.
 *
 * @param request of a handler's call: its sender is to blame for bad values
 * @throws LockKeyError
 */
export const keysOfCall = (
  service: NamedLocks,
  locked: LockedMethod,
  call: Invocation,
  request: RequestValues | undefined,
): readonly string[] =>
  service.checked(() => {
    try {
      return locked.resolve(call, request, service.runtime);
    } catch (error) {
      if (error instanceof LockKeyError) {
        error.nameLock(lockNameOf(locked.origin));
        if (error.fromRequest) warnOfKey(service, locked, error);
      }
      throw error;
    }
  });

/**
 * The client is notified that its request is at fault. If every request is, the key itself is wrong, and only this
 * warning shows it.
 */
function warnOfKey(
  service: NamedLocks,
  locked: LockedMethod,
  { what = '', detail }: LockKeyError,
): void {
  const ofService = warnedOf.get(service) ?? new WeakMap<LockedMethod, Set<string>>();
  warnedOf.set(service, ofService);
  const warned = ofService.get(locked) ?? new Set();
  if (warned.has(what)) {
    logger.debug(detail);
    return;
  }
  ofService.set(locked, warned.add(what));
  const templates = locked.templates.map(({ source }) => JSON.stringify(source));
  const key = templates.length > 0 ? templates.join(', ') : 'a function';
  logger.warn(
    `${detail} The request was answered with 400, and this is logged once. If all requests are, the key of this handler (${key}) is ` +
      'wrong: is a name misspelt, or set by a guard that this route does not have?',
  );
}
