import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string): string => readFileSync(project + path, 'utf8');
const readme = read('README.md');
const pages = readdirSync(`${project}docs`).filter((name) => name.endsWith('.md'));

const numbersIn = (text: string): readonly number[] =>
  Array.from(text.matchAll(/\d[\d,]*(?:\.\d+)?/g), ([number]) => Number(number.replace(',', '')));

describe('README.md', () => {
  it('is short', () => {
    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(150);
  });

  it('begins with the two commands', () => {
    const [, commands = ''] = /```sh\n([^]*?)```/.exec(readme) ?? [];
    expect(commands).toMatch(/^npm ci && npm start .*\nnpm ci && npm test .*\n$/);
  });

  it('has the figures of docs/performance.md', () => {
    const rows = readme.split('\n').filter((line) => /^\| (?:32 callers|one caller) /.test(line));
    const shown = rows.flatMap((row) => numbersIn(row.split('|').slice(2).join()));
    const measured = numbersIn(read('docs/performance.md'));
    expect(shown.length).toBeGreaterThan(7);
    const unknown = shown.filter((one) => !measured.some((other) => Math.abs(other - one) < 0.006));
    expect(unknown).toEqual([]);
  });

  it('compares libraries in rows that docs/migrating.md has, too', () => {
    const comparison = readme.split('\n## Beside other libraries\n')[1]?.split('\n## ')[0] ?? '';
    const rowsIn = (text: string): readonly string[] =>
      text.replaceAll(/(?<=\|) +| +(?=\|)|-+(?=[-|])/g, '').match(/^\|.*\|$/gm) ?? [];
    expect(rowsIn(comparison).length).toBeGreaterThan(5);
    expect(rowsIn(read('docs/migrating.md'))).toEqual(
      expect.arrayContaining([...rowsIn(comparison)]),
    );
  });

  it('has the figures of the first page of the site', () => {
    const figures = read('site/landing/index.md').match(/\d[\d,]* ms/g) ?? [];
    expect(figures.length).toBeGreaterThan(1);
    for (const figure of figures) expect(readme).toContain(figure);
  });

  it('has the settings for ts-jest that the page on tests has', () => {
    const documented = pages
      .map((name) => /<!-- app: ts-jest -->\n\n```json\n([^]*?)```/.exec(read(`docs/${name}`))?.[1])
      .find((settings) => settings !== undefined);
    const [, settings = ''] = /```json\n([^]*?)```/.exec(readme) ?? [];
    expect(JSON.parse(`{${settings}}`)).toEqual(JSON.parse(documented ?? ''));
  });
});
