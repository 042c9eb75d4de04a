import { from, isObservable, of, type Observable } from 'rxjs';
import { LockReturnKindError } from '../../errors.js';
import { isAsyncIterable, streamKindOf } from '../../sections/stream-kind.js';
import type { LockedCall } from './locked-call.js';

/** A stream works on after the promise has settled: it would do so without the lock. */
export function refuseStream(call: LockedCall, value: unknown): void {
  const kind = streamKindOf(value);
  if (kind === undefined) return;
  const came = kind === 'observable' ? 'an Observable' : 'an async iterable';
  const remedy =
    call.locked.decorator.isOnce !== true
      ? `add returns: '${kind}' to its @WithLock and return it as it is.`
      : 'consume it inside the method.';
  throw new LockReturnKindError(
    `${call.locked.name} did not return a Promise of a value. It gave ${came}: ${remedy}`,
  );
}

/** What `onLocked` returned, as the result of a stream. */
export const asObservable = (answer: unknown): Observable<unknown> =>
  isObservable(answer) ? from(answer) : of(answer);

/** What the method returned, if that is an Observable. */
export async function observableOf(call: LockedCall, value: unknown): Promise<Observable<unknown>> {
  if (isObservable(value)) return value;
  throw await missing(call, value, 'observable', 'an Observable');
}

/** What the method returned, if that is an async iterable. */
export async function iterableOf(
  call: LockedCall,
  value: unknown,
): Promise<AsyncIterable<unknown>> {
  if (isAsyncIterable(value)) return value;
  throw await missing(call, value, 'iterable', 'an async iterable');
}

/** Work that a promise stands for has begun: it keeps the lock to its end. */
async function missing(
  call: LockedCall,
  value: unknown,
  kind: string,
  expected: string,
): Promise<LockReturnKindError> {
  await Promise.allSettled([value]);
  return new LockReturnKindError(
    `${call.locked.name} did not return ${expected}. Remove returns: '${kind}' from its @WithLock, or return ${expected}.`,
  );
}
