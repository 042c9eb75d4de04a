import 'reflect-metadata';
import { LockConfigurationError } from '../../errors.js';
import { alike, placeholder, requestPath } from '../../key/placeholders.js';
import type { LockedMethod } from '../methods/locked-method.js';
import { lockedMethodOf } from '../methods/locked-methods-of.js';
import { takesOver } from '../transports/http.js';
import { MESSAGE, parametersFor } from './handler-parameters.js';
import { isGateway, isRoute, PATTERN } from './own-answers.js';

const OF_GATEWAYS: readonly unknown[] = ['afterInit', 'handleConnection', 'handleDisconnect'];

/** The metadata by which `@nestjs/bullmq` knows that a method listens to its emitters. */
const OF_EMITTERS = [
  ['bullmq:worker_events_metadata', '@OnWorkerEvent()'],
  ['bullmq:queue_events_metadata', '@OnQueueEvent()'],
] as const;

/** The metadata of `@Catch`. */
const FILTER = '__filterCatchExceptions__';

/** The metadata of `@OnEvent`, in `@nestjs/event-emitter`. */
const EVENTS = 'EVENT_LISTENER_METADATA';

/**
 * Refuses locks of methods that Nest calls in ways which do not fit:
 * - methods whose result it ignores. A refused lock would be an unhandled rejection, and end the process.
 * - handlers that send the response themselves, where a call may end without them: it would get no response.
 * - message handlers whose key may mean a parameter as well as a part of the request. Where parameters have decorators,
 *   this is known when the class is defined; these handlers need none, and are known by decorators that may stand above
 *   `@WithLock`.
 *
 * @throws LockConfigurationError
 */
export function refuseUnfit(instance: object, locked: LockedMethod): void {
  const { where, propertyKey } = locked;
  const handler = handlerOf(instance, locked);
  if (handler === undefined) return;
  const noted = (key: string): unknown => Reflect.getMetadata(key, handler);
  const calls = ignored(instance, propertyKey, noted);
  if (calls !== undefined)
    throw new LockConfigurationError(
      `${where}: Nest calls ${calls} without looking what becomes of it, so a refused lock would end the process. Lock inside of it, ` +
        'with tryRun() or run() in a try block.',
    );
  if (locked.mayReplaceMethod && takesOver(instance.constructor, propertyKey))
    throw new LockConfigurationError(
      `${where}: the handler sends the response (@Res() or @Next()), so a call that does not run it would get none. ` +
        'Return the answer, or write @Res({ passthrough: true }).',
    );
  if (handlesMessages(handler)) for (const template of locked.templates) template.checkHandler();
}

function ignored(
  instance: object,
  propertyKey: string | symbol,
  noted: (key: string) => unknown,
): string | undefined {
  if (OF_GATEWAYS.includes(propertyKey) && isGateway(instance.constructor))
    return `${String(propertyKey)}() of a gateway`;
  if (propertyKey === 'catch' && Reflect.hasMetadata(FILTER, instance.constructor))
    return 'catch() of an exception filter';
  const listens = OF_EMITTERS.find(([key]) => noted(key) !== undefined);
  if (listens !== undefined) return `a method with ${listens[1]}`;
  if ([noted(EVENTS)].flat().some(throwsOn))
    return 'a method with @OnEvent() and suppressErrors: false';
  return [noted(PATTERN)].flat().some(isOfCall) ? 'a method with @GrpcStreamCall()' : undefined;
}

/** Whether it handles messages, of a microservice or a gateway. */
const handlesMessages = (handler: object): boolean =>
  [PATTERN, MESSAGE].some((key) => Reflect.hasMetadata(key, handler));

/** Whether the errors of the listener are not logged for it. */
const throwsOn = (event: unknown): boolean =>
  (event as { readonly options?: { readonly suppressErrors?: unknown } } | undefined)?.options
    ?.suppressErrors === false;

/** Whether the handler is given the call of gRPC itself. */
const isOfCall = (pattern: unknown): boolean =>
  (pattern as { readonly streaming?: unknown } | undefined)?.streaming === 'pt_stream';

/** The method of the object, unless another one overrides it. */
function handlerOf(instance: object, locked: LockedMethod): object | undefined {
  const handler: unknown = Reflect.get(instance, locked.propertyKey);
  return typeof handler === 'function' && lockedMethodOf(handler) === locked ? handler : undefined;
}

/**
 * Refuses the options of `bind()` for a handler: its requests lock before their object is known.
 *
 * @throws LockConfigurationError
 */
