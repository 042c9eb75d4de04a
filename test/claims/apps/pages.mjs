/** What README.md and the pages in docs/ tell a new user to put into an application, as it stands there. */
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { projectRoot } from '../../support/consumer.mjs';

const BLOCK =
  /^<!-- app: (?<name>\S+) -->\s*(?:<!-- sample:(?<preamble>[^]*?)-->\s*)?^```\w+\n(?<code>[^]*?)^```$/gm;

/** The code blocks behind `<!-- app: name -->`; the code of `<!-- sample: … -->` comes first, a line an import. */
export async function documentedBlocks() {
  const names = (await readdir(join(projectRoot, 'docs'), { recursive: true })).filter((name) =>
    name.endsWith('.md'),
  );
  const pages = ['README.md', ...names.map((name) => join('docs', name))];
  const texts = await Promise.all(pages.map((page) => readFile(join(projectRoot, page), 'utf8')));
  const blocks = new Map(
    [...texts.join('\n').matchAll(BLOCK)].map(({ groups: { name, preamble, code } }) => [
      name,
      preamble ? `${preamble.trim().replaceAll('; ', ';\n')}\n\n${code}` : code,
    ]),
  );
  return (name) => {
    const block = blocks.get(name);
    if (block === undefined) throw new Error(`no page has a block behind <!-- app: ${name} -->`);
    return block;
  };
}

/** The status line, the names of the headers and the body of an answer. */
export function readAnswer(http) {
  const [head, body] = http.trim().split('\n\n');
  const [status, ...headers] = head.split('\n');
  return {
    status: Number(status.split(' ')[1]),
    headers: headers.map((line) => line.split(':')[0]),
    body: JSON.parse(body),
  };
}
