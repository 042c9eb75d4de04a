import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const ABSOLUTE_URL = /\bhttps?:\/\/[^\s)>]+/g;
/** `docs/guarantees.md`, in a comment or as a link. */
const PAGE = /[\w./-]+\.md\b/g;
const LINK = /\]\((?<target>[^)#\s]+)[^)]*\)/g;

/** What the README and the declarations of an installed package refer to, and is not in it: `README.md: docs/guarantees.md`. */
export async function missingFiles(root) {
  const names = await readdir(root, { recursive: true });
  const declarations = names.filter((name) => /\.d\.c?ts$/.test(name));
  const missing = [];
  for (const name of ['README.md', ...declarations]) {
    const text = (await readFile(join(root, name), 'utf8')).replaceAll(ABSOLUTE_URL, '');
    const targets = [
      ...Array.from(text.matchAll(PAGE), ([target]) => target),
      ...Array.from(text.matchAll(LINK), ({ groups }) => groups.target),
    ];
    for (const target of new Set(targets)) {
      if (!existsSync(join(root, target))) missing.push(`${name}: ${target}`);
    }
  }
  return missing;
}
