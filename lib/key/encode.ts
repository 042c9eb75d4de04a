import { createHash } from 'node:crypto';
import { LockKeyError } from '../errors.js';

/** Longer encoded values are replaced by their hash, so that a key stays readable and an id of a megabyte does no harm. */
const MAX_VALUE_LENGTH = 256;

/** With the flag `u` a surrogate is matched only where it stands alone. */
const LONE_SURROGATE = /\p{Cs}/u;

/**
 * Characters that a value must not contain raw:
 * - the separator of keys
 * - the braces of Redis hash tags: a value could choose its own Cluster slot
 * - the escape character itself
 * - the brackets of placeholders
 * - all characters that break a line of a log
 */
const ALWAYS_RESERVED = ':{}%<>\\p{Cc}\\u2028\\u2029';

const RESERVED = new RegExp(`[${ALWAYS_RESERVED}]`, 'gu');

/** How a value is encoded where the defaults do not fit. */
export interface EncodeOptions {
  /** The characters to encode (flags `gu`), a superset of the default. Default: the reserved ones. */
  readonly reserved?: RegExp;
  /** Whether the sender of a request chose the value, so that a bad one is answered with 400. Default: `false`. */
  readonly fromRequest?: boolean;
}

/** Names a value by its kind, for an error: never by its content, which may be private or a megabyte long. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined || Number.isNaN(value)) return String(value);
  if (value === Infinity || value === -Infinity) return String(value);
  if (value === '') return 'an empty string';
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Date) return 'a Date';
  if (value instanceof Promise) return 'a Promise';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A UTF-8 escape, as URLs have it. Not `encodeURIComponent`, which leaves `-` `.` `_` and others alone. */
const percentEncode = (character: string): string =>
  Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&');

const missing = (value: unknown): string =>
  `${describeValue(value)}, and all callers without a value would share one lock. Make sure that it is set before the call.`;

/** Why the value has no one text to lock by, or `undefined` when it has. */
const problemOf = (value: unknown): string | undefined => {
  switch (typeof value) {
    case 'bigint':
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : missing(value);
    case 'string':
      if (value === '') return missing(value);
      return LONE_SURROGATE.test(value)
        ? 'not well-formed Unicode: it has half of a surrogate pair. Refuse it before the call.'
        : undefined;
    default:
      return value === undefined || value === null
        ? missing(value)
        : `${describeValue(value)}, which has no one spelling. Use a key function or a path such as <0.id>.`;
  }
};

/**
 * Encodes a value so that it can stand in a key and cannot forge another: `a:b` becomes `a%3Ab`. Values whose texts
 * differ are never encoded alike; the number `1` and the string `'1'` are the same.
 *
 * @param value a non-empty string, finite number, bigint or boolean
 * @param what the name of the value in errors, such as `<order.id>`
 * @throws LockKeyError for every other value: a key such as `order:undefined` is a mistake
 */
export function encodeKeyValue(
  value: unknown,
  what: string,
  { reserved = RESERVED, fromRequest = false }: EncodeOptions = {},
): string {
  const problem = problemOf(value);
  if (problem !== undefined)
    throw new LockKeyError({ problem: `${what} is ${problem}`, fromRequest, what });
  const text = String(value);
  const encoded = text.replace(reserved, percentEncode);
  if (encoded.length <= MAX_VALUE_LENGTH) return encoded;
  // No other value begins like this: elsewhere two hex digits follow a `%`.
  return `%~${createHash('sha256').update(text).digest('hex')}`;
}

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
