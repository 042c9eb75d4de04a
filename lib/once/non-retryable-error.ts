/**
 * Thrown by the work of `runOnce` or `@RunOnce` that no other attempt can do either: it is not tried again, by anybody. Whoever threw it
 * gets it, all others hear that the work is exhausted.
 */
export class NonRetryableError extends Error {
  override readonly name: string = 'NonRetryableError';
}
