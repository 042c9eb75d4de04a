/** What README.md tells a new user to put into an application, as it stands there. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { projectRoot } from '../support/consumer.mjs';

const BLOCK =
  /^<!-- app: (?<name>\S+) -->\s*(?:<!-- sample:(?<preamble>[^]*?)-->\s*)?^```\w+\n(?<code>[^]*?)^```$/gm;

/** The code blocks behind `<!-- app: name -->`; the code of `<!-- sample: … -->` comes first, a line an import. */
export async function readmeBlocks() {
  const text = await readFile(join(projectRoot, 'README.md'), 'utf8');
  const blocks = new Map(
    [...text.matchAll(BLOCK)].map(({ groups: { name, preamble, code } }) => [
      name,
      preamble ? `${preamble.trim().replaceAll('; ', ';\n')}\n\n${code}` : code,
    ]),
  );
  return (name) => {
    const block = blocks.get(name);
    if (block === undefined) throw new Error(`README.md has no block behind <!-- app: ${name} -->`);
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
