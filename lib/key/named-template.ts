import { LockConfigurationError } from '../errors.js';
import { describe } from '../errors/describe.js';
import { NAME } from './key-path.js';
import { templateParts } from './template-parts.js';

/** What placeholders of `@WithLock` mean that are not about the arguments of a call. */
const TAKEN: ReadonlySet<string> = new Set(['class', 'fireTime']);

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
    if (NAME.test(name) && !TAKEN.has(name)) continue;
    throw wrong(
      `has <${name}>, but the placeholders of a definition must be plain names, such as <orderId>: a definition is also used without a request. ` +
        'Give the value a name of its own.',
    );
  }
  const isOne = new Set(insides).size === 1;
  return (values) => {
    const isByName = typeof values === 'object' && values !== null;
    const named = isByName ? (values as Readonly<Record<string, unknown>>) : {};
    return keyOf((index) => (isOne && !isByName ? values : named[insides[index] ?? '']), false);
  };
}
