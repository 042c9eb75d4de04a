import { closest, distance } from 'fastest-levenshtein';

/** The command line is wrong; the message says how to correct it. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Begins with a space, or is empty. */
export function suggestion(unknown: string, names: readonly string[], mark = ''): string {
  if (names.length === 0) return '';
  const near = closest(unknown, names);
  return distance(unknown, near) <= Math.min(3, near.length / 2)
    ? ` Did you mean "${mark}${near}"?`
    : '';
}
