import { closest, distance } from 'fastest-levenshtein';
import { LockKeyError } from '../errors.js';
import { describeValue } from './encode.js';
import type { Parameter } from './parameter-names.js';

/** What a request offers to a template, before pipes. */
const REQUEST_ROOTS = ['params', 'body', 'query', 'headers', 'user'] as const;
type RequestRoot = (typeof REQUEST_ROOTS)[number];

/** The parts of a request that templates read: raw, before pipes. */
export type RequestValues = Readonly<Partial<Record<RequestRoot, unknown>>>;

/** What stands before a part of the request, so that it does not look like a parameter: `<request.body.id>`. */
const REQUEST = 'request';

/** The part of the request that is spelt alone: `<user.id>`. */
const USER = 'user';

/** The placeholder that means the time a run was scheduled for, unless a parameter has its name. */
const FIRE_TIME = 'fireTime';

/** The placeholder that means the name of the class. No parameter can have that name. */
const CLASS = 'class';

/** One call, as templates read it. */
export interface Call {
  readonly args: readonly unknown[];
  readonly request: RequestValues | undefined;
  readonly className: string | undefined;
  /** The time for which it was scheduled. */
  readonly fireTime: () => string | undefined;
}

/** The method that a placeholder belongs to. */
export interface Method {
  /** As errors call it: `pay()`. */
  readonly called: string;
  /** Whether it is called with a request. */
  readonly isHandler: boolean;
  /** What is known about its parameters, its own source first. */
  readonly sources: readonly (readonly Parameter[])[];
}

/** The inside of a placeholder, taken apart: `order.customer.id` is a head and two segments. */
export interface KeyPath {
  readonly head: string;
  readonly segments: readonly string[];
}

/** A placeholder that reads the request: of `<request.body.order.id>`, the root is `body`, and inside of it is `order.id`. */
export interface RequestPath extends KeyPath {
  readonly root: RequestRoot;
  readonly inside: readonly string[];
}

/** The place that the value of a placeholder is read from. */
export interface Location {
  readonly from: 'argument' | 'rest' | 'request' | 'fire-time' | 'class';
  readonly path: KeyPath;
  /** The path, if it is read from the request. */
  readonly requested?: RequestPath;
  /** The position of the parameter; of a `rest` the first one. */
  readonly index?: number;
  /** The value that the path begins with. */
  readonly start: (call: Call) => unknown;
  /** The problem if `@Cron`, a decorator that may come later, does not come. */
  readonly otherwise?: Problem;
}

/** What is wrong with a placeholder: the end of a sentence about the key. */
export type Problem = string;

const INDEX = /^(?:0|[1-9]\d*)$/u;
/** The name of a parameter. */
const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;
/** Header names have hyphens. */
const SEGMENT = /^[\p{ID_Continue}$-]+$/u;
/** These names lead out of the data and into the code. */
const FORBIDDEN_SEGMENTS: readonly string[] = ['__proto__', 'constructor', 'prototype'];

/** Whether a placeholder can only be about a value of that name. */
export const isPlainName = (name: string): boolean =>
  NAME.test(name) && name !== CLASS && name !== FIRE_TIME;

/** The placeholder as its author wrote it, or the part of it up to some depth. */
export const placeholder = ({ head, segments }: KeyPath, depth = segments.length): string =>
  `<${[head, ...segments.slice(0, depth)].join('.')}>`;

/** How a path of the request is spelt. */
export const requestPath = (root: string, inside: readonly string[]): string =>
  placeholder(
    root === USER
      ? { head: root, segments: inside }
      : { head: REQUEST, segments: [root, ...inside] },
  );

const OTHER_WAYS =
  'Other ways: a position (<0>, <0.id>), a request path (<request.params.id>, <user.id>) or a key function.';

/**
 * Finds where a placeholder is read from. Never guesses: where the sources of a wrapped method disagree about a name, or a handler's
 * parameter is called like a part of the request, it is refused.
 *
 * @param inside what stands between `<` and `>`
 */
