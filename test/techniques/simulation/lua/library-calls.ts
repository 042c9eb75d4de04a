import type { CallExpression, Expression } from 'luaparse';
import { patternOf } from './patterns.js';
import { refuse, type CallCode, type Scope, type Unit } from './scope.js';

/** Functions of Lua and Redis, called by their names: what may be known of a call when it is compiled. */

/** The arguments of a call: the code of each, for one value, and of all as an array. */
interface Arguments {
  readonly node: CallExpression;
  readonly each: readonly string[];
  readonly list: string;
  /** Whether the last of them may be any number of values. */
  readonly hasOpenEnd: boolean;
  readonly unit: Unit;
}

type Emit = (args: Arguments) => CallCode;

interface LibraryFunction {
  readonly least: number;
  readonly most: number;
  /** Of how many arguments Lua takes notice. */
  readonly noticed: number;
  readonly emit: Emit;
}

const ONE = 'one';

const fixed = (name: string, least: number, most = least, noticed = most): LibraryFunction => ({
  least,
  most,
  noticed,
  emit: ({ each }) => ({ code: `${name}(${each.join(', ')})`, gives: ONE }),
});

const extreme = (name: string): LibraryFunction => ({
  least: 1,
  most: Infinity,
  noticed: Infinity,
  emit: ({ list }) => ({ code: `${name}(...${list})`, gives: ONE }),
});

const command = (name: string): LibraryFunction => ({
  least: 1,
  most: Infinity,
  noticed: Infinity,
  // Lua counts the line in which the arguments begin, and so do errors.
  emit: ({ list, hasOpenEnd, node }) => ({
    code: `host.${name}(${hasOpenEnd ? `[...${list}]` : list}, ${node.base.loc.end.line})`,
    gives: ONE,
  }),
});

const FUNCTIONS: Readonly<Record<string, LibraryFunction>> = {
  type: fixed('type', 1),
  tonumber: fixed('tonumber', 1, 1, 2),
  tostring: fixed('tostring', 1),
  pcall: { least: 1, most: Infinity, noticed: Infinity, emit: protectedCall },
  select: { least: 1, most: Infinity, noticed: Infinity, emit: selection },
  unpack: {
    ...fixed('unpack', 1, 1, 3),
    emit: ({ each }) => ({ code: `unpack(${each.join(', ')})`, gives: 'many' }),
  },
  'math.max': extreme('max'),
  'math.min': extreme('min'),
  'math.ceil': fixed('ceil', 1),
  'math.floor': fixed('floor', 1),
  'table.concat': fixed('concat', 1, 2, 4),
  'table.insert': { ...fixed('insert', 2, 2, 3), emit: insertion },
  'string.sub': fixed('sub', 2, 3),
  'string.find': { least: 2, most: 4, noticed: 4, emit: finding },
  'string.match': { least: 2, most: 3, noticed: 3, emit: matching },
  'string.format': { least: 1, most: Infinity, noticed: Infinity, emit: formatting },
  'redis.call': command('call'),
  'redis.pcall': command('pcall'),
  'redis.error_reply': fixed('errorReply', 1),
  'redis.status_reply': fixed('statusReply', 1),
};

/** Names that mean something only where the compiler looks for them. */
const ELSEWHERE = new Set(['math.huge', 'string.gmatch', 'ipairs']);
const ROOMS = new Set(['math', 'string', 'table', 'redis']);

/** The name of what the library has, like `math.max`; `undefined` for what the script has itself. */
export function libraryName(node: Expression, scope: Scope): string | undefined {
  if (node.type === 'Identifier') {
    if (scope.find(node.name) !== undefined || node.name === 'KEYS' || node.name === 'ARGV')
      return undefined;
    return known(node.name, node);
  }
  if (node.type !== 'MemberExpression' || node.base.type !== 'Identifier') return undefined;
  const { name } = node.base;
  if (!ROOMS.has(name) || scope.find(name) !== undefined) return undefined;
  return known(`${name}.${node.identifier.name}`, node);
}

