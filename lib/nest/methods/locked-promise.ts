import type { LockedCall } from './locked-call.js';
import { refuseStream } from './return-kind.js';

/** A Promise: locked until it settles. */
export async function lockedPromise(call: LockedCall): Promise<unknown> {
  const entry = await call.enter();
  if (entry.status === 'locked') return entry.answer;
  const { holding } = entry;
  holding.section.endsWithWork = true;
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
