import { ALWAYS_RESERVED } from './encode.js';

/** Encoded values consist of these even when they are encoded: a separator made of nothing else would separate nothing. */
const MARK = /[^0-9A-Za-z%~]/u;

/** No `String.raw`: a minifier (terser) renames variables wrongly behind its `\u{`. */
const escapeForClass = (character: string): string =>
  `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`;

/**
 * Finds what has to be encoded in values that stand between these texts, so that two lists of values never make one key.
 *
 * Each text between two values needs a character, its mark, that no value contains raw. Then a key reads in one way only: the
 * first value ends a known distance before the first mark, and so on. `:` is such a mark everywhere. In `<a>-<b>` the mark is
 * `-`, and the values of that key have their own `-` encoded: otherwise `x-y` and `z` would meet `x` and `y-z`.
 *
 * @param texts the static texts around the values, the first and the last included
 * @returns what values must not contain raw, or why no such rule can keep them apart
 */
export function separate(texts: readonly string[]): RegExp | string {
  let marks = '';
  for (const separator of texts.slice(1, -1)) {
    if (separator === '')
      return 'two values stand side by side, so "a", "bc" and "ab", "c" would be one key. Put ":" between them.';
    if (separator.includes(':')) continue;
    const mark = MARK.exec(separator)?.[0];
    if (mark === undefined)
      return (
        `"${separator}" between two values could be part of a value, so different values would be one key. ` +
        'Put ":" between them.'
      );
    marks += escapeForClass(mark);
  }
  return new RegExp(`[${ALWAYS_RESERVED}${marks}]`, 'gu');
}
