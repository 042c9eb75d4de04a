/** What the library says to people: the messages of its errors and its log, and what its command and its page print. */
import ts from 'typescript';
import { CODE } from './texts.mjs';

/** A value that is to be written so. */
export const QUOTED = /'[^' ]+'/g;

/** Shorter ones are names and values. */
const FEWEST_WORDS = 3;

/** @returns {{ text: string, line: number }[]} with a word in the place of what a template inserts */
export function messagesIn(source) {
  const file = ts.createSourceFile('a.tsx', source, ts.ScriptTarget.Latest, true);
  const texts = [];
  const visit = (node) => {
    const text = textOf(node)?.replaceAll(QUOTED, CODE);
    if (text === undefined) {
      ts.forEachChild(node, visit);
    } else if (text.trim().split(/\s+/).length >= FEWEST_WORDS) {
      const { line } = file.getLineAndCharacterOfPosition(node.getStart());
      texts.push({ text, line: line + 1 });
    }
  };
  visit(file);
  return texts;
}

/** Of a literal, or of several that are added up. */
function textOf(node) {
  if (ts.isStringLiteralLike(node) || ts.isJsxText(node)) return node.text;
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map(({ literal }) => CODE + literal.text).join('');
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken)
    return undefined;
  const [left, right] = [textOf(node.left), textOf(node.right)];
  if (left === undefined && right === undefined) return undefined;
  return (left ?? CODE) + (right ?? CODE);
}
