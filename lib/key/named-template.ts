import { LockConfigurationError, LockKeyError } from '../errors.js';
import { describe, shortened } from '../errors/describe.js';
import { forbiddenIn, MAX_KEY_LENGTH } from './check-key.js';
import { encodeKeyValue } from './encode.js';
import { separate } from './separators.js';

/** A template such as `order:<orderId>` whose values are given by name, and not read from a call. */
export interface NamedTemplate {
  /** As it was written. */
  readonly source: string;
  /** What its placeholders are called, each once, in order. */
  readonly names: readonly string[];
  /**
   * The key for these values; the same that `@WithLock` makes of the template.
   *
   * @throws LockKeyError when a value is missing or cannot stand in a key
   */
  resolve(values: Readonly<Record<string, unknown>>): string;
}

const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

/** What placeholders of `@WithLock` mean that are not about the arguments of a call. */
const TAKEN: ReadonlySet<string> = new Set(['class', 'fireTime']);

/**
 * @param where what errors call the place
 * @throws LockConfigurationError when the template cannot work
 */
export function parseNamedTemplate(template: unknown, where: string): NamedTemplate {
  if (typeof template !== 'string')
    throw new LockConfigurationError(
      `${where} needs a key template, received ${describe(template)}. Write ${where}('order:<orderId>').`,
    );
  const wrong = (problem: string): LockConfigurationError =>
    new LockConfigurationError(
      `${where}: the key ${JSON.stringify(shortened(template, MAX_KEY_LENGTH))} ${problem}`,
    );
  if (template === '') throw wrong('is empty. Name what to lock: "order:<orderId>".');
  // A captured group becomes a piece of its own: static texts are even, placeholders odd.
  const pieces = template.split(/<([^<>]*)>/u);
  const texts = pieces.filter((_, index) => index % 2 === 0);
  const placeholders = pieces.filter((_, index) => index % 2 === 1);
  for (const text of texts) {
    const forbidden = forbiddenIn(text);
    if (forbidden !== undefined)
      throw wrong(
        `contains ${forbidden} outside of a placeholder. Placeholders look like <orderId>.`,
      );
  }
  if (texts.join('').length > MAX_KEY_LENGTH)
    throw wrong(
      `is longer than the ${String(MAX_KEY_LENGTH)} characters of a key. Shorten its text.`,
    );
  for (const name of placeholders) {
    if (NAME.test(name) && !TAKEN.has(name)) continue;
    throw wrong(
      `has <${name}>, but the placeholders of a definition must be plain names, such as <orderId>: a definition is also used without a request. ` +
        'Give the value a name of its own.',
    );
  }
  const separation = separate(texts);
  if ('problem' in separation) throw wrong(`is ambiguous: ${separation.problem}`);
  const options = { reserved: separation.reserved, fromRequest: false };
  const values = placeholders.map((name, index) => ({
    name,
    what: `${where}: <${name}>`,
    textAfter: texts[index + 1] ?? '',
  }));
  const [textBefore = ''] = texts;
  return {
    source: template,
    names: [...new Set(placeholders)],
    resolve(given) {
      let key = textBefore;
      for (const { name, what, textAfter } of values)
        key += encodeKeyValue(given[name], what, options) + textAfter;
      if (key.length > MAX_KEY_LENGTH)
        throw new LockKeyError({
          problem: `${where}: the key has ${String(key.length)} characters, more than ${String(MAX_KEY_LENGTH)}. Put fewer values into it.`,
        });
      return key;
    },
  };
}
