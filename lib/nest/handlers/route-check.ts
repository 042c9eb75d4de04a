import 'reflect-metadata';
import { LockConfigurationError } from '../../errors.js';
import { parametersFor } from './handler-parameters.js';
import { lockedMethodOf } from '../methods/locked-methods-of.js';
import type { LockedMethod } from '../methods/locked-method.js';
import { alike } from '../../key/locate.js';

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
  const handler: unknown = Reflect.get(controller, locked.propertyKey);
  if (typeof handler !== 'function' || lockedMethodOf(handler) !== locked) return undefined;
  if (Reflect.getMetadata(METHOD, handler) === undefined) return undefined;
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
