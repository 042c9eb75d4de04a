import 'reflect-metadata';
import { LockConfigurationError } from '../../errors.js';
import { alike, placeholder } from '../../key/placeholders.js';
import type { LockedMethod } from '../methods/locked-method.js';
import { lockedMethodOf } from '../methods/locked-methods-of.js';
import { parametersFor } from './handler-parameters.js';

/** The method of the object, unless another one overrides it. */
function handlerOf(instance: object, locked: LockedMethod): object | undefined {
  const handler: unknown = Reflect.get(instance, locked.propertyKey);
  return typeof handler === 'function' && lockedMethodOf(handler) === locked ? handler : undefined;
}

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
  const handler = handlerOf(instance, locked);
  if (handler === undefined) return;
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

/** Where Nest notes the path of a controller or a handler, and that a method is a route. */
const PATH = 'path';
const METHOD = 'method';

/** The names in `/:shop/orders/{:id}/*rest`; where in doubt too many, so that nothing is refused which may be right. */
const NAMES = /[:*]"?([\p{ID_Start}$_][\p{ID_Continue}$]*)/gu;

/** Groups, and wildcards without a name, give parameters whose names depend on the HTTP adapter. */
const UNCLEAR = /\(|\*(?![\p{ID_Start}$_"])/u;

/**
 * Compares the key templates of a handler with the parameters of its routes.
 *
 * @param prefixes paths that may stand before that of the controller
 * @returns what may be wrong
 * @throws LockConfigurationError for what is
 */
export function checkRoute(
  controller: object,
  locked: LockedMethod,
  prefixes: readonly string[],
): readonly string[] {
  const names = parametersOf(controller, locked, prefixes);
  if (names === undefined) return [];
  const warnings: string[] = [];
  for (const { source, requestPaths, literals, forParameter } of locked.templates) {
    const key = `${locked.where}: the key ${JSON.stringify(source)}`;
    for (const { head, segments } of requestPaths) {
      const [name = ''] = segments;
      if (head !== 'params' || names.includes(name)) continue;
      const problem = `${key} has <params.${name}>, but its route has no parameter "${name}"`;
      const meant = alike(name, names);
      if (meant !== undefined)
        throw new LockConfigurationError(
          `${problem}: did you mean <params.${meant}>? For a value that is set elsewhere use a key function.`,
        );
      const has = names.length > 0 ? ` (it has ${names.join(', ')})` : '';
      warnings.push(
        `${problem}${has}. Unless a guard sets it, every request is answered with 400.`,
      );
    }
    const isRead = (name: string): boolean =>
      requestPaths.some(({ head, segments }) => head === 'params' && segments[0] === name);
    for (const { word, text, isMarked } of literals) {
      if (!names.includes(word) || isRead(word)) continue;
      const problem = `${key} has "${text}", which is plain text, so all calls share one lock`;
      const [parameter] = parametersFor(controller, locked.propertyKey, 'params', [word]);
      const meant =
        parameter === undefined
          ? `<params.${word}>`
          : forParameter(parameter.index, parameter.segments);
      if (isMarked) throw new LockConfigurationError(`${problem}. Write ${meant}.`);
      warnings.push(`${problem}. For the parameter of the route write ${meant}.`);
    }
  }
  return warnings;
}

/** The parameters that the routes of a handler may have; `undefined` when it is no route, or the paths do not tell. */
function parametersOf(
  controller: object,
  locked: LockedMethod,
  prefixes: readonly string[],
): readonly string[] | undefined {
  const handler = handlerOf(controller, locked);
  if (handler === undefined || !Reflect.hasMetadata(METHOD, handler)) return undefined;
  const paths: unknown[] = [
    prefixes,
    Reflect.getMetadata(PATH, controller.constructor),
    Reflect.getMetadata(PATH, handler),
  ].flat();
  const names: string[] = [];
  for (const path of paths) {
    if (path === undefined) continue;
    if (typeof path !== 'string' || UNCLEAR.test(path)) return undefined;
    for (const [, name = ''] of path.matchAll(NAMES)) names.push(name);
  }
  return [...new Set(names)];
}
