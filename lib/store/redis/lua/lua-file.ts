import { readFileSync } from 'node:fs';

/**
 * The text of a Lua file, by its path from here without its ending. In the published package another module has all texts
 * (`scripts/lua-files.mjs`).
 */
export const luaFile = (path: string): string =>
  // eslint-disable-next-line no-restricted-syntax -- this module is not published
  readFileSync(new URL(`./${path}.lua`, import.meta.url), 'utf8');
