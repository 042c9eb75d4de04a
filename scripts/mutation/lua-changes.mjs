/** The changes that mutation testing makes to a Lua file: one operator, value or statement at a time, from its syntax tree. */
import { createHash } from 'node:crypto';
import luaparse from 'luaparse';

const COMPARISONS = {
  '==': ['~='],
  '~=': ['=='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
};
const ARITHMETIC = { '+': ['-'], '-': ['+'], '*': ['/'], '/': ['*'], '%': ['*'] };
const OPERATORS = { ...COMPARISONS, ...ARITHMETIC };
const FUNCTIONS = { max: 'min', min: 'max', ceil: 'floor', floor: 'ceil' };

/** One more or less of a larger number shows nothing. */
const LARGE = 1000;

/** The name of a command, or of an option of one. A command without its name is an error that every test notices. */
const COMMAND_WORD = /^[A-Z]+$/;

/**
 * All changes of a text, in its order. Each has its line, the part of the text from `start` to `end`, and what takes its place.
 *
 * @throws SyntaxError if the text, or a changed one, is no Lua
 */
export function changesOf(text) {
  const found = new Map();
  const add = (start, end, replacement) => {
    const original = text.slice(start, end);
    if (original === replacement) return;
    const line = text.slice(0, start).split('\n').length;
    const change = { line, start, end, original, replacement };
    parse(changedText(text, change));
    found.set(`${start}:${end}:${replacement}`, change);
  };
  visit(parse(text), (node) => addChanges(node, text, add));
  return [...found.values()].sort((a, b) => a.start - b.start || a.end - b.end);
}

/** So many of them, always the same ones: a change elsewhere in the file makes no difference. */
export function sampleOf(file, text, count) {
  const changes = changesOf(text);
  const lines = text.split('\n');
  const rankOf = ({ line, original, replacement }) => {
    const parts = [file, lines[line - 1].trim(), original, replacement];
    return createHash('sha256').update(parts.join('\0')).digest('hex');
  };
  const ranked = changes.map((change) => ({ change, rank: rankOf(change) }));
  ranked.sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0));
  const chosen = new Set(ranked.slice(0, count).map(({ change }) => change));
  return changes.filter((change) => chosen.has(change));
}

export const changedText = (text, { start, end, replacement }) =>
  text.slice(0, start) + replacement + text.slice(end);

const parse = (text) =>
  luaparse.parse(text, {
    luaVersion: '5.1',
    comments: false,
    ranges: true,
    encodingMode: 'pseudo-latin1',
  });

function visit(node, look) {
  if (typeof node !== 'object' || node === null) return;
  if (node.type !== undefined) look(node);
  for (const part of Object.values(node)) visit(part, look);
}

function addChanges(node, text, add) {
  const [start, end] = node.range;
  switch (node.type) {
    case 'BinaryExpression': {
      const at = text.indexOf(node.operator, node.left.range[1]);
      for (const other of OPERATORS[node.operator] ?? []) add(at, at + node.operator.length, other);
      break;
    }
    case 'LogicalExpression':
      add(start, end, swapped(node, text));
      break;
    case 'UnaryExpression':
      if (node.operator !== '#')
        add(start, end, text.slice(start + node.operator.length, end).trim());
      break;
    case 'NumericLiteral':
      for (const other of othersOf(node.value)) add(start, end, String(other));
      break;
    case 'BooleanLiteral':
      add(start, end, String(!node.value));
      break;
    case 'StringLiteral':
      if (!COMMAND_WORD.test(node.value)) add(start, end, node.value === '' ? "'other'" : "''");
      break;
    case 'CallExpression':
      addChangesOfCall(node, text, add);
      break;
    case 'IfClause':
    case 'ElseifClause':
    case 'WhileStatement':
      for (const value of ['true', 'false']) add(...node.condition.range, value);
      break;
    case 'ElseClause':
    case 'CallStatement':
    case 'AssignmentStatement':
    case 'ReturnStatement':
    case 'BreakStatement':
      add(start, end, '');
      break;
  }
}

/** In parentheses: the other operator binds more or less tightly. */
function swapped({ operator, left, right, range: [start, end] }, text) {
  const at = text.indexOf(operator, left.range[1]);
  const whole = (node, part) => (node.type === 'LogicalExpression' ? `(${part})` : part);
  const before = whole(left, text.slice(start, at).trim());
  const after = whole(right, text.slice(at + operator.length, end).trim());
  return `(${before} ${operator === 'and' ? 'or' : 'and'} ${after})`;
}

const othersOf = (value) =>
  value < LARGE ? [value + 1, value - 1] : [value * 2, Math.floor(value / 2)];

function addChangesOfCall({ base, arguments: args }, text, add) {
  const library = base.base?.name;
  const name = base.identifier?.name;
  if (library === 'math' && Object.hasOwn(FUNCTIONS, name))
    add(...base.identifier.range, FUNCTIONS[name]);
  if (library !== 'redis' || (name !== 'call' && name !== 'pcall')) return;
  args.slice(1).forEach((option, index) => {
    if (option.type !== 'StringLiteral' || !COMMAND_WORD.test(option.value)) return;
    add(args[index].range[1], option.range[1], '');
    if (option.value === 'PX') add(...option.range, "'EX'");
  });
}
