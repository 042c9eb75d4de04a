import type ts from 'typescript';
import { importsOf } from './imports.js';
import { rewriteKeys } from './holdfast-keys.js';
import { rewriteOptions } from './holdfast-options.js';
import { classNamed, isInstance, type IsClass } from './instances.js';
import type { SourceLibrary } from './source-library.js';
import type { Subject } from './subject.js';

/** Former names of events, with the current ones. */
const EVENTS: Readonly<Record<string, string>> = {
  handedOn: 'handedOff',
  limitsDiffer: 'limitMismatch',
  once: 'onceAttempt',
};

const CHANNELS: Readonly<Record<string, string>> = {
  'holdfast:handed-on': 'holdfast:handed-off',
  'holdfast:limits-differ': 'holdfast:limit-mismatch',
  'holdfast:once': 'holdfast:once-attempt',
};

const PACKAGES = ['nestjs-holdfast', 'nestjs-holdfast/testing', 'nestjs-holdfast/tools'];
const NODE = ['node:diagnostics_channel', 'diagnostics_channel'];

/** Former names of nestjs-holdfast itself. */
export const holdfast: SourceLibrary = {
  packages: [...PACKAGES, ...NODE],
  hint: /\bhandedOn\b|\blimitsDiffer\b|['"`]once['"`]|\buse\s*\(|\bmaxClockStep\b|holdfast:(?:handed-on|limits-differ|once)\b|<(?:params|body|query|headers)\./,
  migrate(subject) {
    const sites = importsOf(subject, PACKAGES);
    const isNamed = (...names: readonly string[]): IsClass =>
      classNamed(subject, sites, (imported) => names.includes(imported));
    rewriteCalls(subject, isNamed('LockService', 'DriverLockService'), isNamed('createTestLocks'));
    rewriteTypes(subject, isNamed('LockEvents'));
    rewriteChannels(subject);
    rewriteOptions(subject, isNamed);
    rewriteKeys(subject, isNamed('WithLock', 'RunOnce', 'CronLock'));
  },
};

/** `locks.on('once', …)` and `locks.use(…)` */
function rewriteCalls(subject: Subject, isService: IsClass, makesTestLocks: IsClass): void {
  const { ts } = subject;
  for (const call of subject.all(ts.isCallExpression)) {
    const { expression: member, arguments: given } = call;
    if (!ts.isPropertyAccessExpression(member) || !/^(?:on|use)$/.test(member.name.text)) continue;
    if (!isLockService(subject, member.expression, isService, makesTestLocks)) continue;
    if (member.name.text === 'use') subject.rewriteNode(member.name, 'for', call);
    else rename(subject, given[0], EVENTS);
  }
}

/** Whether this file tells that an expression is a lock service: by a type, by `get(LockService)`, or as the locks of a test. */
function isLockService(
  subject: Subject,
  expression: ts.Expression,
  isService: IsClass,
  makesTestLocks: IsClass,
): boolean {
  const { ts } = subject;
  if (isInstance(subject, expression, isService)) return true;
  const isMade = (made: ts.Expression | undefined): boolean => {
    if (made === undefined) return false;
    if (ts.isParenthesizedExpression(made) || ts.isAwaitExpression(made))
      return isMade(made.expression);
    if (ts.isPropertyAccessExpression(made))
      return made.name.text === 'locks' && isCallOf(subject, made.expression, makesTestLocks);
    if (!ts.isCallExpression(made) || !ts.isPropertyAccessExpression(made.expression)) return false;
    const [token] = made.arguments;
    return /^(?:get|resolve)$/.test(made.expression.name.text) && !!token && isService(token);
  };
  if (!ts.isIdentifier(expression)) return isMade(expression);
  const [declaration, another] = subject.symbolOf(expression)?.declarations ?? [];
  if (declaration === undefined || another !== undefined) return false;
  if (ts.isVariableDeclaration(declaration))
    return declaration.type === undefined && isMade(declaration.initializer);
  if (!ts.isBindingElement(declaration)) return false;
  const { propertyName = declaration.name, parent: pattern } = declaration;
  return (
    subject.textOf(propertyName) === 'locks' &&
    ts.isVariableDeclaration(pattern.parent) &&
    isCallOf(subject, pattern.parent.initializer, makesTestLocks)
  );
}

const isCallOf = ({ ts }: Subject, made: ts.Expression | undefined, isNamed: IsClass): boolean =>
  made !== undefined && ts.isCallExpression(made) && isNamed(made.expression);

/** `LockEvents['once']` */
function rewriteTypes(subject: Subject, isEvents: IsClass): void {
  const { ts } = subject;
  for (const { objectType, indexType } of subject.all(ts.isIndexedAccessTypeNode))
    if (ts.isTypeReferenceNode(objectType) && isEvents(objectType.typeName))
      for (const type of ts.isUnionTypeNode(indexType) ? indexType.types : [indexType])
        if (ts.isLiteralTypeNode(type)) rename(subject, type.literal, EVENTS);
}

/** `subscribe('holdfast:once', …)`, also as a method of the whole module. */
function rewriteChannels(subject: Subject): void {
  const { ts } = subject;
  const isOfNode = classNamed(subject, importsOf(subject, NODE), () => true);
  for (const { expression, arguments: given } of subject.all(ts.isCallExpression))
    if (isOfNode(ts.isPropertyAccessExpression(expression) ? expression.expression : expression))
      rename(subject, given[0], CHANNELS);
}

/** Replaces a text that is a former name. Its quotes stay. */
function rename(
  subject: Subject,
  node: ts.Node | undefined,
  names: Readonly<Record<string, string>>,
): void {
  if (node === undefined || !subject.ts.isStringLiteralLike(node)) return;
  const current = Object.hasOwn(names, node.text) ? names[node.text] : undefined;
  if (current === undefined) return;
  const [quote = "'"] = subject.textOf(node);
  subject.rewriteNode(node, quote + current + quote);
}
