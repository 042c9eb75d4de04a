import type { Tracing } from './channels.js';

interface Failing {
  error?: unknown;
}

/**
 * Publishes work on a tracing channel. In contrast to Node's `tracePromise`, it does not put the result into the
 * message: the result is a lock, which knows its owner token.
 *
 * @param settle completes the message with the result
 */
export async function traced<Context extends Failing, T>(
  channel: Tracing<Context>,
  context: Context,
  work: () => Promise<T>,
  settle?: (result: T) => void,
): Promise<T> {
  const working = channel.start.runStores(context, work);
  channel.end.publish(context);
  try {
    const result = await working;
    settle?.(result);
    return result;
  } catch (error) {
    context.error = error;
    throw error;
  } finally {
    ended(channel, context);
  }
}

/** Publishes the beginning of work that belongs to no single call. */
export function began<Context extends Failing>(channel: Tracing<Context>, context: Context): void {
  channel.start.publish(context);
  channel.end.publish(context);
}

/** Publishes the end of such work. */
export function ended<Context extends Failing>(channel: Tracing<Context>, context: Context): void {
  if (context.error !== undefined) channel.error.publish(context);
  channel.asyncStart.publish(context);
  channel.asyncEnd.publish(context);
}
