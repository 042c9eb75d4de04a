import { LockConfigurationError, LockKeyError } from '../errors.js';
import { shortened } from '../errors/describe.js';
import { forbiddenIn, MAX_KEY_LENGTH } from './check-key.js';
import { encodeKeyValue } from './encode.js';
import { separate } from './separators.js';

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
