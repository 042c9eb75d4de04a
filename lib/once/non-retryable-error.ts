/**
 * The work of `runOnce` or `@RunOnce` throws it to forbid further attempts, in any process. The caller whose work threw
 * it gets it. For all other callers the work is exhausted.
 */
export class NonRetryableError extends Error {
  override readonly name: string = 'NonRetryableError';
}
