import { onAbort } from '../../queue/on-abort.js';
import { Scope } from '../../sections/scope.js';
import type { LockedCall } from './locked-call.js';
import { streamOf } from './return-kind.js';

/**
 * An async iterable, locked from its first step to its end. Every step runs in the section of the call, even if another
 * section asks for it.
 *
 * A consumer that leaves ends a wait for the lock, and makes the method's own iterator return at once. A generator
 * would first end its current step, which may wait for an event that never comes.
 */
export function lockedIterable(call: LockedCall): AsyncGenerator {
  const [gone, left] = [new AbortController(), new AbortController()];
  const steps = locked(call, {
    gone: gone.signal,
    left: left.signal,
    leave: () => steps.return(undefined),
  });
  const endSteps = steps.return.bind(steps);
  steps.return = (value) => {
    left.abort();
    gone.abort();
    return endSteps(value);
  };
  const failSteps = steps.throw.bind(steps);
  steps.throw = (error) => {
    left.abort();
    return failSteps(error);
  };
  return steps;
}

/** What its consumer does. */
interface Consumer {
  /** The consumer has left: no further step runs. */
  readonly gone: AbortSignal;
  /** The call leaves the line, if it still stands there. */
  readonly left: AbortSignal;
  /** Leaves in place of the consumer. */
  readonly leave: () => Promise<unknown>;
}

async function* locked(call: LockedCall, { gone, left, leave }: Consumer): AsyncGenerator {
  let scope: Scope;
  try {
    const entry = await call.enter(left);
    if (!(entry instanceof Scope)) {
      if (!entry.skip) yield* entry.answer as AsyncIterable<unknown>;
      return;
    }
    scope = entry;
  } catch (error) {
    if (left.aborted && error === left.reason) return; // no consumer is left to notify
    throw call.streamed(error);
  }
  call.frame?.endsWith(leave);
  try {
    if (gone.aborted) return;
    const result: unknown = yield* stepwise(call, scope, gone);
    await scope.finish();
    return result;
  } catch (error) {
    throw call.streamed(await scope.fail(error));
  } finally {
    // Reached alone when the consumer goes away early.
    await scope.finish().catch(() => undefined);
  }
}

async function* stepwise(call: LockedCall, scope: Scope, gone: AbortSignal): AsyncGenerator {
  const { lock } = scope.section;
  const iterable = await streamOf(call, scope, 'iterable');
  const iterator = call.inside(scope, () => iterable[Symbol.asyncIterator]());
  const state = { hasEnded: false };
  /** Ends the wait for the step that is under way. */
  let giveUp: ((reason: unknown) => void) | undefined;
  const step = async (
    take: () => Promise<IteratorResult<unknown>>,
  ): Promise<IteratorResult<unknown>> => {
    // A step that fails is the last one.
    state.hasEnded = true;
    const taking = call.inside(scope, take);
    const taken = await new Promise<IteratorResult<unknown>>((resolve, reject) => {
      giveUp = reject;
      taking.then(resolve, reject);
    });
    state.hasEnded = taken.done === true;
    return taken;
  };
  let ending: Promise<IteratorResult<unknown>> | undefined;
  const end = (): Promise<IteratorResult<unknown>> => {
    ending ??= step(async () => (await iterator.return?.()) ?? { done: true, value: undefined });
    ending.catch(() => undefined); // awaited below
    return ending;
  };
  // Also while a step is under way, which may never end.
  const ignore = [
    onAbort(gone, () => void end()),
    onAbort(lock.signal, () => {
      giveUp?.(lock.signal.reason);
      void end();
    }),
  ];
  const steps: AsyncIterator<unknown, unknown, unknown> = {
    next: (sent) => {
      // Between two steps the lock may have been lost: then no further one is made.
      lock.assertHeld();
      return step(() => iterator.next(sent));
    },
    throw: async (error) => {
      const thrower = iterator.throw?.bind(iterator);
      if (thrower === undefined) throw error;
      return step(() => thrower(error));
    },
  };
  try {
    if (gone.aborted) return undefined;
    return yield* { [Symbol.asyncIterator]: () => steps };
  } finally {
    for (const each of ignore) each();
    // A lost lock leaves nothing for which the end of the source would have to be waited for.
    if (ending !== undefined || !state.hasEnded) await (lock.isHeld ? end() : void end());
  }
}
