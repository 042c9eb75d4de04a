import type ts from 'typescript';
import { callOn } from './service-calls.js';
import type { Subject } from './subject.js';

/** What is done with a lock of redlock. */
export interface LockPlan {
  /** Where redlock is named: `this.redlock.release(lock)`. */
  readonly mentions: readonly ts.Node[];
  /** The calls that are rewritten. */
  readonly calls: readonly ts.Node[];
  rewrite(): void;
}

/** One call about a lock: `lock.release()`, or `this.redlock.release(lock)`. */
interface LockCall {
  readonly call: ts.CallExpression;
  readonly name: ts.MemberName;
  /** Where redlock is named, in the second form. */
  readonly mention: ts.Node | undefined;
}

/**
 * @param lock the variable that has the lock; what is returned is certain, and everything else is `undefined`
 * @param redlock the property
 */
export function planLock(
  subject: Subject,
  lock: ts.Identifier,
  redlock: ts.Symbol | undefined,
): LockPlan | undefined {
  const uses = subject.mentionsOf(subject.symbolOf(lock)).filter((use) => use !== lock);
  const renewals = uses.flatMap((use) => renewalOf(subject, use) ?? []);
  const calls: LockCall[] = [];
  for (const use of uses.filter((each) => renewals.every(({ left }) => left !== each))) {
    const call = callAbout(subject, use, redlock);
    if (call === undefined || !hasNoResult(subject, call, renewals)) return undefined;
    calls.push(call);
  }
  const areExtensions = renewals.every(({ right }) =>
    calls.some(({ call, name }) => call.parent === right && !isRelease(name)),
  );
  // A lock that is left to its TTL would delay the shutdown.
  if (!areExtensions || !calls.some(({ name }) => isRelease(name))) return undefined;
  return {
    mentions: calls.flatMap(({ mention }) => mention ?? []),
    calls: calls.map(({ call }) => call),
    rewrite() {
      for (const { left, right } of renewals)
        subject.rewrite(right, subject.startOf(left), subject.startOf(right), '');
      for (const call of calls) rewriteCall(subject, call, lock.text);
    },
  };
}

const isRelease = ({ text }: ts.MemberName): boolean => /^(release|unlock)$/.test(text);

/** `lock = await …;`, where this is the lock. */
function renewalOf({ ts }: Subject, use: ts.Identifier): ts.BinaryExpression | undefined {
  const { parent } = use;
  const isAssigned =
    ts.isBinaryExpression(parent) &&
    parent.left === use &&
    parent.operatorToken.kind === ts.SyntaxKind.EqualsToken &&
    ts.isExpressionStatement(parent.parent);
  return isAssigned ? parent : undefined;
}

function callAbout(
  subject: Subject,
  use: ts.Identifier,
  redlock: ts.Symbol | undefined,
): LockCall | undefined {
  const { ts } = subject;
  const isGiven = ts.isCallExpression(use.parent) && use.parent.arguments[0] === use;
  const call = isGiven ? use.parent : use.parent.parent;
  if (!ts.isCallExpression(call) || !ts.isPropertyAccessExpression(call.expression))
    return undefined;
  const { expression: owner, name, questionDotToken } = call.expression;
  if (questionDotToken !== undefined || !(isRelease(name) || name.text === 'extend'))
    return undefined;
  const count = (isRelease(name) ? 0 : 1) + (isGiven ? 1 : 0);
  if (call.arguments.length !== count) return undefined;
  if (!isGiven) return owner === use ? { call, name, mention: undefined } : undefined;
  if (!ts.isPropertyAccessExpression(owner) || subject.symbolOf(owner.name) !== redlock)
    return undefined;
  return callOn(subject, owner.name, /./) === call
    ? { call, name, mention: owner.name }
    : undefined;
}

/** Whether the code ignores the result: redlock and LockService return different ones. */
function hasNoResult(
  { ts }: Subject,
  { call: { parent }, name }: LockCall,
  renewals: readonly ts.BinaryExpression[],
): boolean {
  if (ts.isAwaitExpression(parent)) {
    const { parent: outer } = parent;
    if (!isRelease(name))
      return ts.isExpressionStatement(outer) || renewals.some((each) => each === outer);
    return ts.isExpressionStatement(outer) && ts.isBlock(outer.parent);
  }
  if (!isRelease(name)) return false;
  const isCaught = ts.isPropertyAccessExpression(parent) && parent.name.text === 'catch';
  return isCaught || ts.isVoidExpression(parent) || ts.isExpressionStatement(parent);
}

function rewriteCall(subject: Subject, { call, name, mention }: LockCall, lock: string): void {
  const { ts } = subject;
  const method = isRelease(name) ? 'release' : 'extend';
  // The release of redlock rejects when the lock was lost, and ours returns false.
  if (isRelease(name) && ts.isAwaitExpression(call.parent)) {
    const { parent: statement } = call.parent;
    const { eol } = subject;
    const text = `${lock}.assertHeld()${subject.semicolonOf(statement)}${eol}${subject.indentOf(statement)}`;
    subject.rewrite(call, subject.startOf(statement), subject.startOf(statement), text);
  }
  if (mention === undefined) {
    if (name.text !== method) subject.rewriteNode(name, method, call);
    return;
  }
  const [, ttl] = call.arguments;
  const text = `${lock}.${method}(${ttl === undefined ? '' : subject.textOf(ttl)})`;
  subject.rewriteNode(call, text);
}
