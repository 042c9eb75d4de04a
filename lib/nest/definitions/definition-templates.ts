import { LockConfigurationError } from '../../errors.js';
import type { NamedTemplate } from '../../key/index.js';

/** The templates of definitions, apart from `defineLock`, which knows the decorator, so that `LockService` need not. */
const templates = new WeakMap<object, NamedTemplate>();

export function rememberTemplate(definition: object, template: NamedTemplate): void {
  templates.set(definition, template);
}

/** @throws LockConfigurationError for what `defineLock` did not make */
export function templateOf(definition: object): NamedTemplate {
  const template = templates.get(definition);
  if (template !== undefined) return template;
  throw new LockConfigurationError(
    "use() takes what defineLock() returns: const orderLock = defineLock('order:<orderId>').",
  );
}

/** @param values the one value of a template with one placeholder, or all by name */
export function keyFrom(template: NamedTemplate, values: unknown): string {
  const { names } = template;
  const [only = ''] = names;
  const named =
    typeof values === 'object' && values !== null
      ? (values as Readonly<Record<string, unknown>>)
      : names.length === 1
        ? { [only]: values }
        : {};
  return template.resolve(named);
}
