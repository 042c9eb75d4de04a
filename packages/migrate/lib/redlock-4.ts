import type ts from 'typescript';
import { isInstance, type IsClass } from './instances.js';
import { HEADING } from './redlock-imports.js';
import type { Subject } from './subject.js';

/** Calls that redlock 5 and its replacement do not have become theirs. */
export function rewriteOldCalls(
  subject: Subject,
  isRedlock: IsClass,
  isLock: IsClass,
  done: ReadonlySet<ts.Node>,
): void {
  const { ts } = subject;
  for (const call of subject.all(ts.isCallExpression)) {
    const { expression } = call;
    if (!ts.isPropertyAccessExpression(expression) || done.has(call)) continue;
    const { expression: receiver, name } = expression;
    if (isInstance(subject, receiver, isRedlock)) rewriteCall(subject, call, name);
    else if (name.text === 'unlock')
      rewriteUnlock(subject, call, receiver, name, { isRedlock, isLock });
  }
}

function rewriteCall(subject: Subject, call: ts.CallExpression, name: ts.MemberName): void {
  const { arguments: given } = call;
  switch (name.text) {
    case 'lock':
    case 'acquire':
      rewriteAcquire(subject, call, name);
      return;
    case 'unlock':
      subject.rewriteNode(name, 'release', call);
      if (given.length > 1) markCallback(subject, call);
      return;
    case 'extend':
      if (given.length > 2 && isFunction(subject, given[2])) markCallback(subject, call);
      return;
    case 'disposer':
      subject.mark(
        call,
        'there is no disposer(): write using(), which releases by itself.',
        HEADING,
      );
      return;
    case 'quit':
      if (given.length > 0) markCallback(subject, call);
      return;
    case 'on':
      if (given[0] !== undefined && subject.textOf(given[0]).includes('clientError'))
        subject.mark(call, 'the event "clientError" of redlock 4 is "error" now.', HEADING);
  }
}

function rewriteAcquire(subject: Subject, call: ts.CallExpression, name: ts.MemberName): void {
  const { ts } = subject;
  const [resource, , callback] = call.arguments;
  if (isFunction(subject, callback)) {
    markCallback(subject, call);
    return;
  }
  if (resource !== undefined && subject.isText(resource))
    subject.rewriteNode(resource, `[${subject.textOf(resource)}]`, call);
  else if (
    name.text === 'lock' &&
    !(resource !== undefined && ts.isArrayLiteralExpression(resource))
  )
    subject.mark(call, 'acquire() takes a list of resources.', HEADING);
  if (name.text === 'lock') subject.rewriteNode(name, 'acquire', call);
}

function rewriteUnlock(
  subject: Subject,
  call: ts.CallExpression,
  receiver: ts.Expression,
  name: ts.MemberName,
  { isRedlock, isLock }: { readonly isRedlock: IsClass; readonly isLock: IsClass },
): void {
  if (isInstance(subject, receiver, isLock) || isGranted(subject, receiver, isRedlock)) {
    subject.rewriteNode(name, 'release', call);
    if (call.arguments.length > 0) markCallback(subject, call);
  } else subject.mark(call, 'if this is a lock of redlock, write release().', HEADING);
}

/** Whether it is what `await redlock.lock(…)` returned, or the parameter of its `then`. */
export function isGranted(
  subject: Subject,
  expression: ts.Expression,
  isRedlock: IsClass,
): boolean {
  const { ts } = subject;
  const [declaration] = subject.symbolOf(expression)?.declarations ?? [];
  if (declaration === undefined) return false;
  if (ts.isVariableDeclaration(declaration)) {
    const { initializer } = declaration;
    return (
      initializer !== undefined &&
      ts.isAwaitExpression(initializer) &&
      isAcquire(subject, initializer.expression, isRedlock)
    );
  }
  if (!ts.isParameter(declaration)) return false;
  const { parent: call } = declaration.parent;
  return (
    ts.isCallExpression(call) &&
    call.arguments[0] === declaration.parent &&
    ts.isPropertyAccessExpression(call.expression) &&
    call.expression.name.text === 'then' &&
    isAcquire(subject, call.expression.expression, isRedlock)
  );
}

function isAcquire(subject: Subject, expression: ts.Expression, isRedlock: IsClass): boolean {
  const { ts } = subject;
  if (!ts.isCallExpression(expression)) return false;
  const { expression: callee } = expression;
  return (
    ts.isPropertyAccessExpression(callee) &&
    /^(lock|acquire|extend)$/.test(callee.name.text) &&
    isInstance(subject, callee.expression, isRedlock)
  );
}

const isFunction = ({ ts }: Subject, node: ts.Expression | undefined): boolean =>
  node !== undefined && (ts.isArrowFunction(node) || ts.isFunctionExpression(node));

const markCallback = (subject: Subject, call: ts.CallExpression): void => {
  subject.mark(call, 'there are no callbacks: await the call.', HEADING);
};
