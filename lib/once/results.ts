import type { BeginOutcome } from '../store/once-store.js';
import type { RunOnceResult } from './attempt.js';
import { valueOfJson } from './texts.js';

export const doneElsewhere = <T>({
  attempts,
  value,
}: BeginOutcome & { readonly status: 'done' }): RunOnceResult<T> => ({
  outcome: 'done-elsewhere',
  attempts,
  ...(valueOfJson(value) as { value?: T }),
});

export const exhausted = <T>({
  attempts,
  error,
}: BeginOutcome & { readonly status: 'exhausted' }): RunOnceResult<T> => ({
  outcome: 'exhausted',
  attempts,
  ...(error !== undefined && { lastError: error }),
});
