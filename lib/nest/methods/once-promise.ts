import { LockLostError, LockNotAcquiredError, LockWorkExhaustedError } from '../../errors.js';
import { lockNameOf } from '../../lease/grant.js';
import type { Lock } from '../../lease/lock.js';
import type { RunOnceResult } from '../../once/attempt.js';
import type { ResolvedOnceOptions } from '../../once/once-options.js';
import type { Scope } from '../../sections/scope.js';
import type { LockedCall } from './locked-call.js';
import { refuseStream } from './return-kind.js';

/** A Promise of work that is to be done once. */
export async function oncePromise(
  call: LockedCall,
  options: ResolvedOnceOptions,
): Promise<unknown> {
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
    lock?.assertHeld();
    const { fencingToken } = lock ?? {};
    throw present(new LockLostError({ keys, reason: 'stolen', fencingToken, lock: lockName }));
  }
  return result.value;
}
