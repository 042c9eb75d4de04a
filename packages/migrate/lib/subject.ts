import MagicString from 'magic-string';
import type ts from 'typescript';
import type { Compiler } from './compiler.js';
import { markLine } from './marks.js';

/** One file that is migrated: its syntax, what its names mean, and what is to be changed. */
export class Subject {
  readonly ts: Compiler;
  readonly source: ts.SourceFile;
  /** The text with its changes. Two changes of one place throw. */
  readonly edited: MagicString;
  readonly #checker: ts.TypeChecker;
  readonly #references = new Map<ts.Symbol, ts.Identifier[]>();
  readonly #nodes: ts.Node[] = [];
  readonly #marks = new Set<string>();
  readonly #rewritten = new Set<ts.Node>();

  constructor(compiler: Compiler, program: ts.Program, source: ts.SourceFile) {
    this.ts = compiler;
    this.source = source;
    this.edited = new MagicString(source.text);
    this.#checker = program.getTypeChecker();
    const visit = (node: ts.Node): void => {
      this.#nodes.push(node);
      if (compiler.isIdentifier(node)) this.#refer(node);
      compiler.forEachChild(node, visit);
    };
    visit(source);
  }

  /** Places that were rewritten. */
  get rewritten(): number {
    return this.#rewritten.size;
  }

  /** Places that are left to the reader; those that were marked before do not count. */
  get marked(): number {
    return this.#marks.size;
  }

  get isTypeScript(): boolean {
    return /\.[cm]?tsx?$/.test(this.source.fileName);
  }

  get eol(): string {
    return this.source.text.includes('\r\n') ? '\r\n' : '\n';
  }

  textOf(node: ts.Node): string {
    return node.getText(this.source);
  }

  startOf(node: ts.Node): number {
    return node.getStart(this.source);
  }

  /** The white space with which the line of a node begins. */
  indentOf(node: ts.Node): string {
    return this.#indentAt(this.#lineStartOf(node));
  }

  /** The semicolon of a statement, if the code has them. */
  semicolonOf(statement: ts.Node): string {
    return this.textOf(statement).endsWith(';') ? ';' : '';
  }

  /** Every node of the file of a kind. */
  all<T extends ts.Node>(is: (node: ts.Node) => node is T): readonly T[] {
    return this.#nodes.filter(is);
  }

  symbolOf(node: ts.Node): ts.Symbol | undefined {
    const { parent } = node;
    if (this.ts.isShorthandPropertyAssignment(parent))
      return this.#checker.getShorthandAssignmentValueSymbol(parent);
    if (this.ts.isExportSpecifier(parent))
      return this.#checker.getExportSpecifierLocalTargetSymbol(parent);
    return this.#checker.getSymbolAtLocation(node);
  }

  /** The identifiers of a part of the file. */
  namesWithin(outer: ts.Node | undefined): readonly ts.Identifier[] {
    if (outer === undefined) return [];
    return this.all(this.ts.isIdentifier).filter((name) => isWithin(name, outer));
  }

  /** Whether nothing else in the class has the name of its member: `const { redlock } = this`. */
  isOnly(
    member: {
      readonly target: ts.Node;
      readonly declaration: ts.Node;
      readonly name: ts.Identifier;
    },
    known: ReadonlySet<ts.Node>,
  ): boolean {
    const { ts } = this;
    const { target, declaration, name } = member;
    /** `this.lock.lock()`: what is called of a known member. */
    const isCalled = ({ parent }: ts.Node): boolean =>
      ts.isPropertyAccessExpression(parent) &&
      ts.isPropertyAccessExpression(parent.expression) &&
      known.has(parent.expression.name);
    return [...this.all(ts.isIdentifier), ...this.all(ts.isStringLiteralLike)]
      .filter((node) => node.text === name.text && isWithin(node, target))
      .every((node) => known.has(node) || isCalled(node) || isWithin(node, declaration));
  }

