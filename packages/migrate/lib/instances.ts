import type ts from 'typescript';
import type { ImportSite } from './imports.js';
import type { Subject } from './subject.js';

/** Whether a name means the class in question. */
export type IsClass = (name: ts.Node) => boolean;

/** Tells whether a name means a class of a package, by what the file imports of the package. */
export function classNamed(
  subject: Subject,
  sites: readonly ImportSite[],
  isWanted: (imported: string) => boolean,
): IsClass {
  const symbols = new Set(
    sites
      .flatMap(({ bindings }) => bindings)
      .filter(({ imported }) => isWanted(imported))
      .map(({ symbol }) => symbol),
  );
  return (name) => {
    const symbol = subject.symbolOf(name);
    return symbol !== undefined && symbols.has(symbol);
  };
}

/** Whether this file declares, with a type or with `new`, that an expression is an object of the class. */
export function isInstance(subject: Subject, expression: ts.Expression, isClass: IsClass): boolean {
  const { ts } = subject;
  const name = ts.isPropertyAccessExpression(expression) ? expression.name : expression;
  const declarations = subject.symbolOf(name)?.declarations ?? [];
  return declarations.length > 0 && declarations.every((it) => declares(subject, it, isClass));
}

function declares(subject: Subject, declaration: ts.Declaration, isClass: IsClass): boolean {
  const { ts } = subject;
  if (
    ts.isVariableDeclaration(declaration) ||
    ts.isPropertyDeclaration(declaration) ||
    ts.isParameter(declaration)
  )
    return declaration.type === undefined
      ? isNew(subject, declaration.initializer, isClass)
      : isOfType(subject, declaration.type, isClass);
  // In JavaScript: this.redlock = new Redlock(…)
  const assignment = ts.isBinaryExpression(declaration) ? declaration : declaration.parent;
  return ts.isBinaryExpression(assignment) && isNew(subject, assignment.right, isClass);
}

const isNew = ({ ts }: Subject, value: ts.Expression | undefined, isClass: IsClass): boolean =>
  value !== undefined && ts.isNewExpression(value) && isClass(value.expression);

function isOfType(subject: Subject, type: ts.TypeNode, isClass: IsClass): boolean {
  const { ts } = subject;
  if (ts.isTypeReferenceNode(type)) return isClass(type.typeName);
  if (!ts.isUnionTypeNode(type)) return false;
  const parts = type.types.filter((part) => !/^(undefined|null)$/.test(subject.textOf(part)));
  return parts.length === 1 && parts.every((part) => isOfType(subject, part, isClass));
}
