import type { Tracing } from './channels.js';

interface Failing {
  error?: unknown;
}

/**
 * Publishes a stretch of work on a tracing channel. Unlike Node's `tracePromise` it does not put the result into the message: that is
 * a lock, and knows its owner token.
 */
export async function traced<Context extends Failing, T>(
  channel: Tracing<Context>,
  context: Context,
  work: () => Promise<T>,
): Promise<T> {
  const working = channel.start.runStores(context, work);
  channel.end.publish(context);
  try {
    return await working;
  } catch (error) {
    context.error = error;
    throw error;
  } finally {
    ended(channel, context);
  }
}

/** Publishes the beginning of something that no single call is about. */
export function began<Context extends Failing>(channel: Tracing<Context>, context: Context): void {
  channel.start.publish(context);
  channel.end.publish(context);
}

/** Publishes its end. */
export function ended<Context extends Failing>(channel: Tracing<Context>, context: Context): void {
  if (context.error !== undefined) channel.error.publish(context);
  channel.asyncStart.publish(context);
  channel.asyncEnd.publish(context);
}
