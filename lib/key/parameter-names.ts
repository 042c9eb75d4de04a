import type { Expression, MethodDefinition, Options, Pattern } from 'acorn';
import acorn from './acorn.cjs';

// eslint-disable-next-line @typescript-eslint/no-unsafe-function-type -- only its source is read, it is never called
export type SourceFunction = Function;

/** One parameter of a method, as its source declares it. */
export interface Parameter {
  readonly index: number;
  /** `undefined` when it is destructured, or is not written down at all (`arguments`). */
  readonly name: string | undefined;
  /** Whether it takes all further arguments. */
  readonly rest: boolean;
}

/** What surrounds a method is not there to be seen, so nothing may depend on it. */
const OPTIONS = {
  ecmaVersion: 'latest',
  allowAwaitOutsideFunction: true,
  allowSuperOutsideMethod: true,
  allowImportExportEverywhere: true,
  checkPrivateFields: false,
} as const satisfies Partial<Options>;

/** Modules are what Nest applications are made of; a sloppy script may have what a module must not. */
const parseExpression = (source: string): Expression | undefined => {
  for (const sourceType of ['module', 'script'] as const) {
    try {
      return acorn().parseExpressionAt(source, 0, { ...OPTIONS, sourceType });
    } catch {
      // Not in this language: `function () { [native code] }` is in none.
    }
  }
  return undefined;
};

const nameOf = (pattern: Pattern): string | undefined => {
  if (pattern.type === 'AssignmentPattern') return nameOf(pattern.left);
  if (pattern.type === 'RestElement') return nameOf(pattern.argument);
  return pattern.type === 'Identifier' ? pattern.name : undefined;
};

const toParameters = (patterns: readonly Pattern[], source: string): readonly Parameter[] => {
  const parameters = patterns.map((pattern, index) => ({
    index,
    name: nameOf(pattern),
    rest: pattern.type === 'RestElement',
  }));
  // Wrappers, and async methods compiled for a target below ES2017, read more arguments than they declare.
  const open = /\barguments\b/u.test(source) && !parameters.some(({ rest }) => rest);
  return open
    ? [...parameters, { index: parameters.length, name: undefined, rest: true }]
    : parameters;
};

const sourceOf = (code: SourceFunction): string => Function.prototype.toString.call(code);

/** The methods, getters and setters in the source of a class; none when it is no class, or cannot be read. */
const membersOf = (source: string): readonly MethodDefinition[] => {
  const expression = parseExpression(source);
  const members = expression?.type === 'ClassExpression' ? expression.body.body : [];
  return members.filter((member) => member.type === 'MethodDefinition');
};

/** The parameters that the method's own source declares, or `undefined` when it has none to read (a Proxy, a bound function). */
export function parametersOf(method: SourceFunction): readonly Parameter[] | undefined {
  const source = sourceOf(method);
  const expression = parseExpression(source);
  if (expression?.type === 'FunctionExpression' || expression?.type === 'ArrowFunctionExpression')
    return toParameters(expression.params, source);
  // A method is no expression: `pay(id) {}` reads as a call followed by a block. It needs a class around it.
  const [member] = membersOf(`class extends Object { ${source} }`);
  return member && toParameters(member.value.params, source);
}

/**
 * The parameters of the method of that name in the source of the class: what the method said before other decorators wrapped
 * it. `undefined` when the class cannot be read, does not declare it itself, or computes its name (symbols).
 */
export function declaredParameters(
  owner: SourceFunction | undefined,
  name: PropertyKey,
): readonly Parameter[] | undefined {
  if (owner === undefined || typeof name === 'symbol') return undefined;
  const source = sourceOf(owner);
  const member = membersOf(source).findLast(
    (each) => !each.static && each.kind === 'method' && spelled(each) === String(name),
  );
  return (
    member && toParameters(member.value.params, source.slice(member.value.start, member.value.end))
  );
}

const spelled = ({ key, computed }: MethodDefinition): string | undefined => {
  if (key.type === 'Literal') return String(key.value);
  return !computed && key.type === 'Identifier' ? key.name : undefined;
};

/**
 * All that can be read about a method's parameters: its own source first, then, when that is the source of a wrapper, the
 * declaration in the class. Empty when nothing can be read.
 */
export function parameterSources(
  method: SourceFunction,
  owner: SourceFunction | undefined,
  name: PropertyKey,
): readonly (readonly Parameter[])[] {
  const own = parametersOf(method);
  const isDeclaration =
    own !== undefined && owner !== undefined && sourceOf(owner).includes(sourceOf(method));
  const declared = isDeclaration ? undefined : declaredParameters(owner, name);
  return [own, declared].filter((parameters) => parameters !== undefined);
}
