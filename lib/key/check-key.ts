import { LockKeyError } from '../errors.js';
import { describeValue } from './encode.js';

/** The longest key, in UTF-16 code units. */
export const MAX_KEY_LENGTH = 1024;

/**
 * The most keys of one call. One script takes them all, and Redis serves no other client meanwhile: 30,000 keys block
 * it for 200 ms.
 */
const MAX_KEYS = 1_000;

/** What the text of a key must not contain, and how to call it in an error. */
const FORBIDDEN: readonly (readonly [RegExp, string])[] = [
  // Redis reads {braces} as a hash tag: a key with braces would choose the Cluster slot, also that of our side keys.
  [/[{}]/u, 'a brace'],
  // No key that was made from a template has one. So this is a template instead of a key, and every call would lock the
  // same key.
  [/[<>]/u, 'a "<" or ">"'],
  [/[\p{Cc}\u2028\u2029]/u, 'a control character'],
  [/\p{Cs}/u, 'half of a surrogate pair'],
];

/** What nearly all keys are made of, and is quicker to recognize than what none must contain. */
const PLAIN = /^[\w:./@|=,~+*-]*$/;

/** Names what the text of a key must not contain and does, or answers `undefined`. */
export const forbiddenIn = (text: string): string | undefined =>
  PLAIN.test(text) ? undefined : FORBIDDEN.find(([pattern]) => pattern.test(text))?.[1];

/**
 * Checks a whole key that was written by hand or by a key function, and returns it.
 *
 * @throws LockKeyError when it is no string, empty, longer than 1024, or has braces, `<`, `>`, control characters or lone
 *   surrogates
 */
export function checkKey(key: unknown): string {
  if (typeof key !== 'string' || key === '')
    throw new LockKeyError({
      problem: `A lock key must be a non-empty string, and this one is ${describeValue(key)}. Make it with lockKey\`order:\${id}\`.`,
    });
  if (key.length > MAX_KEY_LENGTH)
    throw new LockKeyError({
      problem:
        `A lock key has at most ${String(MAX_KEY_LENGTH)} characters, and this one has ${String(key.length)}. ` +
        'Make it with lockKey`order:${id}`, which hashes long values.',
    });
  const forbidden = forbiddenIn(key);
  if (forbidden !== undefined)
    throw new LockKeyError({
      problem: `The lock key ${JSON.stringify(key)} contains ${forbidden}. Make it with lockKey\`order:\${id}\`, which encodes values.`,
    });
  return key;
}

/**
 * Brings the keys of one call into the form that all callers share: each checked, none twice, in code unit order. A
 * call that waits for one of several keys holds only keys before that one, so such calls never wait in a circle.
 *
 * @throws LockKeyError when a key is not valid, when there is none (an empty list would run unlocked), or when there
 *   are more than 1,000
 */
export function canonicalKeys(keys: string | readonly string[]): readonly string[] {
  const list: readonly unknown[] = Array.isArray(keys) ? keys : [keys];
  if (list.length === 1) return Object.freeze([checkKey(list[0])]);
  if (list.length === 0)
    throw new LockKeyError({
      problem:
        'The list of lock keys is empty, and nothing would be locked. Name at least one key.',
    });
  // A Set visits holes, which must not go unchecked.
  const distinct = new Set(list);
  if (distinct.size > MAX_KEYS)
    throw new LockKeyError({
      problem:
        `A call locks at most ${String(MAX_KEYS)} keys, and this one names ${String(distinct.size)}. Redis takes all keys of a call in one step ` +
        'and serves no other client meanwhile. Lock what contains them ("account:7" for all of its orders), or do the work in batches, each under ' +
        'a lock of its own.',
    });
  return Object.freeze(Array.from(distinct, checkKey).sort());
}
