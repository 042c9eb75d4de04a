import { expect } from '@jest/globals';
import { LockError } from '../../lib/errors.js';

/** What a lock error says to logs. */
export function detailOf(error: unknown): string {
  if (error instanceof LockError) return error.detail;
  throw new Error(`This is no LockError: ${String(error)}`, { cause: error });
}

/** Matches a lock error that says this to logs. */
export function detailed(expected: string | RegExp): unknown {
  const detail: unknown =
    typeof expected === 'string'
      ? expect.stringContaining(expected)
      : expect.stringMatching(expected);
  return expect.objectContaining({ detail });
}
