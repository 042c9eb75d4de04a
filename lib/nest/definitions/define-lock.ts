import { LockConfigurationError } from '../../errors.js';
import { parseNamedTemplate } from '../../key/index.js';
import {
  constantOptions,
  LOCK_DEFINITION,
  optionsOver,
  type LockDefinitionOptions,
} from '../../options/acquire-options.js';
import { inPlace } from '../../options/in-place.js';
import { plain } from '../../options/schema.js';
import { refuseUnknown } from '../../options/unknown-option.js';
import { checkedOptions, WITH_LOCK } from '../methods/method-options.js';
import { wholeKeyWithLock } from '../methods/with-lock.decorator.js';
import { definitions } from './defined-lock.js';
import type { KeyArguments, LockDefinition } from './definition.types.js';

/**
 * Defines a lock once, for the services, decorated methods, tests and dashboards of an application.
 *
 * @param template As of `@WithLock`, with plain names as placeholders.
 * @param options The defaults of every lock of this definition. A call may override them.
 * @throws LockConfigurationError for a template or options that cannot work
 * @example
 * ```ts
 * import { defineLock } from 'nestjs-holdfast';
 *
 * const orderLock = defineLock('order:<orderId>', { ttl: '10s' });
 *
 * await locks.for(orderLock).run('42', (lock) => charge('42', lock));
 * ```
 */
export function defineLock<const Template extends string>(
  template: Template,
  options: LockDefinitionOptions = {},
): LockDefinition<Template> {
  const keyFrom = parseNamedTemplate(template, 'defineLock');
  const where = `defineLock(${JSON.stringify(template)})`;
  refuseUnknown({ ...LOCK_DEFINITION, called: where }, options);
  inPlace(where, () => checkedOptions(LOCK_DEFINITION.options, options));
  const said = constantOptions(plain(LOCK_DEFINITION.options, options));
  const definition: LockDefinition<Template> = Object.freeze({
    name: template,
    options: said,
    key: (...values: KeyArguments<Template>): string => keyFrom(values[0]),
    WithLock: ((own?: object, ...decorated: unknown[]) => {
      if (decorated.length > 0)
        throw new LockConfigurationError(
          `${where}: its decorator needs parentheses: @orderLock.WithLock().`,
        );
      return wholeKeyWithLock(template, optionsOver(said, plain(WITH_LOCK, own ?? {})));
    }) as LockDefinition<Template>['WithLock'],
  });
  definitions.add(definition);
  return definition;
}
