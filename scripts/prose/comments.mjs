/** The comments of a source file as Markdown: TSDoc, and blocks of line comments, without what marks them as comments. */
import { parser } from 'typescript-eslint';

const TAG = /^@(?:param\s+\S+|[a-z]\w*)/i;
const INLINE_TAG = /\{@\w+ ([^}]*)\}/g;
const FENCE = /^```/;

/** Read by tools, and not by people. */
const DIRECTIVE = /^\s*(?:eslint-|@ts-|Stryker |v8 ignore|c8 ignore|#__)/;

/**
 * @param file its name, by which the parser knows whether to expect JSX
 * @returns {{ text: string, line: number }[]} with the line on which the text begins
 */
export function commentsIn(source, file = 'a.ts') {
  const { ast } = parser.parseForESLint(source, { filePath: file, comment: true, loc: true });
  const read = ast.comments.filter(({ value }) => !DIRECTIVE.test(value));
  return blocksOf(read).map((comments) => ({
    text: markdownOf(comments),
    line: comments[0].loc.start.line,
  }));
}

/** Line comments that follow each other are one text. */
function blocksOf(comments) {
  const blocks = [];
  for (const comment of comments) {
    const last = blocks.at(-1)?.at(-1);
    if (last !== undefined && continues(last, comment)) blocks.at(-1).push(comment);
    else blocks.push([comment]);
  }
  return blocks;
}

const continues = (last, comment) =>
  last.type === 'Line' &&
  comment.type === 'Line' &&
  comment.loc.start.line === last.loc.end.line + 1 &&
  comment.loc.start.column === last.loc.start.column;

/** Line by line, so that a line of the text is a line of the file. */
function markdownOf(comments) {
  const lines = comments.flatMap(({ value }) => value.split('\n').map(undecorated));
  let isCode = false;
  return lines
    .map((line) => {
      if (FENCE.test(line.trim())) isCode = !isCode;
      return isCode ? line : paragraph(line);
    })
    .join('\n');
}

const undecorated = (line) => line.replace(/^\s*\*? ?/, '').trimEnd();

/** What a tag says is a paragraph of its own; a name in braces counts as code. */
const paragraph = (line) =>
  line.replace(TAG, '-').replaceAll(INLINE_TAG, (_, name) => `\`${name}\``);
