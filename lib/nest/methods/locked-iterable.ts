import type { Holding } from '../../sections/holding.js';
import type { LockedCall } from './locked-call.js';
import { iterableOf } from './return-kind.js';

/** An async iterable: locked from its first step to its end. Every step runs in the section of the call, whoever asks for it. */
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
  const iterable = await iterableOf(call, call.invoke(holding));
  const iterator = call.inside(holding, () => iterable[Symbol.asyncIterator]());
  const state = { hasEnded: false };
  const step = async (
    take: () => Promise<IteratorResult<unknown>>,
  ): Promise<IteratorResult<unknown>> => {
    try {
      const taking = call.inside(holding, take);
      holding.step?.(taking);
      const taken = await taking;
      state.hasEnded = taken.done === true;
      return taken;
    } catch (error) {
      state.hasEnded = true;
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
      // Between two steps the lock may have been lost: then no further one is made.
      holding.section.lock.assertHeld();
      taken = await step(() => iterator.next(sent));
    }
    return taken.value as unknown;
  } finally {
    if (!state.hasEnded)
      await step(async () => (await iterator.return?.()) ?? { done: true, value: undefined });
  }
}
