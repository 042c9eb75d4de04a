import { describe, expect, it } from '@jest/globals';
import { transformSync } from '@swc/core';
import { readFileSync } from 'node:fs';
import { parseLua } from './lua/compile.js';
import { plant, PLANTED } from './planted/index.js';

const projectFile = (path: string): string =>
  readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

describe('a planted bug', () => {
  it('has a name of its own', () => {
    const names = PLANTED.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(PLANTED)('can be put into the library: $name', (bug) => {
    const source = projectFile(bug.file);
    const planted = plant(source, bug);
    expect(planted).not.toBe(source);
    const parse = (): unknown =>
      bug.file.endsWith('.lua')
        ? parseLua(planted)
        : transformSync(planted, { jsc: { parser: { syntax: 'typescript' } } });
    expect(parse).not.toThrow();
  });

  it.each(PLANTED)('breaks what the documentation says: $name', ({ breaks, page }) => {
    const text = projectFile(`docs/${page ?? 'internals/promises.md'}`);
    expect(text.replaceAll(/ +/g, ' ')).toContain(breaks);
  });
});
