import { closest, distance } from 'fastest-levenshtein';

/** What other libraries call it, or where it belongs; each a sentence. */
export type Elsewhere = ReadonlyMap<string, string>;

/** The sentence about an option that does not exist: the one that was probably meant, or where it belongs. Begins with a space. */
export function hintFor(unknown: string, names: readonly string[], elsewhere?: Elsewhere): string {
  const known = elsewhere?.get(unknown);
  if (known !== undefined) return ` ${known}`;
  const near = closest(unknown, names);
  return distance(unknown, near) <= Math.min(3, near.length / 2) ? ` Did you mean "${near}"?` : '';
}

/** What other libraries have, of a lock. */
export const LOCK_ELSEWHERE: Elsewhere = new Map([
  ['timeout', 'Give "wait" for how long to wait, or "maxHold" for how long to hold.'],
  ['duration', 'Give "ttl": how long a lease lasts unless it is renewed.'],
  ['retryCount', 'Give "wait", how long to wait: a waiting call is woken by the release.'],
  ['retryDelay', 'Give "wait", how long to wait: a waiting call is woken by the release.'],
]);
