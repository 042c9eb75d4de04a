import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

const root = new URL('../../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

/** The rows of all tables whose first column is called "fault", cell by cell. */
function faultRows(page: string): readonly (readonly string[])[] {
  const tables = read(page).matchAll(/^\| fault .*\n\|[-| ]+\n((?:\|.*\n)+)/gm);
  return Array.from(tables, ([, rows = '']) => rows.trim().split('\n'))
    .flat()
    .map((row) => row.split('|').map((cell) => cell.trim()))
    .map(([, ...cells]) => cells);
}

const checks = faultRows('docs/internals/correctness.md');

describe('the tables in docs/internals/correctness.md', () => {
  it('have the lines of those in docs/internals/promises.md', () => {
    const lines = faultRows('docs/internals/promises.md').map(([line]) => line);
    expect(lines.length).toBeGreaterThan(40);
    expect(checks.map(([line]) => line)).toEqual(lines);
  });

  it('name faults that simulated worlds have', () => {
    const faults = read('test/techniques/simulation/faults.ts');
    for (const [, simulated = ''] of checks)
      for (const [, kind = ''] of simulated.matchAll(/`([\w-]+)`/g))
        expect(faults).toContain(`'${kind}'`);
  });

  it('name tests that exist', () => {
    for (const [, , real = ''] of checks) {
      if (real === '–') continue;
      const [, path = '', title = ''] = /^`(.+?)`: (.+)$/.exec(real) ?? [];
      expect(existsSync(new URL(path, root))).toBe(true);
      expect(read(path)).toContain(title);
    }
  });
});

describe('the table in docs/guarantees.md', () => {
  /** "yes" or "no", whatever follows. */
  const overlaps = (page: string): readonly (readonly (string | undefined)[])[] =>
    faultRows(page).map(([line, overlap = '']) => [line, /yes|no/.exec(overlap)?.[0]]);

  it('says the same of each fault as docs/internals/promises.md', () => {
    const rows = overlaps('docs/guarantees.md');
    expect(rows.length).toBeGreaterThanOrEqual(20);
    expect(overlaps('docs/internals/promises.md')).toEqual(expect.arrayContaining([...rows]));
  });
});
