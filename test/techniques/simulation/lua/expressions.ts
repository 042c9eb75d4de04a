import type { CallExpression, Expression, LogicalExpression, TableConstructor } from 'luaparse';
import { libraryCall, libraryName } from './library-calls.js';
import { refuse, type CallCode, type Scope, type Whole } from './scope.js';

type Binary = Extract<Expression, { type: 'BinaryExpression' }>;

const COMPARISONS = new Set(['==', '~=', '<', '>', '<=', '>=']);
const ARITHMETIC: Readonly<Record<string, string>> = {
  '+': '+',
  '-': '-',
  '*': '*',
  '/': '/',
  '^': '**',
};

/** Code for exactly one value. */
export function value(node: Expression, scope: Scope): string {
  switch (node.type) {
    case 'Identifier':
      return variable(node, scope);
    case 'NumericLiteral':
      return String(node.value);
    case 'StringLiteral':
      return JSON.stringify(node.value);
    case 'BooleanLiteral':
      return String(node.value);
    case 'NilLiteral':
      return 'undefined';
    case 'CallExpression': {
      const { code, gives } = call(node, scope);
      return gives === 'one' ? code : `first(${code})`;
    }
    case 'MemberExpression': {
      const name = libraryName(node, scope);
      if (name === 'math.huge') return 'Infinity';
      if (name !== undefined) return refuse(`"${name}" as a value`, node);
      if (node.indexer === ':') return refuse('a method', node);
      return `at(${value(node.base, scope)}, ${JSON.stringify(node.identifier.name)})`;
    }
    case 'IndexExpression':
      return `at(${value(node.base, scope)}, ${value(node.index, scope)})`;
    case 'UnaryExpression':
      if (node.operator === 'not') return condition(node, scope);
      return isNumber(node) ? numeric(node, scope) : refuse(node.operator, node);
    case 'LogicalExpression':
      return isCondition(node) ? condition(node, scope) : logical(node, scope);
    case 'BinaryExpression':
      return binary(node, scope);
    case 'TableConstructorExpression':
      return constructed(node, scope);
    default:
      return refuse(node.type, node);
  }
}

/** Code for an array of values, the last of which may be several. */
export function values(nodes: readonly Expression[], parent: Whole, scope: Scope): string {
  const codes = nodes.map((node) => value(node, scope));
  const last = nodes.at(-1);
  if (last?.type !== 'CallExpression' || !isMultiple(last, scope)) return `[${codes.join(', ')}]`;
  scope.unit.checkParentheses(last, parent);
  const head = codes.slice(0, -1);
  const tail = `many(${call(last, scope).code})`;
  return head.length === 0 ? tail : `[${head.join(', ')}, ...${tail}]`;
}

/** Whether it may be any number of values. */
export const isMultiple = (node: Expression | undefined, scope: Scope): boolean =>
  node?.type === 'CallExpression' && call(node, scope).gives === 'many';

/** Code for a call that is a statement: what it gives does not matter. */
export function callStatement(node: Expression, scope: Scope): string {
  return node.type === 'CallExpression' ? call(node, scope).code : refuse(node.type, node);
}

/** Asked for several times while what it is part of is compiled. */
function call(node: CallExpression, scope: Scope): CallCode {
  const { calls } = scope.unit;
  const known = calls.get(node) ?? compiledCall(node, scope);
  calls.set(node, known);
  return known;
}

function compiledCall(node: CallExpression, scope: Scope): CallCode {
  const { base, arguments: args } = node;
  const name = libraryName(base, scope);
  const hasOpenEnd = isMultiple(args.at(-1), scope);
  const each = args.map((argument) => value(argument, scope));
  const list = hasOpenEnd ? values(args, node, scope) : `[${each.join(', ')}]`;
  if (name !== undefined) {
    const { unit } = scope;
    return libraryCall(name, { node, each, list, hasOpenEnd, unit });
  }
  const local = base.type === 'Identifier' ? scope.find(base.name) : undefined;
  const called = local?.kind === 'function' ? local.name : `callable(${value(base, scope)})`;
  return { code: `${called}(${hasOpenEnd ? `...${list}` : each.join(', ')})`, gives: 'many' };
}

