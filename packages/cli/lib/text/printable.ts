/**
 * Control characters could move the cursor, and direction marks could swap what is read. Every client that can write to
 * Redis can send them.
 */
const UNSAFE =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u061C\u200B\u200E\u200F\u202A-\u202E\u2060\u2066-\u2069\uFEFF\u{E0000}-\u{E007F}]/gu;

const codeOf = (character: string): string => (character.codePointAt(0) ?? 0).toString(16);

/** A text from another source, on one line and harmless: other characters are shown as `\u{1b}`. */
export const printable = (text: string): string =>
  text.replace(UNSAFE, (character) => `\\u{${codeOf(character)}}`);

/** What JSON leaves as it is, and a terminal may not: in the notation of JSON. Such characters stand within its strings only. */
const UNSAFE_IN_JSON = /[\x7F-\x9F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g;

/** One JSON document. A number without an end is `null`. */
export const toJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    UNSAFE_IN_JSON,
    (character) => `\\u${codeOf(character).padStart(4, '0')}`,
  );
