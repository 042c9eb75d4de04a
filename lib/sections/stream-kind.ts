/** What `isObservable` of rxjs asks. The command line does without rxjs, which takes longer to load than all else. */
function isObservable(value: unknown): boolean {
  const { lift, subscribe } = (value ?? {}) as { lift?: unknown; subscribe?: unknown };
  return typeof lift === 'function' && typeof subscribe === 'function';
}

/**
 * Whether a value continues to work after the call that returned it has settled, so that its lock would end too early.
 */
export function streamKindOf(value: unknown): 'observable' | 'iterable' | undefined {
  if (isObservable(value)) return 'observable';
  // A generator; other iterables, such as streams that are sent on, are often finished values.
  const hasSteps = typeof (value as { next?: unknown } | null | undefined)?.next === 'function';
  return isAsyncIterable(value) && hasSteps ? 'iterable' : undefined;
}

export const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof (value as Partial<AsyncIterable<unknown>> | null | undefined)?.[Symbol.asyncIterator] ===
  'function';
