import 'reflect-metadata';
import { PARAMETERS } from '../transports/transport.js';
import { PATTERN } from './own-answers.js';

/** Where `@UsePipes` notes its pipes. */
const PIPES = '__pipes__';

/** What `@SubscribeMessage` notes on a handler. */
export const MESSAGE = 'websockets:message_mapping';

/** What `@Query`, `@Mutation` and `@Subscription` of `@nestjs/graphql` note on a handler, and `@ResolveField`. */
const OF_RESOLVERS = ['graphql:resolver_type', 'graphql:resolve_property'];

/** How Nest numbers the parts of a request. Payloads of messages, and arguments of resolvers, have the number of bodies. */
const NUMBERS: { readonly body: string; readonly [root: string]: string } = {
  body: '3',
  query: '4',
  params: '5',
  headers: '6',
};

/** As Nest notes it of a parameter. */
interface Noted {
  readonly index: number;
  readonly data?: unknown;
  readonly pipes?: readonly unknown[];
  /** From Nest 12 on. */
  readonly schema?: unknown;
}

/** What Nest assumes of handlers of messages whose parameters have no decorators. */
const UNDECORATED: readonly (readonly [string, Readonly<Record<string, Noted>>])[] = [
  [PATTERN, { '3:0': { index: 0 } }],
  [MESSAGE, { '3:1': { index: 1 } }],
];

/** A parameter of a handler that is made of a part of the request. */
interface HandlerParameter {
  readonly index: number;
  /** The path inside the parameter. */
  readonly segments: readonly string[];
  /** What may convert it, by a pipe of its decorator, its method or its class, or by its type: a sentence without its end. */
  readonly conversion: string | undefined;
}

/** Pipes convert no texts on their own, and cannot convert what the compiler knows nothing of. */
const UNCONVERTED: readonly unknown[] = [undefined, String, Object];

/**
 * The parameters that a handler is given of one value of the request, or of what contains that value.
 *
 * @param root the part of the request: `params`
 */
export function parametersFor(
  controller: object,
  propertyKey: string | symbol,
  root: string,
  path: readonly string[],
): readonly HandlerParameter[] {
  const handler = Reflect.get(controller, propertyKey) as object;
  const { constructor: owner } = controller;
  const has = (key: string): boolean => Reflect.hasMetadata(key, handler);
  const noted =
    (Reflect.getMetadata(PARAMETERS, owner, propertyKey) as Record<string, Noted> | undefined) ??
    UNDECORATED.find(([key]) => has(key))?.[1] ??
    {};
  const types = (Reflect.getMetadata('design:paramtypes', controller, propertyKey) ??
    []) as readonly { readonly name: string }[];
  const ofAll = [handler, owner].flatMap(
    (target) => (Reflect.getMetadata(PIPES, target) ?? []) as readonly unknown[],
  );
  const number = OF_RESOLVERS.some(has) && root === 'params' ? NUMBERS.body : NUMBERS[root];
  const [first = '', ...rest] = path;
  // Names of headers have no case.
  const same = (name: string): boolean =>
    root === 'headers' ? name.toLowerCase() === first.toLowerCase() : name === first;
  const found: HandlerParameter[] = [];
  for (const [key, { index, data, pipes = [], schema }] of Object.entries(noted)) {
    if (key.split(':')[0] !== number) continue;
    const isWhole = data === undefined || data === null || data === '';
    if (!isWhole && !(typeof data === 'string' && same(data))) continue;
    const pipe = schema === undefined ? [...pipes, ...ofAll].map(nameOf)[0] : 'Its schema';
    const type = UNCONVERTED.includes(types[index]) ? undefined : types[index]?.name;
    found.push({
      index,
      segments: isWhole ? path : rest,
      conversion: pipe === undefined ? conversionTo(type) : `${pipe} may change it`,
    });
  }
  return found;
}

function conversionTo(type: string | undefined): string | undefined {
  if (type === undefined) return undefined;
  const named = type === '' ? 'a type without a name' : `the type ${type}`;
  return `Its parameter has ${named}, to which a pipe may convert it`;
}

/** A pipe; an object without a prototype has no constructor. */
interface Named {
  readonly constructor?: { readonly name: string };
}

function nameOf(pipe: unknown): string {
  const owner = typeof pipe === 'function' ? pipe : (pipe as Named).constructor;
  const { name = '' } = owner ?? {};
  return name === '' ? 'A pipe without a name' : name;
}
