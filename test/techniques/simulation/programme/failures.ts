import { LockError } from '../../../../lib/errors.js';
import type { History } from '../history.js';

/** Work has failed, as it was planned. */
export class PlannedFailure extends Error {}

/** Writes down that a call was refused, or failed. */
export function recordFailure(
  history: History,
  who: { readonly client: string; readonly ask: number },
  error: unknown,
): void {
  const isRefusal = error instanceof LockError && error.code === 'LOCK_NOT_ACQUIRED';
  if (isRefusal) history.record({ type: 'refused', ...who });
  else history.record({ type: 'failed', ...who, error: errorName(error) });
}

/** What aborts comes from another realm than `Error` does, in a test. */
export const errorName = (error: unknown): string =>
  (error as { readonly name?: string } | undefined)?.name ?? String(error);
