import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

const URL_OF_A_PAGE = /\bhttps?:\/\/[^\s)>]+/g;
const PAGE = /[\w./-]+\.md\b/g;

/** Pages that the declarations of an installed package name, and not by their URL: `index.d.ts: docs/once.md`. They are not in the package. */
export async function pagesWithoutUrl(root) {
  const names = await readdir(root, { recursive: true });
  const declarations = names.filter((name) => /\.d\.c?ts$/.test(name));
  const named = declarations.map(async (name) => {
    const text = (await readFile(join(root, name), 'utf8')).replaceAll(URL_OF_A_PAGE, '');
    return Array.from(text.matchAll(PAGE), ([page]) => `${name}: ${page}`);
  });
  return (await Promise.all(named)).flat();
}