function variable(node: Expression & { readonly name: string }, scope: Scope): string {
  const { name } = node;
  const local = scope.find(name);
  if (local !== undefined) return local.name;
  return name === 'KEYS' || name === 'ARGV'
    ? name
    : refuse(`the global "${name}" as a value`, node);
}

/** Code for true or false, where that is all that matters. */
export function condition(node: Expression, scope: Scope): string {
  if (node.type === 'LogicalExpression') {
    const operator = node.operator === 'and' ? '&&' : '||';
    return `(${condition(node.left, scope)} ${operator} ${condition(node.right, scope)})`;
  }
  if (node.type === 'UnaryExpression' && node.operator === 'not')
    return `!${condition(node.argument, scope)}`;
  return isCondition(node) ? value(node, scope) : `truthy(${value(node, scope)})`;
}

/** Whether it is true or false, and nothing else. */
function isCondition(node: Expression): boolean {
  switch (node.type) {
    case 'BooleanLiteral':
      return true;
    case 'BinaryExpression':
      return COMPARISONS.has(node.operator);
    case 'UnaryExpression':
      return node.operator === 'not';
    case 'LogicalExpression':
      return isCondition(node.left) && isCondition(node.right);
    default:
      return false;
  }
}

function logical({ operator, left, right }: LogicalExpression, scope: Scope): string {
  const kept = scope.temporary();
  const test = `truthy(${kept} = ${value(left, scope)})`;
  return operator === 'and'
    ? `(${test} ? ${value(right, scope)} : ${kept})`
    : `(${test} ? ${kept} : ${value(right, scope)})`;
}

/** Code for a number. */
export function numeric(node: Expression, scope: Scope): string {
  if (node.type === 'UnaryExpression' && node.operator === '-')
    return `(-${numeric(node.argument, scope)})`;
  if (node.type === 'UnaryExpression' && node.operator === '#')
    return `lengthOf(${value(node.argument, scope)})`;
  const code = value(node, scope);
  return isNumber(node) ? code : `number(${code})`;
}

function isNumber(node: Expression): boolean {
  if (node.type === 'NumericLiteral') return true;
  if (node.type === 'UnaryExpression') return node.operator !== 'not';
  return node.type === 'BinaryExpression' && (node.operator in ARITHMETIC || node.operator === '%');
}

function binary(node: Binary, scope: Scope): string {
  const { operator, left, right } = node;
  const code = (): readonly [string, string] => [value(left, scope), value(right, scope)];
  const numbers = (): readonly [string, string] => [numeric(left, scope), numeric(right, scope)];
  switch (operator) {
    case '==':
      return `(${code().join(' === ')})`;
    case '~=':
      return `(${code().join(' !== ')})`;
    case '<':
      return `isLess(${code().join(', ')})`;
    case '<=':
      return `isAtMost(${code().join(', ')})`;
    case '>':
      return `isMore(${code().join(', ')})`;
    case '>=':
      return `isAtLeast(${code().join(', ')})`;
    case '..':
      return `(concatenated(${code().join(') + concatenated(')}))`;
    case '%':
      return `modulo(${numbers().join(', ')})`;
    default: {
      const symbol = ARITHMETIC[operator] ?? refuse(operator, node);
      return `(${numbers().join(` ${symbol} `)})`;
    }
  }
}

function constructed(node: TableConstructor, scope: Scope): string {
  const items: Expression[] = [];
  const entries: string[] = [];
  for (const field of node.fields) {
    if (field.type === 'TableValue') items.push(field.value);
    else {
      const key =
        field.type === 'TableKey' ? value(field.key, scope) : JSON.stringify(field.key.name);
      entries.push(key, value(field.value, scope));
    }
  }
  if (entries.length > 0 && isMultiple(items.at(-1), scope))
    return refuse('a table with keys that ends with several values', node);
  const list = values(items, node, scope);
  const own = list.startsWith('many(') ? `[...${list}]` : list;
  return entries.length === 0 ? `table(${own})` : `tableOf(${own}, [${entries.join(', ')}])`;
}
