import ts from 'typescript';

/** What stands for whatever differs. */
export const VARIES = '…';

/** The texts of modules, in pieces: what is put together with + is one text, and what is put into it parts it. */
export class Said {
  readonly #pieces: readonly string[];

  constructor(sources: readonly string[]) {
    this.#pieces = [...new Set(sources.flatMap(textsIn).flatMap((text) => text.split(VARIES)))];
  }

  /** Whether a text can be made of whole pieces, one behind the other; it may begin and end in the middle of one. */
  has(text: string): boolean {
    if (this.#pieces.some((piece) => piece.includes(text))) return true;
    const reached = new Set<number>([0]);
    for (let end = 1; end < text.length; end += 1)
      if (this.#pieces.some((piece) => piece.endsWith(text.slice(0, end)))) reached.add(end);
    for (const start of Array.from({ length: text.length }, (_, at) => at)) {
      if (!reached.has(start)) continue;
      const rest = text.slice(start);
      for (const piece of this.#pieces) {
        if (start > 0 && piece.startsWith(rest)) return true;
        if (piece !== '' && rest.startsWith(piece)) reached.add(start + piece.length);
      }
    }
    return reached.has(text.length);
  }
}

function textsIn(source: string): readonly string[] {
  const file = ts.createSourceFile('lib.ts', source, ts.ScriptTarget.Latest, true);
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    const text = textOf(node);
    if (text !== undefined) texts.push(text);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return texts;
}

function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text;
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map(({ literal }) => VARIES + literal.text).join('');
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    const [left, right] = [textOf(node.left), textOf(node.right)];
    if (left === undefined && right === undefined) return undefined;
    return `${left ?? VARIES}${right ?? VARIES}`;
  }
  return undefined;
}
