import type ts from 'typescript';
import { decoratedBy } from './decorated.js';
import type { IsClass } from './instances.js';
import type { Subject } from './subject.js';

/** A part of the raw request at the beginning of a placeholder. */
const SHORT = /<(params|body|query|headers)\./g;

/** `<params.id>` becomes `<request.params.id>`, unless the method has a parameter of that name. */
export function rewriteKeys(subject: Subject, isDecorator: IsClass): void {
  const { ts } = subject;
  for (const call of subject.all(ts.isCallExpression)) {
    const { expression: name } = call;
    if (!ts.isIdentifier(name) || !isDecorator(name)) continue;
    const pieces = piecesOf(subject, call.arguments[0]).filter(
      (piece) => subject.textOf(piece).search(SHORT) >= 0,
    );
    const method = decoratedBy(subject, name)?.method;
    const parameters = method?.parameters.map((parameter) => subject.textOf(parameter.name));
    for (const piece of pieces) {
      const text = subject.textOf(piece);
      const long = text.replace(SHORT, (short, root: string) =>
        parameters?.includes(root) === false ? `<request.${root}.` : short,
      );
      if (long !== text) subject.rewriteNode(piece, long);
      else if (parameters === undefined)
        subject.mark(
          call,
          'write <request.params.id> for <params.id>, unless the method has a parameter of that name.',
          'versions-of-holdfast',
        );
    }
  }
}

/** The texts that a template or a list of templates is written with. */
function piecesOf(subject: Subject, key: ts.Expression | undefined): readonly ts.Node[] {
  const { ts } = subject;
  if (key === undefined) return [];
  if (ts.isStringLiteralLike(key)) return [key];
  if (ts.isTemplateExpression(key))
    return [key.head, ...key.templateSpans.map(({ literal }) => literal)];
  if (ts.isArrayLiteralExpression(key)) return key.elements.flatMap((it) => piecesOf(subject, it));
  if (ts.isParenthesizedExpression(key) || ts.isAsExpression(key))
    return piecesOf(subject, key.expression);
  if (ts.isBinaryExpression(key))
    return [...piecesOf(subject, key.left), ...piecesOf(subject, key.right)];
  return [];
}
