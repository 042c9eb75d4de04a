import { closest, distance } from 'fastest-levenshtein';
import {
  isIndex,
  isRequestRoot,
  placeholder,
  REQUEST,
  REQUEST_ROOTS,
  requestPathOf,
  type KeyPath,
  type Problem,
  type RequestPath,
} from './key-path.js';
import type { Parameter } from './parameter-names.js';

/** Where a call keeps the value that a path begins with. */
export type Location =
  | { readonly from: 'argument'; readonly index: number }
  /** All arguments from `index` on. */
  | { readonly from: 'rest'; readonly index: number }
  | { readonly from: 'request'; readonly path: RequestPath }
  /** The fire time of a method with `@Cron`, a decorator that may come later; `otherwise` is the problem if it does not. */
  | { readonly from: 'fire-time'; readonly otherwise: string }
  | { readonly from: 'class' };

/** The placeholder that means the time a run was scheduled for, unless a parameter has its name. */
const FIRE_TIME = 'fireTime';

/** The placeholder that means the name of the class. No parameter can have that name. */
const CLASS = 'class';

type Sources = readonly (readonly Parameter[])[];

const OTHER_WAYS =
  'Other ways: a position (<0>, <0.id>), a request path (<params.id>, <body.id>, <query.id>, <headers.x-id>, <user.id>) or a ' +
  'key function.';

const atIndex = (index: number, sources: Sources, method: string): Location | Problem => {
  const fits = sources.some((source) => index < source.length || source.some(({ rest }) => rest));
  // Without any source the number of parameters is unknown, and a position does not need it.
  if (fits || sources.length === 0) return { from: 'argument', index };
  const count = Math.max(...sources.map(({ length }) => length));
  const parameters = `${String(count)} parameter${count === 1 ? '' : 's'}`;
  return `asks for <${String(index)}>, but ${method} takes ${parameters}, counted from 0. ${OTHER_WAYS}`;
};

/** The word that was probably meant: at most a third of its letters are wrong. */
export const alike = (word: string, candidates: readonly string[]): string | undefined => {
  if (candidates.length === 0) return undefined;
  const nearest = closest(word, candidates);
  return distance(word, nearest) <= Math.max(word.length, nearest.length) / 3 ? nearest : undefined;
};

const notFound = (path: KeyPath, sources: Sources, method: string): Problem => {
  if (sources.length === 0)
    return (
      `has ${placeholder(path)}, but the source of ${method} cannot be read, so the names of its parameters are not known. ` +
      OTHER_WAYS
    );
  const parameters = sources.flat();
  const names = parameters.flatMap(({ name }) => name ?? []);
  const said = [`has ${placeholder(path)}, but ${method} has no parameter "${path.head}"`];
  const suggestion = alike(
    path.head,
    path.segments.length > 0 ? [...names, ...REQUEST_ROOTS] : names,
  );
  if (suggestion !== undefined)
    said.push(`: did you mean ${placeholder({ ...path, head: suggestion })}?`);
  else said.push(names.length > 0 ? ` (it has ${[...new Set(names)].join(', ')}).` : '.');
  const destructured = parameters.find(({ name, rest }) => name === undefined && !rest);
  if (destructured !== undefined) {
    const { index } = destructured;
    said.push(
      ` Parameter ${String(index)} is destructured: write ${placeholder({ head: String(index), segments: [path.head, ...path.segments] })}.`,
    );
  }
  return `${said.join('')} Compilers and minifiers can rename parameters. ${OTHER_WAYS}`;
};

/** The ways to write what could be a parameter or a part of the request. */
function ambiguous(
  path: KeyPath,
  requested: RequestPath,
  parameter: Parameter,
  method: string,
): Problem {
  const { head, segments } = path;
  const position = placeholder({ head: String(parameter.index), segments });
  const other =
    head === REQUEST
      ? 'or rename the parameter'
      : `or ${placeholder({ head: REQUEST, segments: [requested.head, ...requested.segments] })} for the request as it came`;
  return (
    `has ${placeholder(path)}, which is the parameter "${head}" of ${method} and a part of the request. Where a minifier renames the ` +
    `parameter, it would be the request. Write ${position} for the parameter, after its pipes, ${other}.`
  );
}

/** What a method is. */
interface Method {
  /** As errors call it: `pay()`. */
  readonly called: string;
  /** Whether it is called with a request. */
  readonly isHandler: boolean;
}

/**
 * Finds where the head of a path is read from. Never guesses: where the sources of a wrapped method disagree about a name, or a handler's
 * parameter is called like a part of the request, it is refused.
 *
 * @param sources what is known about the parameters, the method's own source first
 */
export function locate(
  path: KeyPath,
  sources: Sources,
  { called: method, isHandler }: Method,
): Location | Problem {
  const { head, segments } = path;
  if (isIndex(head)) return atIndex(Number(head), sources, method);

  const requested = requestPathOf(path);
  const [found, ...others] = sources.flatMap((source) =>
    source.filter(({ name }) => name === head),
  );
  if (found !== undefined) {
    if (isHandler && requested !== undefined) return ambiguous(path, requested, found, method);
    if (others.some(({ index, rest }) => index !== found.index || rest !== found.rest))
      return (
        `has ${placeholder(path)}, but another decorator has wrapped ${method}, and "${head}" stands at another position in the ` +
        'wrapper. Write the position (<0>) or use a key function.'
      );
    if (!found.rest) return { from: 'argument', index: found.index };
    return segments.length > 0
      ? { from: 'rest', index: found.index }
      : `has <${head}>, which is a list of arguments. Pick one (<${head}.0>) or use a key function.`;
  }
  if (head === CLASS && segments.length === 0) return { from: 'class' };
  if (head === FIRE_TIME && segments.length === 0)
    return { from: 'fire-time', otherwise: notFound(path, sources, method) };
  if (requested !== undefined) return { from: 'request', path: requested };
  return isRequestRoot(head)
    ? `has <${head}>, which is a part of the request. Name a property of it: <${head}.id>.`
    : notFound(path, sources, method);
}
