import type ts from 'typescript';
import type { Subject } from './subject.js';

/** What no text of a key template may have, and what begins a placeholder there. */
const SPECIAL = /[<>{}\p{Cc}]/u;

/** Whether a text within the expression has what no key may have. */
export function hasSpecial({ ts }: Subject, expression: ts.Node): boolean {
  const isSpecial = (node: ts.Node): boolean =>
    ((ts.isStringLiteralLike(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddleOrTemplateTail(node)) &&
      SPECIAL.test(node.text)) ||
    (ts.forEachChild(node, (child) => isSpecial(child) || undefined) ?? false);
  return isSpecial(expression);
}

/** The key as it is written, if it means the same as a template of ours. */
export function templateText(subject: Subject, key: ts.Expression): string | undefined {
  const { ts } = subject;
  if (!ts.isStringLiteralLike(key) || key.text === '' || SPECIAL.test(key.text)) return undefined;
  return subject.textOf(key);
}

/**
 * The key function with the types of the method's own parameters, which `@WithLock` compares.
 *
 * @param skipped parameters before those of the method, which must not be used
 */
export function keyFunctionText(
  subject: Subject,
  key: ts.Expression,
  method: ts.MethodDeclaration,
  { skipped }: { readonly skipped: number },
): string | undefined {
  const { ts } = subject;
  if (!ts.isArrowFunction(key) || key.modifiers !== undefined) return undefined;
  const extra = key.parameters.slice(0, skipped);
  if (extra.some(({ name }) => isUsed(subject, name))) return undefined;
  const own = key.parameters.slice(skipped);
  const parameters = own.map((parameter, index) =>
    typedText(subject, parameter, method.parameters[index]),
  );
  if (parameters.includes(undefined)) return undefined;
  return `(${parameters.join(', ')}) => ${subject.textOf(key.body)}`;
}

const isUsed = (subject: Subject, name: ts.BindingName): boolean =>
  subject.mentionsOf(subject.symbolOf(name)).length > 1 || !subject.ts.isIdentifier(name);

function typedText(
  subject: Subject,
  parameter: ts.ParameterDeclaration,
  own: ts.ParameterDeclaration | undefined,
): string | undefined {
  // The method would have a default, and the key function would not see it.
  const isPlain = (it: ts.ParameterDeclaration): boolean =>
    it.initializer === undefined && it.dotDotDotToken === undefined;
  if (own?.type === undefined || !isPlain(parameter) || !isPlain(own)) return undefined;
  const mark = own.questionToken === undefined ? '' : '?';
  return `${subject.textOf(parameter.name)}${mark}: ${subject.textOf(own.type)}`;
}

/** `order:{0.id}` as `order:<0.id>`; `undefined` where it would not mean the same. */
export function positionsText(subject: Subject, key: ts.Expression): string | undefined {
  const { ts } = subject;
  if (!ts.isStringLiteralLike(key) || key.text === '') return undefined;
  const parts = key.text.split(/\{\d+(?:\.\w+)?\}/);
  // Two values side by side are refused: their texts could be those of other values.
  const areApart = parts.slice(1, -1).every((part) => part.includes(':'));
  if (!areApart || parts.some((part) => SPECIAL.test(part))) return undefined;
  return subject.textOf(key).replace(/\{(\d+(?:\.\w+)?)\}/g, '<$1>');
}

/** Whether a key has values. */
export const hasPositions = (key: ts.Expression): boolean => /\{\d/.test(key.getText());
