import type ts from 'typescript';
import type { Subject } from './subject.js';

/** A decorator that is called, and its method. */
export interface DecoratedNode {
  readonly call: ts.CallExpression;
  readonly method: ts.MethodDeclaration;
}

/** What a name decorates, if it is the name of the decorator of a method. */
export function decoratedBy({ ts }: Subject, name: ts.Identifier): DecoratedNode | undefined {
  const { parent: call } = name;
  if (!ts.isCallExpression(call) || call.expression !== name) return undefined;
  const { parent: decorator } = call;
  if (!ts.isDecorator(decorator) || !ts.isMethodDeclaration(decorator.parent)) return undefined;
  return { call, method: decorator.parent };
}

/** Whether the method is seen to return a Promise, as `@WithLock` demands. */
export function returnsPromise(subject: Subject, method: ts.MethodDeclaration): boolean {
  const { ts } = subject;
  if (method.asteriskToken !== undefined) return false;
  if (method.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword)) return true;
  return method.type !== undefined && /^Promise\s*</.test(subject.textOf(method.type));
}
