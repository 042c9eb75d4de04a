/** The texts of a page that people read: its paragraphs, headings and cells of tables, without code. */
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmTableFromMarkdown } from 'mdast-util-gfm-table';
import { gfmTable } from 'micromark-extension-gfm-table';
import { SKIP, visit } from 'unist-util-visit';

/** What stands for inline code: one word, and for a call another one. */
export const CODE = 'Code';
export const CALL = 'FunctionCall';

const TEXTS = ['paragraph', 'heading', 'tableCell'];
/** Tables of options are made of comments in lib/, by test/claims/docs/options.spec.ts. */
const GENERATED = /^<!-- options: /;

/** `test/x.spec.ts`: the title as it is in that file. */
const TITLE_OF_A_TEST = /^test\/\S+\.ts$/;

/** @returns {{ text: string, line: number }[]} */
export function textsIn(markdown) {
  const tree = fromMarkdown(markdown, {
    extensions: [gfmTable()],
    mdastExtensions: [gfmTableFromMarkdown()],
  });
  const texts = [];
  visit(tree, (node, index, parent) => {
    const before = parent?.children[index - 1];
    if (node.type === 'table' && GENERATED.test(before?.value ?? '')) return SKIP;
    if (!TEXTS.includes(node.type)) return undefined;
    if (TITLE_OF_A_TEST.test(node.children[0]?.value ?? '')) return SKIP;
    texts.push({ text: textOf(node), line: node.position.start.line });
    return SKIP;
  });
  return texts;
}

function textOf(node) {
  if (node.type === 'text') return node.value;
  if (node.type === 'inlineCode') return /^[\w.]+\(.*\)$/.test(node.value) ? CALL : CODE;
  if (node.type === 'break') return ' ';
  return (node.children ?? []).map(textOf).join('');
}
