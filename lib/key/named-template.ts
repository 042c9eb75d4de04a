import { LockConfigurationError } from '../errors.js';
import { describe } from '../errors/describe.js';
import { NAME } from './key-path.js';
import { templateParts } from './template-parts.js';

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
  const { insides, wrong, keyOf } = templateParts(template, where);
  for (const name of insides) {
    if (NAME.test(name) && !TAKEN.has(name)) continue;
    throw wrong(
      `has <${name}>, but the placeholders of a definition must be plain names, such as <orderId>: a definition is also used without a request. ` +
        'Give the value a name of its own.',
    );
  }
  return {
    source: template,
    names: [...new Set(insides)],
    resolve: (given) => keyOf((index) => given[insides[index] ?? ''], false),
  };
}
