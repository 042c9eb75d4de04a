import { LockConfigurationError } from '../../errors.js';
import { ONCE_ELSEWHERE, resolveOnceOptions } from '../../once/once-options.js';
import { decorate, refuseBare } from './decorate.js';
import { LockedMethod, type LockDecorator } from './locked-method.js';
import { RUN_ONCE_METHOD } from './method-options.js';
import { oncePromise } from './once-promise.js';
import type { RunOnce as RunOnceSignature } from './run-once.types.js';

const DECORATOR: LockDecorator = {
  called: '@RunOnce',
  options: RUN_ONCE_METHOD,
  elsewhere: ONCE_ELSEWHERE,
  // It could neither wait for that section nor tell its own work from what that does.
  always: { reentrant: false },
  usualWait: undefined,
};

/**
 * Has a method done once, by all processes that call it with the same key: one call runs it, under the lock of the key, the others stand
 * by. When it fails or dies the next call runs it, up to `attempts` in all.
 *
 * @param key what the work is called by: one key template, as of `@WithLock`, or a function of the method's own parameters
 * @param options what is left out of the lock's comes from the module, `wait` too: a call stands by unless told otherwise.
 *
 * The call resolves with the method's value, and with the kept one (`keepValue`) or `undefined` when the work was done elsewhere. It
 * rejects with what the method throws, `WorkExhaustedError` (409) when the work is not tried any more, `LockNotAcquiredError` (409) when
 * somebody else was at it for as long as it waited, `LockLostError` (409) when another attempt began while this one ran, and with what
 * `@WithLock` rejects with for the key, the store and the service. Inside: `locks.currentAttempt()`.
 */
export const RunOnce: RunOnceSignature = (key, options) => {
  refuseBare('@RunOnce', key, options);
  return (target: object, propertyKey: string | symbol, descriptor?: PropertyDescriptor): void => {
    decorate('@RunOnce', target, propertyKey, descriptor, (method) => {
      const locked = new LockedMethod({ target, propertyKey, method }, { key, options }, DECORATOR);
      const { where } = locked;
      if (typeof key !== 'string' && typeof key !== 'function') {
        throw new LockConfigurationError(
          `${where} needs one key: it is what the work is called by.`,
        );
      }
      if (locked.kind === 'iterable') {
        throw new LockConfigurationError(
          `${where}: a generator cannot be done once. Make it an async method.`,
        );
      }
      const onceOptions = resolveOnceOptions(options ?? {});
      return { locked, run: (call) => oncePromise(call, onceOptions) };
    });
  };
};