function known(name: string, node: Expression): string {
  if (name in FUNCTIONS || ELSEWHERE.has(name)) return name;
  return refuse(`the global "${name}"`, node);
}

export function libraryCall(name: string, args: Arguments): CallCode {
  const { node, hasOpenEnd } = args;
  const count = node.arguments.length;
  const called = FUNCTIONS[name] ?? refuse(`calling "${name}"`, node);
  const { least, most, noticed } = called;
  // Values of an open end would become arguments that nobody counted.
  const spills = hasOpenEnd && count < noticed && noticed !== Infinity;
  if (count < least || count > most || spills) refuse(`"${name}" with these arguments`, node);
  return called.emit(args);
}

/** Code for the pattern in an argument. */
export function patternCode(node: Expression, code: string, unit: Unit): string {
  return node.type === 'StringLiteral' ? unit.constant(patternOf(node.value)) : `pattern(${code})`;
}

function protectedCall({ node, each, list, hasOpenEnd }: Arguments): CallCode {
  const [called = '', ...passed] = each;
  const args = hasOpenEnd ? `${list}.slice(1)` : `[${passed.join(', ')}]`;
  if (node.arguments[0]?.type !== 'Identifier') refuse('"pcall" of what has no name', node);
  return { code: `protect(${called}, ${args})`, gives: 'many' };
}

function selection({ node, list }: Arguments): CallCode {
  const [from] = node.arguments;
  if (from?.type !== 'NumericLiteral' || from.value < 1)
    return refuse('"select" without a number from 1', node);
  return { code: `${list}.slice(${from.value})`, gives: 'many' };
}

function insertion({ each }: Arguments): CallCode {
  return { code: `insert(${each.join(', ')})`, gives: 'many' };
}

function finding({ node, each, unit }: Arguments): CallCode {
  const [, pattern, , plain] = node.arguments;
  const [value, wanted = '', from = 'undefined'] = each;
  if (plain === undefined && pattern !== undefined)
    return {
      code: `find(${value}, ${patternCode(pattern, wanted, unit)}, ${from})`,
      gives: 'many',
    };
  if (plain?.type !== 'BooleanLiteral' || !plain.value)
    return refuse('"string.find" with a fourth argument that is not true', node);
  return { code: `findPlain(${value}, ${wanted}, ${from})`, gives: 'many' };
}

function matching({ node, each, unit }: Arguments): CallCode {
  const pattern = node.arguments[1] as Expression;
  const [value, wanted = '', from = 'undefined'] = each;
  const isOne = pattern.type === 'StringLiteral' && patternOf(pattern.value).captures < 2;
  return {
    code: `${isOne ? 'matchOne' : 'match'}(${value}, ${patternCode(pattern, wanted, unit)}, ${from})`,
    gives: isOne ? ONE : 'many',
  };
}

const FORMATS: Readonly<Record<string, string>> = {
  '%s': 'formatted',
  '%d': 'integer',
  '%.0f': 'fixed',
};

function formatting({ node, each }: Arguments): CallCode {
  const [format] = node.arguments;
  if (format?.type !== 'StringLiteral') return refuse('a format that is not a literal', node);
  let next = 1;
  const parts = format.value.split(/(%[-+ #0]*[\d.]*[a-zA-Z%])/).map((part, index) => {
    if (index % 2 === 0 || part === '%%') return JSON.stringify(part.replace('%%', '%'));
    const convert = FORMATS[part] ?? refuse(`the format "${part}"`, node);
    const argument = each[next] ?? refuse(`"string.format" without an argument for ${part}`, node);
    next += 1;
    return `${convert}(${argument})`;
  });
  return { code: `(${parts.filter((part) => part !== '""').join(' + ') || '""'})`, gives: ONE };
}
