import type ts from 'typescript';
import type { Subject } from './subject.js';

/** The value of an option, as it is written. */
export interface Given {
  readonly node: ts.Node;
  readonly text: string;
  readonly value: ts.Expression;
}

/** The options of a literal; `undefined` where not all of them can be read. */
export function optionsIn(
  subject: Subject,
  expression: ts.Expression | undefined,
): ReadonlyMap<string, Given> | undefined {
  const { ts } = subject;
  if (expression === undefined) return new Map();
  if (!ts.isObjectLiteralExpression(expression)) return undefined;
  const options = new Map<string, Given>();
  for (const property of expression.properties) {
    if (ts.isShorthandPropertyAssignment(property)) {
      const { name } = property;
      options.set(name.text, { node: property, text: name.text, value: name });
    } else if (ts.isPropertyAssignment(property) && !ts.isComputedPropertyName(property.name)) {
      const { name, initializer: value } = property;
      const key = ts.isStringLiteral(name) ? name.text : subject.textOf(name);
      options.set(key, { node: property, text: subject.textOf(value), value });
    } else return undefined;
  }
  return options;
}

/** The number that is written there. */
export function numberIn({ ts }: Subject, expression: ts.Expression): number | undefined {
  if (ts.isNumericLiteral(expression)) return Number(expression.text.replaceAll('_', ''));
  if (!ts.isPrefixUnaryExpression(expression)) return undefined;
  const { operator, operand } = expression;
  return operator === ts.SyntaxKind.MinusToken && ts.isNumericLiteral(operand)
    ? -Number(operand.text)
    : undefined;
}

/** One number of a calculation: written in the code, or the default of the other library. */
export type Factor = ts.Expression | number;

/** LockService refuses a shorter ttl, and a shorter wait except 0. */
export const SHORTEST_MS = 50;

/** Whether it is a number that LockService refuses as a ttl. */
export const isTooShort = (subject: Subject, expression: ts.Expression | undefined): boolean =>
  expression !== undefined && (numberIn(subject, expression) ?? SHORTEST_MS) < SHORTEST_MS;

/** How long the retries of another library last: their number by the pause between them. */
export function waitText(subject: Subject, count: Factor, pause: Factor): string {
  const [known, knownPause] = [count, pause].map((it) =>
    typeof it === 'number' ? it : numberIn(subject, it),
  );
  if (known === -1) return "'forever'";
  if (known === 0) return '0';
  if (known !== undefined && knownPause !== undefined)
    return `${String(waitMs(known * knownPause))} /* ${String(known)} × ${String(knownPause)} ms */`;
  return `${factorText(subject, count)} * ${factorText(subject, pause)}`;
}

/** A shorter wait than the least is made longer. */
export const waitMs = (ms: number): number => (ms === 0 ? 0 : Math.max(SHORTEST_MS, ms));

function factorText(subject: Subject, factor: Factor): string {
  if (typeof factor === 'number') return String(factor);
  const { ts } = subject;
  const text = subject.textOf(factor);
  const isPlain =
    ts.isIdentifier(factor) || ts.isNumericLiteral(factor) || ts.isPropertyAccessExpression(factor);
  return isPlain ? text : `(${text})`;
}

/** `{ ttl: 5000, wait: 2000 }`, or nothing. */
export const optionsText = (options: Readonly<Record<string, string | undefined>>): string => {
  const given = Object.entries(options).filter(([, text]) => text !== undefined);
  if (given.length === 0) return '';
  return `{ ${given.map(([name, text]) => (name === text ? name : `${name}: ${String(text)}`)).join(', ')} }`;
};
