import type ts from 'typescript';
import type { Binding, ImportSite } from './imports.js';
import type { Subject } from './subject.js';

const HOLDFAST = 'nestjs-holdfast';

/** Which names a file imports no longer, and which it takes from nestjs-holdfast in their place. */
export class ImportChanges {
  readonly #subject: Subject;
  readonly #dropped = new Map<ImportSite, Set<Binding>>();
  readonly #wanted = new Set<string>();

  constructor(subject: Subject) {
    this.#subject = subject;
  }

  /** Whether nothing else in this file has the name. */
  canWant(name: string, except?: Binding): boolean {
    const { ts } = this.#subject;
    return this.#subject
      .all(ts.isIdentifier)
      .filter((node) => node.text === name && !ts.isPropertyAccessExpression(node.parent))
      .every((node) => this.#isOurs(node) || (except !== undefined && this.#is(node, except)));
  }

  want(name: string): void {
    this.#wanted.add(name);
  }

  drop(site: ImportSite, binding: Binding): void {
    const dropped = this.#dropped.get(site) ?? new Set();
    this.#dropped.set(site, dropped.add(binding));
  }

  /** Edits the imports, when all is known. */
  finish(): void {
    const present = this.#present();
    const missing = [...this.#wanted].filter((name) => !namesIn(present).includes(name)).sort();
    const last = present?.elements.at(-1);
    if (last !== undefined && missing.length > 0) {
      this.#subject.rewrite(last, last.end, last.end, `, ${missing.join(', ')}`);
      missing.length = 0;
    }
    for (const [site, dropped] of this.#dropped) {
      const added =
        missing.length === 0
          ? ''
          : importText(this.#subject, site.statement, site.specifier, missing);
      missing.length = 0;
      this.#shrink(site, dropped, added);
    }
    if (missing.length > 0) this.#addFirst(missing);
  }

  #shrink({ statement, bindings }: ImportSite, dropped: ReadonlySet<Binding>, added: string): void {
    const subject = this.#subject;
    const { ts, eol } = subject;
    const left = bindings.filter((binding) => !dropped.has(binding));
    if (left.length === 0) {
      const end = added === '' ? endOfLine(subject, statement.end) : statement.end;
      subject.rewrite(statement, subject.startOf(statement), end, added);
      return;
    }
    if (!ts.isImportDeclaration(statement) || statement.importClause === undefined) return;
    const { importClause } = statement;
    const clause = (isTypeOnly(importClause) ? 'type ' : '') + clauseOf(subject, left);
    subject.rewrite(statement, subject.startOf(importClause), importClause.end, clause);
    if (added !== '') subject.rewrite(statement, statement.end, statement.end, `${eol}${added}`);
  }

  /** Where nothing was dropped. */
  #addFirst(names: readonly string[]): void {
    const subject = this.#subject;
    const [first] = subject.all(subject.ts.isImportDeclaration);
    if (first === undefined) return;
    const text = importText(subject, first, first.moduleSpecifier, names);
    subject.rewrite(first, first.end, first.end, `${subject.eol}${text}`);
  }

  #present(): ts.NamedImports | undefined {
    const { ts } = this.#subject;
    for (const { moduleSpecifier, importClause } of this.#subject.all(ts.isImportDeclaration)) {
      if (!ts.isStringLiteral(moduleSpecifier) || moduleSpecifier.text !== HOLDFAST) continue;
      const named = importClause?.namedBindings;
      if (named !== undefined && ts.isNamedImports(named) && !isTypeOnly(importClause))
        return named;
    }
    return undefined;
  }

  #isOurs(node: ts.Identifier): boolean {
    const symbol = this.#subject.symbolOf(node);
    const [declaration] = symbol?.declarations ?? [];
    if (declaration === undefined || !this.#subject.ts.isImportSpecifier(declaration)) return false;
    const { moduleSpecifier } = declaration.parent.parent.parent as ts.ImportDeclaration;
    return (moduleSpecifier as ts.StringLiteral).text === HOLDFAST;
  }

  #is(node: ts.Identifier, { local, symbol }: Binding): boolean {
    return node === local || this.#subject.symbolOf(node) === symbol;
  }
}

const isTypeOnly = (clause: ts.ImportClause | undefined): boolean =>
  clause?.getText().startsWith('type ') ?? false;

const namesIn = (present: ts.NamedImports | undefined): readonly string[] =>
  present?.elements.map(({ name }) => name.text) ?? [];

function clauseOf(subject: Subject, bindings: readonly Binding[]): string {
  const named = bindings
    .filter(({ imported }) => imported !== 'default')
    .map(({ local }) => subject.textOf(local.parent));
  const whole = bindings
    .filter(({ imported }) => imported === 'default')
    .map(({ local }) => local.text);
  return [...whole, ...(named.length > 0 ? [`{ ${named.join(', ')} }`] : [])].join(', ');
}

/** In the style of another import: its quotes, and its semicolon. */
function importText(
  subject: Subject,
  statement: ts.Statement,
  specifier: ts.Node,
  names: readonly string[],
): string {
  const quote = subject.textOf(specifier).charAt(0);
  const end = subject.semicolonOf(statement);
  return `import { ${names.join(', ')} } from ${quote}${HOLDFAST}${quote}${end}`;
}

function endOfLine({ source }: Subject, at: number): number {
  const rest = /^[\t ]*\r?\n/.exec(source.text.slice(at))?.[0] ?? '';
  return at + rest.length;
}
