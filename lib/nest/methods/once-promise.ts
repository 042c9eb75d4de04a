import { LockLostError, LockNotAcquiredError, LockWorkExhaustedError } from '../../errors.js';
import type { Lock } from '../../lease/lock.js';
import type { RunOnceResult } from '../../once/attempt.js';
import type { ResolvedOnceOptions } from '../../once/once-options.js';
import type { Holding } from '../../sections/holding.js';
import type { LockedCall } from './locked-call.js';
import { refuseStream } from './return-kind.js';

/** A Promise of work that is to be done once. */
export async function oncePromise(
  call: LockedCall,
  options: ResolvedOnceOptions,
): Promise<unknown> {
  const { service } = call;
  const { once } = service;
  once.assertPossible();
  let holding: Holding;
  try {
    holding = await enter(call);
  } catch (error) {
    if (!(error instanceof LockNotAcquiredError)) throw error;
    const { keys } = error;
    const result = await once.refused(error);
    if (result.outcome === 'busy') throw error;
    return valueOf(result, call, keys);
  }
  const { lock } = holding.section;
  const work = async (): Promise<unknown> => {
    const result = call.invoke(holding);
    refuseStream(call, result);
    const value = await result;
    refuseStream(call, value);
    return value;
  };
  const result = await once.run(holding, { options, signal: undefined, work });
  return valueOf(result, call, lock.keys, lock);
}

async function enter(call: LockedCall): Promise<Holding> {
  const entry = await call.enter();
  if (entry.status === 'entered') return entry.holding;
  throw new Error('@RunOnce has no onLocked');
}

/** The result of a call, whose type cannot express all outcomes of the work. */
function valueOf(
  result: RunOnceResult<unknown>,
  { service: { present }, lockName }: LockedCall,
  keys: readonly string[],
  lock?: Lock,
): unknown {
  const { outcome, attempts } = result;
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
