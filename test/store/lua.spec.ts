import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { luaText, PROPOSAL_BOUND_US } from '../../lib/store/redis/scripts/script.js';
import { MARK } from '../../lib/store/owner-token.js';

const FOLDER = new URL('../../lib/store/redis/lua/', import.meta.url);

const scripts = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.lua'))
  .map((file) => file.slice(0, -'.lua'.length));

describe.each(scripts)('lua/%s.lua', (name) => {
  it('begins with its keys, its arguments and what it returns', () => {
    const [head = ''] = readFileSync(new URL(`${name}.lua`, FOLDER), 'utf8').split(']]');
    expect(head).toMatch(/^--\[\[\n {2}KEYS {4}\S[^]*\n {2}ARGV {4}\S[^]*\n {2}Returns \S/);
  });

  it('contains each included file once, before the first use of what that defines', () => {
    const text = luaText(name);
    expect(text).not.toMatch(/@include/);
    const defined = Array.from(text.matchAll(/^local function (\w+)/gm), ([, each = '']) => each);
    expect(defined).toEqual([...new Set(defined)]);
    for (const each of defined)
      expect(text.search(new RegExp(`\\b${each}\\(`))).toBe(text.indexOf(`${each}(`));
  });

  it('has the numbers and the mark of the code that asks it', () => {
    const text = luaText(name);
    for (const [, bound] of text.matchAll(/local PROPOSAL_BOUND_US = (\d+)/g))
      expect(Number(bound)).toBe(PROPOSAL_BOUND_US);
    for (const [quoted = ''] of text.matchAll(/'\^?holdfast[^']*'/g))
      expect(quoted.replace(/^'\^?/, '')).toMatch(new RegExp(`^${MARK}`));
  });
});
