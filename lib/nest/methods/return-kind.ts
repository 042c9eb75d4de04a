import { from, isObservable, of, type Observable } from 'rxjs';
import { LockReturnKindError } from '../../errors.js';
import { isAsyncIterable, streamKindOf } from '../../sections/stream-kind.js';
import type { Scope } from '../../sections/scope.js';
import type { LockedCall } from './locked-call.js';

interface Streams {
  readonly observable: Observable<unknown>;
  readonly iterable: AsyncIterable<unknown>;
}

const NAMES = { observable: 'an Observable', iterable: 'an async iterable' };
const TESTS = { observable: isObservable, iterable: isAsyncIterable };

/** A stream works on after the promise has settled: it would do so without the lock. */
export function refuseStream(call: LockedCall, value: unknown): void {
  const kind = streamKindOf(value);
  if (kind === undefined) return;
  const remedy =
    call.locked.decorator.isOnce !== true
      ? `add returns: '${kind}' to its @WithLock and return it as it is.`
      : 'consume it inside the method.';
  throw new LockReturnKindError(
    `${call.locked.name} did not return a Promise of a value. It gave ${NAMES[kind]}: ${remedy}`,
  );
}

/** What `onLocked` returned, as the result of a stream. */
export const asObservable = (answer: unknown): Observable<unknown> =>
  isObservable(answer) ? from(answer) : of(answer);

/** Calls the method's own code inside the section, and returns its stream. */
export async function streamOf<Kind extends keyof Streams>(
  call: LockedCall,
  scope: Scope,
  kind: Kind,
): Promise<Streams[Kind]> {
  const value = call.inside(scope, () => call.apply());
  if (TESTS[kind](value)) return value as Streams[Kind];
  // Work that a promise stands for has begun: it keeps the lock to its end.
  await Promise.allSettled([value]);
  const expected = NAMES[kind];
  throw new LockReturnKindError(
    `${call.locked.name} did not return ${expected}. Remove returns: '${kind}' from its @WithLock, or return ${expected}.`,
  );
}
