import {
  EMPTY,
  from,
  isObservable,
  Observable,
  of,
  type ObservableInput,
  type Subscription,
} from 'rxjs';
import { LockReturnKindError } from '../errors.js';
import type { Holding, LockedCall } from './locked-call.js';

/** A Promise: locked until it settles. */
export async function lockedPromise(call: LockedCall): Promise<unknown> {
  const entry = await call.enter();
  if (entry.status === 'locked') return entry.answer;
  const { holding } = entry;
  let value: unknown;
  try {
    const result = call.invoke(holding);
    refuseStream(call, result);
    value = await result;
    refuseStream(call, value);
  } catch (error) {
    throw await holding.fail(error);
  }
  await holding.finish();
  return value;
}

/** An Observable: locked from its subscription to its end, for each subscriber. */
export function lockedObservable(call: LockedCall): Observable<unknown> {
  return new Observable((subscriber) => {
    let inner: Subscription | undefined;
    let holding: Holding | undefined;
    const isGone = (): boolean => subscriber.closed;
    const fail = (error: unknown): void => {
      void (holding?.fail(error) ?? Promise.resolve(error)).then((own) => {
        subscriber.error(own);
      });
    };
    const start = async (): Promise<void> => {
      const entry = await call.enter();
      if (entry.status === 'locked') {
        const nothing = call.isHandlers ? of(undefined) : EMPTY;
        inner = (entry.skip ? nothing : asObservable(entry.answer)).subscribe(subscriber);
        return;
      }
      const held = entry.holding;
      holding = held;
      if (isGone()) {
        await held.finish();
        return;
      }
      const source = call.invoke(held);
      if (!isObservable(source)) throw wrongKind(call, 'observable', 'an Observable');
      inner = held.section.inside(() =>
        source.subscribe({
          next: (value) => {
            subscriber.next(value);
          },
          error: fail,
          complete: () => {
            held.finish().then(
              () => {
                subscriber.complete();
              },
              (loss: unknown) => {
                subscriber.error(loss);
              },
            );
          },
        }),
      );
      if (isGone()) inner.unsubscribe();
    };
    start().catch(fail);
    return () => {
      inner?.unsubscribe();
      // Nobody listens any more; a loss was told by signal and event.
      holding?.finish().catch(() => undefined);
    };
  });
}

/** An async iterable: locked from its first step to its end. Every step runs in the context of the call, whoever asks for it. */
export async function* lockedIterable(call: LockedCall): AsyncGenerator {
  const entry = await call.enter();
  if (entry.status === 'locked') {
    if (!entry.skip) yield* entry.answer as AsyncIterable<unknown>;
    return;
  }
  const { holding } = entry;
  let result: unknown;
  try {
    result = yield* stepwise(call, holding);
  } catch (error) {
    throw await holding.fail(error);
  } finally {
    // Reached alone when the consumer goes away early; otherwise it has been done or is done below.
    await holding.finish().catch(() => undefined);
  }
  await holding.finish();
  return result;
}

async function* stepwise(call: LockedCall, holding: Holding): AsyncGenerator {
  const { section } = holding;
  const iterable = call.invoke(holding);
  if (!isAsyncIterable(iterable)) throw wrongKind(call, 'iterable', 'an async iterable');
  const iterator = section.inside(() => iterable[Symbol.asyncIterator]());
  const state = { ended: false };
  const step = async (
    take: () => Promise<IteratorResult<unknown>>,
  ): Promise<IteratorResult<unknown>> => {
    try {
      const taken = await section.inside(take);
      state.ended = taken.done === true;
      return taken;
    } catch (error) {
      state.ended = true;
      throw error;
    }
  };
  try {
    let taken = await step(() => iterator.next());
    while (taken.done !== true) {
      let sent: unknown;
      try {
        sent = yield taken.value;
      } catch (error) {
        if (iterator.throw === undefined) throw error;
        const thrower = iterator.throw.bind(iterator);
        taken = await step(() => thrower(error));
        continue;
      }
      taken = await step(() => iterator.next(sent));
    }
    return taken.value as unknown;
  } finally {
    if (!state.ended) await section.inside(async () => iterator.return?.());
  }
}

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof (value as Partial<AsyncIterable<unknown>> | null | undefined)?.[Symbol.asyncIterator] ===
  'function';

const asObservable = (answer: unknown): Observable<unknown> =>
  isObservable(answer) || answer instanceof Promise
    ? from(answer as ObservableInput<unknown>)
    : of(answer);

/** A stream works on after the promise has settled: it would do so without the lock. */
function refuseStream(call: LockedCall, value: unknown): void {
  if (isObservable(value)) throw wrongKind(call, 'promise', 'a Promise of a value', 'observable');
  const generator =
    isAsyncIterable(value) && typeof (value as Partial<AsyncGenerator>).next === 'function';
  if (generator) throw wrongKind(call, 'promise', 'a Promise of a value', 'iterable');
}

function wrongKind(
  call: LockedCall,
  kind: string,
  expected: string,
  came?: string,
): LockReturnKindError {
  const remedy =
    came === undefined
      ? `Remove returns: '${kind}' from its @WithLock, or return ${expected}.`
      : `It gave ${came === 'observable' ? 'an Observable' : 'an async iterable'}: add returns: '${came}' to its @WithLock and return it as it is.`;
  return new LockReturnKindError(`${call.name} did not return ${expected}. ${remedy}`);
}
