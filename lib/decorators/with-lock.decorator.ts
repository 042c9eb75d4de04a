import 'reflect-metadata';
import { UseInterceptors } from '@nestjs/common';
import { LockConfigurationError } from '../errors.js';
import { LockInterceptor } from '../interceptors/lock.interceptor.js';
import { LockedCall } from './locked-call.js';
import { lockedIterable } from './locked-iterable.js';
import { LockedMethod } from './locked-method.js';
import { lockedMethodOf, markLocked } from './locked-methods-of.js';
import { lockedObservable } from './locked-observable.js';
import { lockedPromise } from './locked-promise.js';
import type {
  WithLock as WithLockSignature,
  WithLockKey,
  WithLockOptions,
} from './with-lock.types.js';

type Method = (...args: unknown[]) => unknown;

const RUN = { promise: lockedPromise, observable: lockedObservable, iterable: lockedIterable };

/**
 * Runs a method only while it holds a lock.
 *
 * @param key what to lock: a template such as `'order:<orderId>'`, a list of them (all or nothing), or a function of the method's
 *   own parameters. `<orderId>` and `<order.id>` name a parameter, `<0>` its position; in handlers `<params.id>`, `<body.id>`,
 *   `<query.id>`, `<headers.x>` and `<user.id>` name a part of the raw request. With `@Cron`, `<fireTime>` is the time that the run was
 *   scheduled for (`20300101T120000Z`), the same in every process, however late it is.
 * @param options what is left out comes from the module, except `wait`: a decorated call does not wait unless told.
 *
 * The call rejects with `LockNotAcquiredError` (409) when somebody else holds the lock, `LockStoreUnavailableError` (503) when
 * nobody knows, `LockKeyError` (400 or 500) when a value of the key is missing, and `LockLostError` (409) when the lock was lost
 * while the method ran. Without a `LockService` it rejects too: the method never runs unlocked.
 */
export const WithLock: WithLockSignature =
  (key, options) =>
  (target: object, propertyKey: string | symbol, descriptor?: PropertyDescriptor): void => {
    decorate(target, propertyKey, descriptor, key, options ?? {});
  };

function decorate(
  target: object,
  propertyKey: string | symbol,
  descriptor: PropertyDescriptor | undefined,
  key: WithLockKey,
  options: WithLockOptions,
): void {
  const original: unknown = descriptor?.value;
  if (descriptor === undefined || typeof original !== 'function') {
    throw new LockConfigurationError(
      `@WithLock goes on methods only: ${String(propertyKey)} is none.`,
    );
  }
  if (typeof target === 'function') {
    throw new LockConfigurationError(
      `@WithLock goes on instance methods only: ${target.name}.${String(propertyKey)} is static, and no LockService is injected into a class.`,
    );
  }
  const method = original as Method;
  if (lockedMethodOf(method) !== undefined) {
    throw new LockConfigurationError(
      `${target.constructor.name}.${String(propertyKey)} has @WithLock twice. Give one of them all keys: @WithLock(['a', 'b']).`,
    );
  }
  const locked = new LockedMethod(target, propertyKey, method, key, options);
  const run = RUN[locked.kind];
  // A Proxy keeps name, length and whatever else other decorators have put on the function.
  const wrapped = new Proxy(method, {
    apply: (_method, self: unknown, args: unknown[]) =>
      run(new LockedCall(locked, method, self, args)),
  });
  descriptor.value = wrapped;
  locked.slot.install(target);
  // First, so that the interceptors of this method run inside the lock whether they are written above or below.
  UseInterceptors(LockInterceptor)(target, propertyKey, descriptor);
  carryMetadata(method, wrapped);
  markLocked(wrapped, locked);
}

/** Copies what Nest and others have noted on a function; lists that are there already, such as interceptors, go before. */
function carryMetadata(source: object, destination: object): void {
  for (const key of Reflect.getOwnMetadataKeys(source)) {
    const value: unknown = Reflect.getOwnMetadata(key, source);
    const present: unknown = Reflect.getOwnMetadata(key, destination);
    const merged: unknown =
      Array.isArray(present) && Array.isArray(value)
        ? [...(present as unknown[]), ...(value as unknown[])]
        : value;
    Reflect.defineMetadata(key, merged, destination);
  }
}