export function locate(inside: string, method: Method): Location | Problem {
  if (inside.trim() === '')
    return 'has an empty placeholder. Name a parameter (<orderId>) or a position (<0>).';
  const [head = '', ...segments] = inside.split('.');
  const isIndex = INDEX.test(head);
  if (!(isIndex || NAME.test(head)) || !segments.every((segment) => SEGMENT.test(segment)))
    return (
      `has the placeholder <${inside}>, which is not a path. Write a name or a position and property names, with dots ` +
      'between them and no spaces, brackets or calls (<order.items.0.id>), or use a key function.'
    );
  const forbidden = segments.find((segment) => FORBIDDEN_SEGMENTS.includes(segment));
  if (forbidden !== undefined)
    return `reads "${forbidden}" in <${inside}>, which is never data. Use a key function.`;

  const path = { head, segments };
  const { called, isHandler, sources } = method;
  if (isIndex)
    return tooMany(Number(head), method) ?? argument(path, { index: Number(head), rest: false });
  const requested = requestedBy(path);
  const [found, ...others] = sources.flatMap((source) =>
    source.filter(({ name }) => name === head),
  );
  if (found !== undefined) {
    if (isHandler && requested !== undefined) return ambiguous(path, requested, found, called);
    if (
      others.some(({ index, rest }) => index !== found.index || rest !== found.rest) ||
      isShifted(found, sources)
    )
      return (
        `has <${inside}>, but another decorator has wrapped ${called}, and "${head}" may stand at another position in the ` +
        'wrapper. Write the position (<0>) or use a key function.'
      );
    return found.rest && segments.length === 0
      ? `has <${head}>, which is a list of arguments. Pick one (<${head}.0>) or use a key function.`
      : argument(path, found);
  }
  if (inside === CLASS) return { from: 'class', path, start: ({ className }) => className };
  if (inside === FIRE_TIME)
    return {
      from: 'fire-time',
      path,
      start: ({ fireTime }) => fireTime(),
      otherwise: notFound(path, method),
    };
  if (requested !== undefined)
    return { from: 'request', path, requested, start: ({ request }) => request?.[requested.root] };
  const [root = '', ...within] = withoutRequest(path);
  return isRequestRoot(root) && within.length === 0
    ? `has ${placeholder(path)}, which is a part of the request. Name a property of it: ${requestPath(root, ['id'])}.`
    : notFound(path, method);
}

/** Whether a wrapper that has no parameter of this name has others before it: `(context, ...rest)`. */
const isShifted = ({ name, index }: Parameter, [own = []]: Method['sources']): boolean =>
  !own.some((parameter) => parameter.name === name) &&
  own.some((parameter) => !parameter.rest && parameter.index <= index);

const argument = (path: KeyPath, { index, rest }: Pick<Parameter, 'index' | 'rest'>): Location =>
  rest
    ? { from: 'rest', path, index, start: ({ args }) => args.slice(index) }
    : { from: 'argument', path, index, start: ({ args }) => args[index] };

const isRequestRoot = (head: string): head is RequestRoot =>
  (REQUEST_ROOTS as readonly string[]).includes(head);

const withoutRequest = ({ head, segments }: KeyPath): readonly string[] =>
  head === REQUEST ? segments : [head, ...segments];

/** `<request.body.id>` and `<body.id>`; `undefined` for what is not read from the request. */
function requestedBy(path: KeyPath): RequestPath | undefined {
  const [root = '', ...inside] = withoutRequest(path);
  return isRequestRoot(root) && inside.length > 0 ? { ...path, root, inside } : undefined;
}

function tooMany(index: number, { called, sources }: Method): Problem | undefined {
  const fits = sources.some((source) => index < source.length || source.some(({ rest }) => rest));
  // Without any source the number of parameters is unknown, and a position does not need it.
  if (fits || sources.length === 0) return undefined;
  const count = Math.max(...sources.map(({ length }) => length));
  const parameters = `${String(count)} parameter${count === 1 ? '' : 's'}`;
  return `asks for <${String(index)}>, but ${called} takes ${parameters}, counted from 0. ${OTHER_WAYS}`;
}