  /** The identifiers with this meaning, its declaration among them. */
  mentionsOf(symbol: ts.Symbol | undefined): readonly ts.Identifier[] {
    return symbol === undefined ? [] : (this.#references.get(symbol) ?? []);
  }

  /** Whether it is text for certain, as far as this file tells. */
  isText(expression: ts.Expression): boolean {
    return (this.#checker.getTypeAtLocation(expression).flags & this.ts.TypeFlags.StringLike) !== 0;
  }

  /** A parameter that is a property has two meanings: the parameter, and the property. */
  propertyOf(parameter: ts.ParameterDeclaration): ts.Symbol | undefined {
    if (!this.ts.isParameterPropertyDeclaration(parameter, parameter.parent)) return undefined;
    if (!this.ts.isIdentifier(parameter.name)) return undefined;
    return this.#checker
      .getSymbolsOfParameterPropertyDeclaration(parameter, this.textOf(parameter.name))
      .find(({ flags }) => (flags & this.ts.SymbolFlags.Property) !== 0);
  }

  /** Replaces text. The place is the node that the summary counts once, however many edits it takes. */
  rewrite(place: ts.Node, start: number, end: number, text: string): void {
    if (start === end) this.edited.appendLeft(start, text);
    else this.edited.update(start, end, text);
    this.#rewritten.add(place);
  }

  rewriteNode(node: ts.Node, text: string, place = node): void {
    this.rewrite(place, this.startOf(node), node.end, text);
  }

  /** Removes a node, with the comments and empty lines above it. */
  remove(node: ts.Node): void {
    const { text } = this.source;
    const [comment] = this.ts.getLeadingCommentRanges(text, node.pos) ?? [];
    const start = comment?.pos ?? this.startOf(node);
    const gap = /(?:\r?\n[\t ]*)*$/.exec(text.slice(0, start))?.[0].length ?? 0;
    this.rewrite(node, start - gap, node.end, '');
  }

  /** Puts a comment above the line of a node, unless it has it already. */
  mark(node: ts.Node, text: string, heading: string): void {
    const line = markLine(text, heading);
    const lineStart = this.#lineFor(node);
    const { text: code } = this.source;
    const id = `${String(lineStart)} ${line}`;
    if (this.#marks.has(id) || marksAbove(code, lineStart).includes(line)) return;
    this.#marks.add(id);
    this.edited.appendLeft(lineStart, `${this.#indentAt(lineStart)}${line}${this.eol}`);
  }

  /** Where a line begins above which a comment is one: not within a text. */
  #lineFor(node: ts.Node): number {
    const { ts } = this;
    let outer = node;
    for (let at = node; !ts.isSourceFile(at); at = at.parent)
      if (ts.isTemplateExpression(at) || ts.isJsxElement(at) || ts.isJsxFragment(at)) outer = at;
    return this.#lineStartOf(outer);
  }

  #lineStartOf(node: ts.Node): number {
    const { line } = this.source.getLineAndCharacterOfPosition(this.startOf(node));
    return this.source.getPositionOfLineAndCharacter(line, 0);
  }

  #indentAt(lineStart: number): string {
    return /^[\t ]*/.exec(this.source.text.slice(lineStart))?.[0] ?? '';
  }

  #refer(node: ts.Identifier): void {
    const symbol = this.symbolOf(node);
    if (symbol === undefined) return;
    const known = this.#references.get(symbol);
    if (known === undefined) this.#references.set(symbol, [node]);
    else known.push(node);
  }
}

/** Whether a node is the other one, or a part of it. */
export const isWithin = (node: ts.Node, outer: ts.Node): boolean =>
  outer.pos <= node.pos && node.end <= outer.end;

/** The comments in the lines right above. */
function marksAbove(code: string, lineStart: number): readonly string[] {
  const lines = code.slice(0, lineStart).split(/\r?\n/).slice(0, -1).reverse();
  const end = lines.findIndex((line) => !/^\s*\/\//.test(line));
  return lines.slice(0, end < 0 ? lines.length : end).map((line) => line.trim());
}
