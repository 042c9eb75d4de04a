import type ts from 'typescript';
import type { Subject } from './subject.js';

/** `this.service.name(…)` */
export type ServiceCall = ts.CallExpression & { readonly expression: ts.PropertyAccessExpression };

/** The call of which this mention is the service. */
export function callOn({ ts }: Subject, mention: ts.Node, name: RegExp): ServiceCall | undefined {
  const { parent: service } = mention;
  if (!ts.isPropertyAccessExpression(service) || service.name !== mention) return undefined;
  if (service.expression.kind !== ts.SyntaxKind.ThisKeyword) return undefined;
  const { parent: member } = service;
  if (!ts.isPropertyAccessExpression(member) || !name.test(member.name.text)) return undefined;
  if (member.questionDotToken !== undefined) return undefined;
  const { parent: call } = member;
  const isCall = ts.isCallExpression(call) && call.expression === member;
  return isCall ? (call as ServiceCall) : undefined;
}
