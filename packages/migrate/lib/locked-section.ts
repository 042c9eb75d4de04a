import type ts from 'typescript';
import { callOn, type ServiceCall } from './service-calls.js';
import type { Subject } from './subject.js';

/** `await service.lock(key)`, and `service.unlock(key)` in the `finally` of the same work. */
export interface LockedSection {
  readonly method: ts.Node;
  readonly lock: ts.Statement;
  readonly call: ServiceCall;
  /** Whether it locks as the first statement of the `try`. */
  readonly isInside: boolean;
  readonly block: ts.TryStatement;
  /** The call that unlocks, with its `await`. */
  readonly unlock: ts.Node;
  readonly key: string;
  /** Where the service is named. */
  readonly mentions: readonly ts.Node[];
}

/** @param mention the name of the service in `this.service.lock(…)` */
export function findSection(subject: Subject, mention: ts.Identifier): LockedSection | undefined {
  const { ts } = subject;
  const call = callOn(subject, mention, /^lock$/);
  if (call === undefined || !ts.isAwaitExpression(call.parent)) return undefined;
  const lock = call.parent.parent;
  if (!ts.isExpressionStatement(lock) || !ts.isBlock(lock.parent)) return undefined;
  const { parent: around } = lock;
  const isInside = ts.isTryStatement(around.parent) && around.parent.tryBlock === around;
  const next = around.statements[around.statements.indexOf(lock) + 1];
  const block = isInside ? around.parent : next;
  if (block === undefined || !ts.isTryStatement(block) || block.finallyBlock === undefined)
    return undefined;
  // A refusal would have been caught there.
  if (
    isInside &&
    (block.catchClause !== undefined || around.statements[0] !== lock || !ts.isBlock(block.parent))
  )
    return undefined;
  const [key] = call.arguments;
  const method = methodAround(subject, lock);
  if (key === undefined || method === undefined || declaresLock(subject, method)) return undefined;
  const unlocked = unlockIn(
    subject,
    block.finallyBlock,
    subject.textOf(key),
    subject.symbolOf(mention),
  );
  if (unlocked === undefined) return undefined;
  return {
    ...{ method, lock, call, isInside, block, key: subject.textOf(key) },
    unlock: unlocked.call,
    mentions: [mention, unlocked.mention],
  };
}

function unlockIn(
  subject: Subject,
  { statements }: ts.Block,
  key: string,
  service: ts.Symbol | undefined,
): { readonly call: ts.Node; readonly mention: ts.Node } | undefined {
  const { ts } = subject;
  for (const statement of statements) {
    if (!ts.isExpressionStatement(statement)) continue;
    const { expression } = statement;
    const call = ts.isAwaitExpression(expression) ? expression.expression : expression;
    if (!ts.isCallExpression(call) || !ts.isPropertyAccessExpression(call.expression)) continue;
    const { expression: owner, name } = call.expression;
    if (name.text !== 'unlock' || !ts.isPropertyAccessExpression(owner)) continue;
    const [given] = call.arguments;
    const isSame = subject.symbolOf(owner.name) === service && given !== undefined;
    if (isSame && subject.textOf(given) === key) return { call: expression, mention: owner.name };
  }
  return undefined;
}

function methodAround({ ts }: Subject, node: ts.Node): ts.Node | undefined {
  for (let at = node.parent; !ts.isSourceFile(at); at = at.parent)
    if (ts.isFunctionLike(at)) return at;
  return undefined;
}

/** Whether the name that is to be given is taken. */
const declaresLock = ({ ts }: Subject, method: ts.Node): boolean => {
  const named = (node: ts.Node): boolean =>
    (ts.isIdentifier(node) && node.text === 'lock' && !isMemberName(node)) ||
    (ts.forEachChild(node, (child) => named(child) || undefined) ?? false);
  const isMemberName = ({ parent }: ts.Node & { readonly parent: ts.Node }): boolean =>
    ts.isPropertyAccessExpression(parent);
  return named(method);
};