export function refuseDefaults(instance: object, locked: LockedMethod): void {
  const handler = handlerOf(instance, locked);
  if (handler === undefined || (!isRoute(handler) && !handlesMessages(handler))) return;
  throw new LockConfigurationError(
    `${locked.where}: requests lock before their object is known, so they would ignore the options of bind(). Give them to ` +
      'LockModule.forFeature() in the module of its class.',
  );
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
      const { root, inside } = path;
      for (const parameter of parametersFor(instance, propertyKey, root, inside)) {
        const { index, segments, conversion } = parameter;
        if (conversion === undefined) continue;
        throw new LockConfigurationError(
          `${problem} raw. ${conversion} later, so "42" and "042" could be two keys of one thing. Write ` +
            `${forParameter(index, segments)}, which is read after the pipes.`,
        );
      }
    }
  }
}

/** Metadata of Nest for methods of any kind, and of decorators whose methods are called without a request. */
const WITHOUT_REQUEST = /^(?:__(?:interceptors|guards|pipes|exceptionFilters)__|SCHEDUL|EVENT_LI)/;

/** A method with metadata of another package may be a handler of its transport. */
const mayBeHandler = (method: object): boolean =>
  Reflect.getMetadataKeys(method).some(
    (key) => typeof key === 'string' && !WITHOUT_REQUEST.test(key),
  );

/** The part of a request that its route decides about. */
const PARAMS = 'params';

/** Where Nest notes the path of a controller or a handler. */
const PATH = 'path';

/** The names in `/:shop/orders/{:id}/*rest`; where in doubt too many, so that nothing is refused which may be right. */
const NAMES = /[:*]"?([\p{ID_Start}$_][\p{ID_Continue}$]*)/gu;

/** Groups, and wildcards without a name, give parameters whose names depend on the HTTP adapter. */
const UNCLEAR = /\(|\*(?![\p{ID_Start}$_"])/u;

/**
 * Checks a method's key templates: plain text may be meant as a placeholder, and a spelling may be deprecated. In a handler
 * of HTTP, also compares the templates with the parameters of its routes.
 *
 * @param prefixes paths that may stand before that of a controller; none for what is no controller
 * @returns what may be wrong
 * @throws LockConfigurationError for what is
 */
export function checkKeys(
  instance: object,
  locked: LockedMethod,
  prefixes: readonly string[] | undefined,
): readonly string[] {
  const names = prefixes && parametersOf(instance, locked, prefixes);
  const warnings: string[] = [];
  for (const template of locked.templates) {
    const key = `${locked.where}: the key ${JSON.stringify(template.source)}`;
    for (const { word, text, isParameter } of template.literals)
      if (isParameter)
        warnings.push(
          `${key} has "${text}", which is plain text, so all calls share one lock. For the parameter write <${word}>.`,
        );
    if (template.deprecated !== undefined) warnings.push(`${key} ${template.deprecated}`);
    if (names === undefined) continue;
    const paths = template.requestPaths.filter(({ root }) => root === PARAMS);
    const read = paths.map(({ inside: [name] }) => name);
    for (const path of paths) {
      const [name = '', ...rest] = path.inside;
      if (names.includes(name)) continue;
      const problem = `${key} has ${placeholder(path)}, but its route has no parameter "${name}"`;
      const meant = alike(name, names);
      if (meant !== undefined)
        throw new LockConfigurationError(
          `${problem}: did you mean ${requestPath(PARAMS, [meant, ...rest])}? For a value that is set elsewhere use a key function.`,
        );
      const has = names.length > 0 ? ` (it has ${names.join(', ')})` : '';
      warnings.push(
        `${problem}${has}. Unless a guard sets it, every request is answered with 400.`,
      );
    }
    for (const { word, text, isMarked } of template.literals) {
      if (!names.includes(word) || read.includes(word)) continue;
      const problem = `${key} has "${text}", which is plain text, so all calls share one lock`;
      const [parameter] = parametersFor(instance, locked.propertyKey, PARAMS, [word]);
      const meant =
        parameter === undefined
          ? requestPath(PARAMS, [word])
          : template.forParameter(parameter.index, parameter.segments);
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
  if (handler === undefined || !isRoute(handler)) return undefined;
  const noted = [controller.constructor, handler].map(
    (on) => Reflect.getMetadata(PATH, on) as unknown,
  );
  const paths = [...prefixes, ...noted.flat()].filter((path) => path !== undefined);
  const isClear = (path: unknown): path is string =>
    typeof path === 'string' && !UNCLEAR.test(path);
  if (!paths.every(isClear)) return undefined;
  const names = paths.flatMap((path) => Array.from(path.matchAll(NAMES), ([, name = '']) => name));
  return [...new Set(names)];
}
