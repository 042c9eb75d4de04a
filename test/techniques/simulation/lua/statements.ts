import type {
  AssignmentStatement,
  Expression,
  ForGenericStatement,
  ForNumericStatement,
  FunctionDeclaration,
  IfStatement,
  LocalStatement,
  Name,
  Statement,
} from 'luaparse';
import { callStatement, condition, isMultiple, numeric, value, values } from './expressions.js';
import { libraryName, patternCode } from './library-calls.js';
import { refuse, type Scope } from './scope.js';

/** The code of a function, with the variables that its expressions need. */
export function functionBody(body: readonly Statement[], scope: Scope): string {
  const code = block(body, scope);
  const { temporaries } = scope;
  const declared = temporaries.length > 0 ? `let ${temporaries.join(', ')};\n` : '';
  return body.at(-1)?.type === 'ReturnStatement'
    ? declared + code
    : `${declared}${code}\nreturn NONE;`;
}

const block = (body: readonly Statement[], scope: Scope): string =>
  body.map((each) => statement(each, scope)).join('\n');

const inner = (body: readonly Statement[], scope: Scope): string =>
  `{\n${block(body, scope.block())}\n}`;

function statement(node: Statement, scope: Scope): string {
  switch (node.type) {
    case 'LocalStatement':
      return local(node, scope);
    case 'AssignmentStatement':
      return assignment(node, scope);
    case 'CallStatement':
      return `${callStatement(node.expression, scope)};`;
    case 'IfStatement':
      return choice(node, scope);
    case 'ReturnStatement':
      return returned(node.arguments, node, scope);
    case 'BreakStatement':
      return 'break;';
    case 'DoStatement':
      return inner(node.body, scope);
    case 'WhileStatement':
      return `while (${condition(node.condition, scope)}) ${inner(node.body, scope)}`;
    case 'ForNumericStatement':
      return counting(node, scope);
    case 'ForGenericStatement':
      return iterating(node, scope);
    case 'FunctionDeclaration':
      return declaration(node, scope);
    default:
      return refuse(node.type, node);
  }
}

function local({ variables, init, ...node }: LocalStatement, scope: Scope): string {
  // What stands on the right does not know the new names yet.
  const isFilled = init.length < variables.length && isMultiple(init.at(-1), scope);
  if (init.length <= variables.length && !isFilled) {
    const codes = init.map((each) => value(each, scope));
    return variables
      .map(({ name }, index) => `let ${scope.declare(name)} = ${codes[index] ?? 'undefined'};`)
      .join(' ');
  }
  const list = scope.unit.fresh('list');
  const code = `const ${list} = ${values(init, node, scope)};`;
  return `${code} ${spread(variables, list, scope)}`;
}

/** Declares variables with the values of a list. */
const spread = (variables: readonly Name[], list: string, scope: Scope): string =>
  variables.map(({ name }, index) => `let ${scope.declare(name)} = ${list}[${index}];`).join(' ');

function assignment({ variables, init, ...node }: AssignmentStatement, scope: Scope): string {
  const [target, second] = variables;
  const [only, next] = init;
  if (target && only && !second && !next) return assigned(target, value(only, scope), scope);
  const list = scope.unit.fresh('list');
  const each = variables.map((variable, index) => assigned(variable, `${list}[${index}]`, scope));
  if (variables.some(({ type }) => type !== 'Identifier'))
    refuse('assigning to several fields at once', { ...node });
  return `{ const ${list} = ${values(init, node, scope)}; ${each.join(' ')} }`;
}

function assigned(target: Expression, code: string, scope: Scope): string {
  if (target.type === 'MemberExpression') {
    const { base, identifier } = target;
    return `put(${value(base, scope)}, ${JSON.stringify(identifier.name)}, ${code});`;
  }
  if (target.type === 'IndexExpression')
    return `put(${value(target.base, scope)}, ${value(target.index, scope)}, ${code});`;
  if (target.type !== 'Identifier') return refuse(`assigning to ${target.type}`, target);
  const found = scope.find(target.name);
  if (found === undefined) return refuse(`assigning to the global "${target.name}"`, target);
  if (found.kind === 'function')
    return refuse(`assigning to the function "${target.name}"`, target);
  return `${found.name} = ${code};`;
}

function choice({ clauses }: IfStatement, scope: Scope): string {
  return clauses
    .map((clause) =>
      clause.type === 'ElseClause'
        ? inner(clause.body, scope)
        : `if (${condition(clause.condition, scope)}) ${inner(clause.body, scope)}`,
    )
    .join(' else ');
}

function returned(args: readonly Expression[], node: Statement, scope: Scope): string {
  const [only, second] = args;
  if (only === undefined) return 'return NONE;';
  if (second !== undefined || isMultiple(only, scope))
    return `return ${values(args, node, scope)};`;
  return `return ${value(only, scope)};`;
}

function counting({ variable, start, end, step, body }: ForNumericStatement, scope: Scope): string {
  const by = step === null ? 1 : step.type === 'NumericLiteral' ? step.value : 0;
  if (by <= 0) return refuse('a step of "for" that is no number above 0', step ?? start);
  const [count, last] = [scope.unit.fresh('count'), scope.unit.fresh('last')];
  const bounds = `let ${count} = ${numeric(start, scope)}, ${last} = ${numeric(end, scope)}`;
  const within = scope.block();
  const name = within.declare(variable.name);
  return `for (${bounds}; ${count} <= ${last}; ${count} += ${by}) {
let ${name} = ${count};
${block(body, within)}
}`;
}

/** Only what has an order: that of `pairs` is any. */
function iterating(
  { variables, iterators, body, ...node }: ForGenericStatement,
  scope: Scope,
): string {
  const [iterator, second] = iterators;
  if (iterator?.type !== 'CallExpression' || second !== undefined)
    return refuse('an iterator', { ...node });
  const name = libraryName(iterator.base, scope);
  const [iterated, argument, third] = iterator.arguments;
  if (iterated === undefined || third !== undefined) return refuse('an iterator', iterator);
  const within = scope.block();
  if (name === 'string.gmatch' && argument !== undefined) {
    const found = scope.unit.fresh('found');
    const pattern = patternCode(argument, value(argument, scope), scope.unit);
    return `for (const ${found} of matches(${value(iterated, scope)}, ${pattern})) {
${spread(variables, found, within)}
${block(body, within)}
}`;
  }
  if (name !== 'ipairs' || argument !== undefined)
    return refuse(`iterating by "${name ?? 'a variable'}"`, iterator);
  const [list, count] = [scope.unit.fresh('list'), scope.unit.fresh('count')];
  const index = within.declare(variables[0]?.name ?? '');
  const item = within.declare(variables[1]?.name ?? '');
  return `for (let ${list} = ${value(iterated, scope)}, ${count} = 1; ; ${count} += 1) {
let ${index} = ${count}, ${item} = at(${list}, ${count});
if (${item} === undefined) break;
${block(body, within)}
}`;
}

function declaration(node: FunctionDeclaration, scope: Scope): string {
  const { identifier, isLocal } = node;
  if (!isLocal || identifier?.type !== 'Identifier')
    return refuse('a function that is not local', node);
  const name = scope.declare(identifier.name, 'function');
  return `const ${name} = ${functionCode(node, scope)};`;
}

function functionCode({ parameters, body, ...node }: FunctionDeclaration, scope: Scope): string {
  const within = scope.function();
  const names = parameters.map((parameter) =>
    parameter.type === 'Identifier' ? within.declare(parameter.name) : refuse('"..."', { ...node }),
  );
  return `(${names.join(', ')}) => {\n${functionBody(body, within)}\n}`;
}
