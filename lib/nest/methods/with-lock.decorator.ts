import { OTHER_WORDS } from '../../options/unknown-option.js';
import { Scope } from '../../sections/scope.js';
import { destroySource } from '../transports/http.js';
import { lockingDecorator } from './decorate.js';
import type { LockedCall } from './locked-call.js';
import { lockedIterable } from './locked-iterable.js';
import type { LockDecorator } from './locked-method.js';
import { lockedObservable } from './locked-observable.js';
import { WITH_LOCK } from './method-options.js';
import { refuseStream } from './return-kind.js';
import type { WithLock as WithLockSignature } from './with-lock.types.js';

const DECORATOR: LockDecorator = {
  called: '@WithLock',
  options: WITH_LOCK,
  elsewhere: OTHER_WORDS,
};

/** A Promise: locked until it settles. */
export async function lockedPromise(call: LockedCall): Promise<unknown> {
  const entry = await call.enter();
  if (!(entry instanceof Scope)) return entry.answer;
  let result: unknown;
  try {
    return await entry.run(
      () => call.apply(),
      (value) => {
        result = value;
        refuseStream(call, value);
      },
    );
  } catch (error) {
    // What a service returns may have other uses.
    if (call.frame !== undefined) destroySource(result);
    throw error;
  }
}

const RUN = { promise: lockedPromise, observable: lockedObservable, iterable: lockedIterable };

const withLockAs =
  (decorator: LockDecorator): WithLockSignature =>
  (key, options) =>
    lockingDecorator(decorator, key, options, ({ kind }) => RUN[kind]);

/**
 * Runs a method only while it holds a lock. Without a `LockService` the call rejects: the method never runs unlocked.
 *
 * @param key What to lock: a template such as `'order:<orderId>'`, a list of templates (all or nothing), or a function
 *   of the method's own parameters. In a template, `<orderId>` and `<order.id>` name a parameter. All placeholders:
 *   https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/docs/decorators.md#key-templates
 * @param options An option that is left out comes from `LockModule.forFeature` of the method's module, and then from
 *   `forRoot`. Without `wait`, a method with `@WithLock` does not wait, and calls by hand wait 10 s.
 * @throws LockNotAcquiredError (409) when another caller still holds the lock after `wait`
 * @throws LockStoreUnavailableError (503) when the store does not reply
 * @throws LockKeyError (400 or 500) when a value of the key is missing
 * @throws LockLostError (409) when the lock was lost while the method ran: its effects may have happened
 * @throws LockServiceClosedError, LockReentrancyError, LockDeadlockError, LockNotBoundError
 * @example
 * ```ts
 * import { WithLock } from 'nestjs-holdfast';
 *
 * class Payments {
 *   @WithLock('order:<orderId>', { ttl: '10s', wait: '2s' })
 *   async pay(orderId: string): Promise<Receipt> {
 *     return charge(orderId);
 *   }
 * }
 * ```
 */
export const WithLock: WithLockSignature = withLockAs(DECORATOR);

/** `WithLock` for a whole key, written once for an application: no module puts a prefix before it. */
export const wholeKeyWithLock: WithLockSignature = withLockAs({ ...DECORATOR, isWholeKey: true });
