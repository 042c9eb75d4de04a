import type ts from 'typescript';
import type { Subject } from './subject.js';

/** One name that a file imports. */
export interface Binding {
  /** What the package calls it: a name, `default`, or `*` for all of it. */
  readonly imported: string;
  readonly local: ts.Identifier;
  readonly symbol: ts.Symbol | undefined;
}

/** A statement that imports from a package. */
export interface ImportSite {
  readonly form: 'import' | 'export' | 'require' | 'import-equals';
  readonly from: string;
  readonly statement: ts.Statement;
  readonly specifier: ts.StringLiteralLike;
  readonly bindings: readonly Binding[];
  /** What it takes, also of what gets no name here. */
  readonly names: readonly string[];
}

/** Imports of these packages at the top of the file. */
export function importsOf(subject: Subject, packages: readonly string[]): readonly ImportSite[] {
  return subject.source.statements.flatMap((statement) => {
    const site = siteOf(subject, statement);
    return site !== undefined && packages.includes(site.from) ? [site] : [];
  });
}

/** Texts that name such a package elsewhere: `import()`, `jest.mock()`, `import('x').Type`, and what passes its names on. */
export function otherMentions(
  subject: Subject,
  packages: readonly string[],
  handled: readonly ImportSite[],
): readonly ts.Node[] {
  const known = new Set<ts.Node>(handled.map(({ specifier }) => specifier));
  const { ts } = subject;
  return subject
    .all(ts.isStringLiteralLike)
    .filter((node) => packages.includes(node.text) && !known.has(node) && names(subject, node));
}

/** Whether it says which module is meant, and is no text by chance. */
function names(subject: Subject, { parent }: ts.Node): boolean {
  const { ts } = subject;
  if (ts.isExportDeclaration(parent) || ts.isLiteralTypeNode(parent)) return true;
  if (ts.isExternalModuleReference(parent)) return true;
  return ts.isCallExpression(parent) && LOADS.test(subject.textOf(parent.expression));
}

const LOADS = /^(import|require(\.resolve)?|(jest|vi)\.\w+)$/;

/** Without those that pass names on. */
export const withNames = (sites: readonly ImportSite[]): readonly ImportSite[] =>
  sites.filter(({ form }) => form !== 'export');

/** Where a name is used: not where it is imported. */
export const usesOf = (subject: Subject, { symbol, local }: Binding): readonly ts.Identifier[] =>
  subject.mentionsOf(symbol).filter((node) => node !== local && !isImported(subject, node));

const isImported = ({ ts }: Subject, { parent }: ts.Node): boolean =>
  ts.isImportSpecifier(parent) || ts.isImportClause(parent) || ts.isBindingElement(parent);

function siteOf(subject: Subject, statement: ts.Statement): ImportSite | undefined {
  const { ts } = subject;
  if (ts.isImportDeclaration(statement)) return importSite(subject, statement);
  if (ts.isExportDeclaration(statement)) return exportSite(subject, statement);
  if (ts.isImportEqualsDeclaration(statement)) return equalsSite(subject, statement);
  if (ts.isVariableStatement(statement)) return requireSite(subject, statement);
  return undefined;
}

function importSite(subject: Subject, statement: ts.ImportDeclaration): ImportSite | undefined {
  const { ts } = subject;
  const { importClause: clause, moduleSpecifier: specifier } = statement;
  if (!ts.isStringLiteralLike(specifier)) return undefined;
  const bindings: Binding[] = [];
  if (clause?.name !== undefined) bindings.push(binding(subject, 'default', clause.name));
  const named = clause?.namedBindings;
  if (named !== undefined && ts.isNamespaceImport(named))
    bindings.push(binding(subject, '*', named.name));
  if (named !== undefined && ts.isNamedImports(named))
    for (const { propertyName, name } of named.elements)
      bindings.push(binding(subject, (propertyName ?? name).text, name));
  return site('import', statement, specifier, bindings);
}

function exportSite({ ts }: Subject, statement: ts.ExportDeclaration): ImportSite | undefined {
  const { exportClause: clause, moduleSpecifier: specifier } = statement;
  if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return undefined;
  const taken =
    clause !== undefined && ts.isNamedExports(clause)
      ? clause.elements.map(({ propertyName, name }) => (propertyName ?? name).text)
      : ['*'];
  return { ...site('export', statement, specifier, []), names: taken };
}

function equalsSite(
  subject: Subject,
  statement: ts.ImportEqualsDeclaration,
): ImportSite | undefined {
  const { ts } = subject;
  const { moduleReference: reference, name } = statement;
  if (!ts.isExternalModuleReference(reference) || !ts.isStringLiteralLike(reference.expression))
    return undefined;
  return site('import-equals', statement, reference.expression, [binding(subject, '*', name)]);
}

function requireSite(subject: Subject, statement: ts.VariableStatement): ImportSite | undefined {
  const { ts } = subject;
  const [declaration, another] = statement.declarationList.declarations;
  if (declaration?.initializer === undefined || another !== undefined) return undefined;
  const { name, initializer } = declaration;
  const isMember = ts.isPropertyAccessExpression(initializer);
  const call = isMember ? initializer.expression : initializer;
  if (!ts.isCallExpression(call) || subject.textOf(call.expression) !== 'require') return undefined;
  const [specifier] = call.arguments;
  if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return undefined;
  const whole = isMember ? initializer.name.text : '*';
  if (ts.isIdentifier(name))
    return site('require', statement, specifier, [binding(subject, whole, name)]);
  if (isMember || !ts.isObjectBindingPattern(name)) return undefined;
  const bindings = name.elements.flatMap(({ propertyName, name: local }) =>
    ts.isIdentifier(local)
      ? [
          binding(
            subject,
            propertyName === undefined ? local.text : subject.textOf(propertyName),
            local,
          ),
        ]
      : [],
  );
  if (bindings.length < name.elements.length) return undefined;
  return site('require', statement, specifier, bindings);
}

const binding = (subject: Subject, imported: string, local: ts.Identifier): Binding => ({
  imported,
  local,
  symbol: subject.symbolOf(local),
});

const site = (
  form: ImportSite['form'],
  statement: ts.Statement,
  specifier: ts.StringLiteralLike,
  bindings: readonly Binding[],
): ImportSite => ({
  form,
  from: specifier.text,
  statement,
  specifier,
  bindings,
  names: bindings.map(({ imported }) => imported),
});
