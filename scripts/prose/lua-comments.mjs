/** The comments of the Lua scripts that a source file has as template literals. */
import luaparse from 'luaparse';
import ts from 'typescript';
import { QUOTED } from './messages.mjs';
import { CODE } from './texts.mjs';

/** What stands for what a template inserts, mostly other Lua. */
const INSERTED = 'inserted ';

/** @returns {{ text: string, line: number }[]} with the line on which the text begins */
export function luaCommentsIn(source) {
  const file = ts.createSourceFile('a.ts', source, ts.ScriptTarget.Latest, true);
  const texts = [];
  const visit = (node) => {
    const lua = templateOf(node);
    if (lua?.includes('--') !== true) {
      ts.forEachChild(node, visit);
      return;
    }
    const { line } = file.getLineAndCharacterOfPosition(node.getStart());
    texts.push(...textsOf(commentsOf(lua)).map((each) => ({ ...each, line: line + each.line })));
  };
  visit(file);
  return texts;
}

function templateOf(node) {
  if (ts.isNoSubstitutionTemplateLiteral(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  return [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join(INSERTED);
}

/** By its tokens, because a template may be a part of a script. */
function commentsOf(lua) {
  const comments = [];
  const lexer = luaparse.parse({
    wait: true,
    locations: true,
    onCreateNode: (node) => node.type === 'Comment' && comments.push(node),
  });
  lexer.write(lua);
  while (lexer.lex().type !== luaparse.tokenTypes.EOF);
  return comments;
}

/** Line comments that follow each other are one text. The head of a script is a table: each of its lines is a text. */
function textsOf(comments) {
  const texts = [];
  let end;
  for (const { value, raw, loc } of comments) {
    const { line, column } = loc.start;
    const isBlock = raw.startsWith('--[[');
    if (isBlock) {
      const rows = value.split('\n');
      const first = loc.end.line + 1 - rows.length;
      texts.push(...rows.map((text, at) => ({ text: text.trim(), line: first + at })));
    } else if (end?.line === line - 1 && end.column === column) {
      texts.at(-1).text += `\n${value.trim()}`;
    } else {
      texts.push({ text: value.trim(), line });
    }
    end = isBlock ? undefined : { line, column };
  }
  return texts
    .filter(({ text }) => text !== '')
    .map(({ text, line }) => ({ text: text.replaceAll(QUOTED, CODE), line }));
}
