import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** `lua-file.ts`, or what it was compiled to. */
const MODULE = /\/store\/redis\/lua\/lua-file\.[jt]s$/;

/** Each line keeps its number: Redis names it in an error. */
const withoutComments = (lua) =>
  lua
    .replace(/--\[\[[^]*?\]\]/g, (comment) => comment.replace(/[^\n]/g, ''))
    .replace(/^ *-- (?!@include ).*$/gm, '')
    .replace(/^(?: {2})+/gm, ({ length }) => ' '.repeat(length / 2));

/** For Rollup and Vite: puts the Lua files into the module that reads them. */
export const luaFiles = {
  name: 'lua-files',
  enforce: 'pre',
  load(id) {
    if (!MODULE.test(id)) return undefined;
    const folder = dirname(id);
    const files = readdirSync(folder, { recursive: true })
      .filter((path) => path.endsWith('.lua'))
      .sort()
      .map((path) => [
        path.slice(0, -'.lua'.length),
        withoutComments(readFileSync(join(folder, path), 'utf8')),
      ]);
    return `const files = ${JSON.stringify(Object.fromEntries(files))};\nexport const luaFile = (path) => files[path];\n`;
  },
};
