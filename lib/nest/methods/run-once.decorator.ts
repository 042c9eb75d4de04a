import { LockConfigurationError } from '../../errors.js';
import { ONCE_ELSEWHERE, resolveOnceOptions } from '../../once/once-options.js';
import { lockingDecorator } from './decorate.js';
import type { LockDecorator } from './locked-method.js';
import { RUN_ONCE_METHOD } from './method-options.js';
import { oncePromise } from './once-promise.js';
import type { RunOnce as RunOnceSignature } from './run-once.types.js';

const DECORATOR: LockDecorator = {
  called: '@RunOnce',
  options: RUN_ONCE_METHOD,
  elsewhere: ONCE_ELSEWHERE,
  isOnce: true,
};

/**
 * Has a method done once by all processes that call it with the same key. One call runs it under the lock of the key,
 * and the others wait. When that call fails or its process dies, the next call runs it, up to `attempts` in all.
 *
 * The call resolves with the method's value. When the work was done elsewhere, it resolves with the kept value
 * (`keepValue`) or `undefined`. Inside the method, `locks.currentAttempt()` returns the attempt.
 *
 * @param key The name of the work: one key template, as of `@WithLock`, or a function of the method's own parameters.
 * @param options An option of the lock that is left out comes from the module, including `wait`: by default a call
 *   waits.
 * @throws what the method throws, and what `@WithLock` throws for the key, the store and the service
 * @throws LockWorkExhaustedError (409) when no further attempt is made
 * @throws LockNotAcquiredError (409) when another caller did the work for as long as this call waited
 * @throws LockLostError (409) when another attempt began while this one ran
 * @example
 * ```ts
 * import { RunOnce } from 'nestjs-holdfast';
 *
 * class Invoices {
 *   @RunOnce('invoice:<orderId>', { attempts: 5 })
 *   async send(orderId: string): Promise<void> {
 *     await ship(orderId);
 *   }
 * }
 * ```
 */
export const RunOnce: RunOnceSignature = (key, options) =>
  lockingDecorator(DECORATOR, key, options, ({ where, kind }) => {
    if (typeof key !== 'string' && typeof key !== 'function') {
      throw new LockConfigurationError(`${where} needs one key: it is what the work is called by.`);
    }
    if (kind === 'iterable') {
      throw new LockConfigurationError(
        `${where}: a generator cannot be done once. Make it an async method.`,
      );
    }
    const onceOptions = resolveOnceOptions(options ?? {});
    return (call) => oncePromise(call, onceOptions);
  });