/** The word that was probably meant: at most a third of its letters are wrong. */
export const alike = (word: string, candidates: readonly string[]): string | undefined => {
  if (candidates.length === 0) return undefined;
  const nearest = closest(word, candidates);
  return distance(word, nearest) <= Math.max(word.length, nearest.length) / 3 ? nearest : undefined;
};

/** The placeholder that was probably meant, for instance by `<req.params.id>`. */
function meantBy({ head, segments }: KeyPath, names: readonly string[]): string | undefined {
  const meant = alike(head, segments.length > 0 ? [...names, ...REQUEST_ROOTS] : names);
  if (meant !== undefined)
    return names.includes(meant)
      ? placeholder({ head: meant, segments })
      : requestPath(meant, segments);
  const [root = '', ...inside] = segments;
  const meantRoot = inside.length > 0 ? alike(root, REQUEST_ROOTS) : undefined;
  return meantRoot && requestPath(meantRoot, inside);
}

function notFound({ head, segments }: KeyPath, { called, sources }: Method): Problem {
  const missing = placeholder({ head, segments });
  if (sources.length === 0)
    return (
      `has ${missing}, but the source of ${called} cannot be read, so the names of its parameters are not known. ` +
      OTHER_WAYS
    );
  const parameters = sources.flat();
  const names = parameters.flatMap(({ name }) => name ?? []);
  const said = [`has ${missing}, but ${called} has no parameter "${head}"`];
  const meant = meantBy({ head, segments }, names);
  if (meant !== undefined) said.push(`: did you mean ${meant}?`);
  else said.push(names.length > 0 ? ` (it has ${[...new Set(names)].join(', ')}).` : '.');
  const destructured = parameters.find(({ name, rest }) => name === undefined && !rest);
  if (destructured !== undefined) {
    const index = String(destructured.index);
    const inIt = placeholder({ head: index, segments: [head, ...segments] });
    said.push(` Parameter ${index} is destructured: write ${inIt}.`);
  }
  return `${said.join('')} Compilers and minifiers can rename parameters. ${OTHER_WAYS}`;
}

/** The ways to write what could be a parameter or a part of the request. */
function ambiguous(
  path: KeyPath,
  { root, inside }: RequestPath,
  parameter: Parameter,
  called: string,
): Problem {
  const { head, segments } = path;
  const position = placeholder({ head: String(parameter.index), segments });
  const others = [
    placeholder({ head: REQUEST, segments: [root, ...inside] }),
    requestPath(root, inside),
  ];
  const other = others.find((each) => each !== placeholder(path));
  const remedy =
    other === undefined ? 'or rename the parameter' : `or ${other} for the request as it came`;
  return (
    `has ${placeholder(path)}, which is the parameter "${head}" of ${called} and a part of the request. Where a minifier renames the ` +
    `parameter, it would be the request. Write ${position} for the parameter, after its pipes, ${remedy}.`
  );
}

/**
 * Makes the function that reads a placeholder from a call.
 *
 * @param what the name of the placeholder in errors
 */
export function readerOf(
  { path, requested, start }: Location,
  what: string,
): (call: Call) => unknown {
  const read = requested?.inside ?? path.segments;
  /** How many segments stand before those that are read. */
  const before = path.segments.length - read.length;
  // Node's HTTP parser lower-cases the names of headers.
  const segments =
    requested?.root === 'headers'
      ? read.map((segment, depth) => (depth === 0 ? segment.toLowerCase() : segment))
      : read;

  return (call) => {
    const { request } = call;
    if (requested !== undefined && request === undefined)
      throw new LockKeyError({
        problem:
          `${what} is read from the request, but the method was called without one. ` +
          'Take it from a parameter instead, or lock where the request is handled.',
      });
    let value = start(call);
    for (const [depth, segment] of segments.entries()) {
      // Not into strings: for ?ids=42 the path <request.query.ids.0> would find the letter "4".
      if (typeof value !== 'object' || value === null)
        throw new LockKeyError({
          problem:
            `${what} is undefined, because ${placeholder(path, before + depth)} is ${describeValue(value)}. ` +
            'Make sure that it is set before the call.',
          fromRequest: request !== undefined,
          what,
        });
      value = (value as Readonly<Record<string, unknown>>)[segment];
    }
    return value;
  };
}
