import { LockConfigurationError, LockKeyError } from '../errors.js';
import { describe, shortened } from '../errors/describe.js';
import { forbiddenIn, MAX_KEY_LENGTH } from './check-key.js';
import { encodeKeyValue, separate } from './encode.js';
import { isPlainName } from './placeholders.js';

/**
 * Takes a template apart at its placeholders, and puts keys together.
 *
 * @param where how errors call the place, such as `@WithLock on OrdersService.pay`
 * @throws LockConfigurationError when no key can be made of it
 */
export function templateParts(template: string, where: string) {
  const wrong = (problem: string): LockConfigurationError =>
    new LockConfigurationError(
      `${where}: the key ${JSON.stringify(shortened(template, MAX_KEY_LENGTH))} ${problem}`,
    );
  if (template === '') throw wrong('is empty. Name what to lock: "order:<orderId>".');
  // A captured group becomes a piece of its own: static texts are even, placeholders odd.
  const pieces = template.split(/<([^<>]*)>/u);
  const texts = pieces.filter((_, index) => index % 2 === 0);
  /** What stands between `<` and `>`. */
  const insides = pieces.filter((_, index) => index % 2 === 1);
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
  const reserved = separate(texts);
  if (typeof reserved === 'string') throw wrong(`is ambiguous: ${reserved}`);
  const [textBefore = '', ...textsAfter] = texts;
  const whats = insides.map((inside) => `${where}: <${inside}>`);

  /** @throws LockKeyError when a value is missing or cannot stand in a key */
  const keyOf = (valueAt: (index: number) => unknown, fromRequest: boolean): string => {
    let key = textBefore;
    for (const [index, what] of whats.entries())
      key +=
        encodeKeyValue(valueAt(index), what, { reserved, fromRequest }) + (textsAfter[index] ?? '');
    if (key.length <= MAX_KEY_LENGTH) return key;
    throw new LockKeyError({
      problem: `${where}: the key has ${String(key.length)} characters, more than ${String(MAX_KEY_LENGTH)}. Put fewer values into it.`,
      fromRequest,
    });
  };
  return { texts, insides, whats, wrong, keyOf };
}

/**
 * Parses a template such as `order:<orderId>` whose values are given, and not read from a call.
 *
 * @param where what errors call the place
 * @returns the key for values by name, or for the one value of a template with one placeholder: the same that `@WithLock`
 *   makes. It throws a LockKeyError when a value is missing or cannot stand in a key
 * @throws LockConfigurationError when the template cannot work
 */
export function parseNamedTemplate(template: unknown, where: string): (values: unknown) => string {
  if (typeof template !== 'string')
    throw new LockConfigurationError(
      `${where} needs a key template, received ${describe(template)}. Write ${where}('order:<orderId>').`,
    );
  const { insides, wrong, keyOf } = templateParts(template, where);
  for (const name of insides) {
    if (isPlainName(name)) continue;
    throw wrong(
      `has <${name}>, but the placeholders of a definition must be plain names, such as <orderId>: a definition is also ` +
        'used without a request. Give the value a name of its own.',
    );
  }
  const isOne = new Set(insides).size === 1;
  return (values) => {
    const isByName = typeof values === 'object' && values !== null;
    const named = isByName ? (values as Readonly<Record<string, unknown>>) : {};
    return keyOf((index) => (isOne && !isByName ? values : named[insides[index] ?? '']), false);
  };
}
