import type ts from 'typescript';
import { isInstance, type IsClass } from './instances.js';
import type { Subject } from './subject.js';

const [FORMER, CURRENT] = ['maxClockStep', 'fencingTokenRetention'];

/** Renames the option where this file tells that an object has the options of `LockModule`. */
export function rewriteOptions(
  subject: Subject,
  isNamed: (...names: readonly string[]) => IsClass,
): void {
  const { ts } = subject;
  const known: Known = {
    isType: isNamed('LockModuleOptions'),
    isFactory: isNamed('LockOptionsFactory'),
    isModule: isNamed('LockModule', 'RedisLockModule', 'LockTestingModule'),
    takesOptions: isNamed('LockService', 'createTestLocks', 'createLocks'),
  };
  for (const property of subject.all(ts.isShorthandPropertyAssignment))
    if (property.name.text === FORMER && isOptions(subject, property.parent, known))
      subject.rewriteNode(property.name, `${CURRENT}: ${FORMER}`, property);
  for (const { name, parent } of subject.all(ts.isPropertyAssignment)) {
    const isFormer = (ts.isIdentifier(name) || ts.isStringLiteral(name)) && name.text === FORMER;
    if (isFormer && isOptions(subject, parent, known))
      subject.rewriteNode(name, subject.textOf(name).replace(FORMER, CURRENT));
  }
  for (const { expression, name } of subject.all(ts.isPropertyAccessExpression))
    if (name.text === FORMER && isInstance(subject, expression, known.isType))
      subject.rewriteNode(name, CURRENT);
}

/** What names of the file mean. */
interface Known {
  readonly isType: IsClass;
  readonly isFactory: IsClass;
  /** The modules with `forRoot` and `forRootAsync`. */
  readonly isModule: IsClass;
  /** Functions and classes whose first argument is the options. */
  readonly takesOptions: IsClass;
}

/** Whether an expression is the options: by where it is given to, or by a type. */
function isOptions(subject: Subject, expression: ts.Node, known: Known): boolean {
  const { ts } = subject;
  const { parent } = expression;
  if (ts.isSatisfiesExpression(parent) || ts.isAsExpression(parent))
    return isOfType(subject, parent.type, known) || isOptions(subject, parent, known);
  if (ts.isParenthesizedExpression(parent) || ts.isConditionalExpression(parent))
    return isOptions(subject, parent, known);
  if (ts.isVariableDeclaration(parent) || ts.isPropertyDeclaration(parent))
    return isOfType(subject, parent.type, known);
  if (ts.isCallExpression(parent) || ts.isNewExpression(parent))
    return parent.arguments?.[0] === expression && takes(subject, parent, known, 'forRoot');
  const made = ts.isReturnStatement(parent)
    ? ts.findAncestor(parent, ts.isFunctionLike)
    : ts.isArrowFunction(parent) && parent.body === expression
      ? parent
      : undefined;
  return made !== undefined && returnsOptions(subject, made, known);
}

function returnsOptions(subject: Subject, made: ts.SignatureDeclaration, known: Known): boolean {
  const { ts } = subject;
  if (isOfType(subject, made.type, known)) return true;
  if (ts.isMethodDeclaration(made) && ts.isClassLike(made.parent))
    return (
      subject.textOf(made.name) === 'createLockOptions' &&
      (made.parent.heritageClauses ?? []).some(({ types }) =>
        types.some(({ expression }) => known.isFactory(expression)),
      )
    );
  const property = ts.isMethodDeclaration(made) ? made : made.parent;
  if (!ts.isMethodDeclaration(property) && !ts.isPropertyAssignment(property)) return false;
  const { name, parent: registration } = property;
  if (subject.textOf(name) !== 'useFactory') return false;
  const { parent: call } = registration;
  return ts.isCallExpression(call) && takes(subject, call, known, 'forRootAsync');
}

/** Whether the call is one of the module by this name, or of what takes options itself. */
function takes(
  { ts }: Subject,
  { expression }: ts.CallExpression | ts.NewExpression,
  known: Known,
  name: string,
): boolean {
  if (!ts.isPropertyAccessExpression(expression))
    return name === 'forRoot' && known.takesOptions(expression);
  return expression.name.text === name && known.isModule(expression.expression);
}

/** `LockModuleOptions`, also within `Promise`, `Partial` and the like. */
function isOfType(subject: Subject, type: ts.TypeNode | undefined, known: Known): boolean {
  const { ts } = subject;
  if (type === undefined || !ts.isTypeReferenceNode(type)) return false;
  const [inner, another] = type.typeArguments ?? [];
  return known.isType(type.typeName) || (another === undefined && isOfType(subject, inner, known));
}
