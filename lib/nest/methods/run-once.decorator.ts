import {
  LockConfigurationError,
  LockLostError,
  LockNotAcquiredError,
  LockWorkExhaustedError,
} from '../../errors.js';
import { lockNameOf } from '../../lease/lock-request.js';
import type { Lock } from '../../lease/lock.js';
import type { RunOnceResult } from '../../once/attempt.js';
import {
  ONCE_ELSEWHERE,
  resolveOnceOptions,
  type ResolvedOnceOptions,
} from '../../once/once-options.js';
import type { Scope } from '../../sections/scope.js';
import { lockingDecorator } from './decorate.js';
import type { LockedCall } from './locked-call.js';
import type { LockDecorator } from './locked-method.js';
import { RUN_ONCE_METHOD } from './method-options.js';
import { refuseStream } from './return-kind.js';
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

/** A Promise of work that is to be done once. */
async function oncePromise(call: LockedCall, options: ResolvedOnceOptions): Promise<unknown> {
  const { once } = call.service;
  once.assertPossible();
  let scope: Scope;
  try {
    scope = await call.open();
  } catch (error) {
    if (!(error instanceof LockNotAcquiredError)) throw error;
    const result = await once.refused(error);
    if (result.outcome === 'busy') throw error;
    return valueOf(result, call, error.keys);
  }
  const work = async (): Promise<unknown> => {
    const value = await call.apply();
    refuseStream(call, value);
    return value;
  };
  const result = await once.run(scope, { options, signal: undefined, work });
  return valueOf(result, call, scope.lock.keys, scope.lock);
}

/** The result of a call, whose type cannot express all outcomes of the work. */
function valueOf(
  result: RunOnceResult<unknown>,
  { service: { present }, locked }: LockedCall,
  keys: readonly string[],
  lock?: Lock,
): unknown {
  const { outcome, attempts } = result;
  const lockName = lockNameOf(locked.origin);
  if (outcome === 'exhausted') {
    const { lastError } = result;
    throw present(new LockWorkExhaustedError({ keys, attempts, lastError, lock: lockName }));
  }
  if (outcome === 'superseded') {
    lock?.signal.throwIfAborted();
    const { fencingToken } = lock ?? {};
    throw present(new LockLostError({ keys, reason: 'stolen', fencingToken, lock: lockName }));
  }
  return result.value;
}
