import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { luaText, PROPOSAL_BOUND_US } from '../../lib/store/redis/scripts/script.js';
import { MARK } from '../../lib/store/owner-token.js';

const FOLDER = new URL('../../lib/store/redis/lua/', import.meta.url);

const scripts = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.lua'))
  .map((file) => file.slice(0, -'.lua'.length));

/** The text of a script without its comments. */
const codeOf = (name: string): string =>
  luaText(name)
    .replace(/--\[\[[^]*?\]\]/g, '')
    .replace(/^ *--.*$/gm, '');

describe.each(scripts)('lua/%s.lua', (name) => {
  it('begins with its keys, its arguments and what it returns', () => {
    const [head = ''] = readFileSync(new URL(`${name}.lua`, FOLDER), 'utf8').split(']]');
    expect(head).toMatch(/^--\[\[\n {2}KEYS {4}\S[^]*\n {2}ARGV {4}\S[^]*\n {2}Returns \S/);
  });

  it('defines each function once, before its first use', () => {
    const code = codeOf(name);
    const defined = Array.from(code.matchAll(/\blocal function (\w+)/g), ([, each = '']) => each);
    expect(defined).toEqual([...new Set(defined)]);
    for (const each of defined) {
      const before = code.slice(0, code.indexOf(`local function ${each}(`));
      expect(before).not.toMatch(new RegExp(`\\b${each}\\(|pcall\\(${each}\\b`));
    }
  });

  it('has the mark of owner tokens wherever it reads one', () => {
    const quoted = codeOf(name).match(/(?<=')\^?holdfast[^']*/g) ?? [];
    for (const each of quoted) expect(each.replace(/^\^/, '')).toMatch(new RegExp(`^${MARK}`));
  });
});

it('the plain script and the whole one take proposals as far ahead of the clock as the client expects', () => {
  for (const name of ['take', 'acquire'])
    expect(codeOf(name)).toContain(`local PROPOSAL_BOUND_US = ${String(PROPOSAL_BOUND_US)}\n`);
});
