import 'reflect-metadata';
import { LockConfigurationError } from '../../errors.js';
import { placeholder } from '../../key/key-path.js';
import type { LockedMethod } from '../methods/locked-method.js';
import { lockedMethodOf } from '../methods/locked-methods-of.js';
import { parametersFor } from './handler-parameters.js';

/**
 * Refuses keys that read the raw request:
 * - on a handler that gets the value as a parameter which a pipe may convert. One value could then have two keys.
 * - on a method that no request reaches. Every call of it would fail.
 *
 * @throws LockConfigurationError
 */
export function refuseRawPaths(instance: object, locked: LockedMethod): void {
  const { where, propertyKey, templates } = locked;
  if (templates.every(({ requestPaths }) => requestPaths.length === 0)) return;
  const handler: unknown = Reflect.get(instance, propertyKey);
  if (typeof handler !== 'function' || lockedMethodOf(handler) !== locked) return; // overridden
  for (const { source, requestPaths, forParameter } of templates) {
    for (const path of requestPaths) {
      const problem = `${where}: the key ${JSON.stringify(source)} has ${placeholder(path)}, which is`;
      if (!mayBeHandler(handler))
        throw new LockConfigurationError(
          `${problem} read from the request, and no request reaches this method. Take the value from a parameter (<orderId>), or lock ` +
            'where the request is handled.',
        );
      const { head, segments } = path;
      for (const parameter of parametersFor(instance, propertyKey, head, segments)) {
        const reason = conversionOf(parameter);
        if (reason === undefined) continue;
        throw new LockConfigurationError(
          `${problem} raw. ${reason} later, so "42" and "042" could be two keys of one thing. Write ` +
            `${forParameter(parameter.index, parameter.segments)}, which is read after the pipes.`,
        );
      }
    }
  }
}

/** Pipes convert no texts on their own, and cannot convert what the compiler knows nothing of. */
const UNCONVERTED: readonly unknown[] = [undefined, String, Object];

/** What may convert a parameter. */
function conversionOf({
  pipes: [pipe],
  type,
}: ReturnType<typeof parametersFor>[number]): string | undefined {
  if (pipe !== undefined) return `${pipe} may change it`;
  if (UNCONVERTED.includes(type)) return undefined;
  return `Its parameter has the type ${(type as { readonly name: string }).name}, to which a pipe may convert it`;
}

/** Metadata of Nest for methods of any kind, and of decorators whose methods are called without a request. */
const WITHOUT_REQUEST = /^(?:__(?:interceptors|guards|pipes|exceptionFilters)__|SCHEDUL|EVENT_LI)/;

/** A method with metadata of another package may be a handler of its transport. */
const mayBeHandler = (method: object): boolean =>
  Reflect.getMetadataKeys(method).some(
    (key) => typeof key === 'string' && !WITHOUT_REQUEST.test(key),
  );
