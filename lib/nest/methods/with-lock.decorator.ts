import { OTHER_WORDS } from '../../options/unknown-option.js';
import { decorate, refuseBare } from './decorate.js';
import { lockedIterable } from './locked-iterable.js';
import { LockedMethod, type LockDecorator } from './locked-method.js';
import { lockedObservable } from './locked-observable.js';
import { lockedPromise } from './locked-promise.js';
import { WITH_LOCK } from './method-options.js';
import type { WithLock as WithLockSignature } from './with-lock.types.js';

const DECORATOR: LockDecorator = {
  called: '@WithLock',
  options: WITH_LOCK,
  elsewhere: OTHER_WORDS,
  always: {},
  usualWait: 0,
};

const RUN = { promise: lockedPromise, observable: lockedObservable, iterable: lockedIterable };

const withLockAs =
  (decorator: LockDecorator): WithLockSignature =>
  (key, options) => {
    refuseBare('@WithLock', key, options);
    return (
      target: object,
      propertyKey: string | symbol,
      descriptor?: PropertyDescriptor,
    ): void => {
      decorate('@WithLock', target, propertyKey, descriptor, (method) => {
        const said = { key, options };
        const locked = new LockedMethod({ target, propertyKey, method }, said, decorator);
        return { locked, run: RUN[locked.kind] };
      });
    };
  };

/**
 * Runs a method only while it holds a lock.
 *
 * @param key what to lock: a template such as `'order:<orderId>'`, a list of them (all or nothing), or a function of the method's
 *   own parameters. `<orderId>` and `<order.id>` name a parameter, `<0>` its position; in handlers `<params.id>`, `<body.id>`,
 *   `<query.id>`, `<headers.x>` and `<user.id>` name a part of the raw request. `<class>` is the name of the object's class. With
 *   `@Cron`, `<fireTime>` is the time that the run was scheduled for (`20300101T120000Z`), the same in every process, however late it is.
 * @param options what is left out comes from `LockModule.forFeature` of its module, and then from `forRoot`, except `wait`: a decorated call does
 *   not wait unless told.
 *
 * The call rejects with `LockNotAcquiredError` (409) when somebody else holds the lock, `LockStoreUnavailableError` (503) when
 * nobody knows, `LockKeyError` (400 or 500) when a value of the key is missing, and `LockLostError` (409) when the lock was lost
 * while the method ran. Without a `LockService` it rejects too: the method never runs unlocked.
 */
export const WithLock: WithLockSignature = withLockAs(DECORATOR);

/** The same for a key that is written once for a whole application: no module puts a prefix before it. */
export const wholeKeyWithLock: WithLockSignature = withLockAs({ ...DECORATOR, isWholeKey: true });
