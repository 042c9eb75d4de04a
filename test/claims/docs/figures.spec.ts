import { describe, expect, it } from '@jest/globals';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import prettier from 'prettier';

/** `UPDATE_DOCS=1 npm test -- test/claims/docs/figures` writes the table of docs/performance.md anew. */
const project = fileURLToPath(new URL('../../../', import.meta.url));
const read = (page: string): string => readFileSync(project + page, 'utf8');

const PAGE = 'docs/performance.md';
const SOURCE = 'docs/internals/performance.md';
const source = read(SOURCE);

/** The cells of the first table behind a heading, by row. */
function tableBehind(heading: string): readonly (readonly string[])[] {
  const [, text = ''] = source.split(`${heading}\n`);
  const [, rows = ''] = /^\|[-: |]+\|\n((?:\|.*\n)+)/m.exec(text) ?? [];
  return rows
    .trim()
    .split('\n')
    .map((row) => row.split('|').slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim()));
}

const figures = tableBehind('## Figures');
const others = tableBehind('### The other libraries');

const percent = (ratio: string): string => `${(Number(ratio) * 100).toFixed(0)} %`;

/** The share of the bare commands that a scenario of the benchmark reaches. */
function shareOf(callers: string): string {
  const name = `${callers}: locks per second`;
  const row = figures.find(([scenario, , of]) => scenario === name && of === 'the bare commands');
  return percent(row?.[1]?.split(' ')[0] ?? '');
}

const othersOf = (row: number): readonly string[] => others[row]?.slice(2) ?? [];

/** What a user compares. */
function table(): string {
  const seconds = (row: number): readonly string[] => others[row]?.slice(1) ?? [];
  const rows = [
    ['', 'Holdfast', 'redlock 5', 'redis-semaphore 5.8.0', 'redlock-universal 0.8.5'],
    ['---', '---:', '---:', '---:', '---:'],
    [
      'one caller: locks per second, as a share of plain Redis commands',
      `${shareOf('one caller, keys locked again')}; ${shareOf('one caller, new keys')} with new keys`,
      ...othersOf(0).map(percent),
    ],
    [
      '64 callers, each with its own key: the same',
      `${shareOf('64 callers, own keys, keys locked again')}; ${shareOf('64 callers, own keys, new keys')} with new keys`,
      ...othersOf(1).map(percent),
    ],
    ['32 callers on one key, 5 ms of work: locks per second', ...seconds(2)],
    [
      'the same: 99 % of the waits are shorter than',
      ...seconds(3).map((milliseconds) => `${milliseconds} ms`),
    ],
  ];
  return `${rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}

describe(PAGE, () => {
  it('has the figures of the benchmark in its table', async () => {
    const text = read(PAGE).replace(
      /(<!-- figures -->\n\n)(?:\|.*\n)*/,
      (_, marker: string) => marker + table(),
    );
    const settings = { ...(await prettier.resolveConfig(project + PAGE)), parser: 'markdown' };
    const formatted = await prettier.format(text, settings);
    if (process.env.UPDATE_DOCS === '1') writeFileSync(project + PAGE, formatted);
    expect(read(PAGE)).toBe(formatted);
    expect(formatted).not.toMatch(/NaN|undefined/);
    expect(figures.length + others.length).toBeGreaterThan(50);
  });

  it('names no other times and sizes than the page with all figures', () => {
    const words = read(PAGE).replaceAll(/^```[^]*?^```$|^\|.*$/gm, '');
    const named = Array.from(words.matchAll(/([\d.,]*\d) (?:ms|s|kB|KiB)\b/g));
    const unknown = named.filter(
      ([figure, number]) => !source.includes(figure) && !source.includes(` ${String(number)} |`),
    );
    expect(unknown.map(([figure]) => figure)).toEqual([]);
    expect(named.length).toBeGreaterThan(5);
  });
});

describe('figures on other pages', () => {
  const pages = ['README.md', ...readdirSync(`${project}docs`).map((name) => `docs/${name}`)];
  /** `[88 %](performance.md#figures)`, `[88 %][figures]`. */
  const LINK = /\[([^\]]*\d[^\]]*)\](?:\(([^)]+)\)|\[([^\]]+)\])/g;

  it(`are those of ${PAGE}, where they link to it`, () => {
    const named = pages
      .filter((name) => name.endsWith('.md'))
      .flatMap((name) => {
        const text = read(name);
        const definitions = new Map(
          Array.from(text.matchAll(/^\[([^\]]+)\]: (\S+)$/gm), ([, key = '', to = '']) => [
            key,
            to,
          ]),
        );
        return Array.from(text.matchAll(LINK))
          .filter(([, , to, key = '']) =>
            /(?:^|\/)performance\.md/.test(to ?? definitions.get(key) ?? ''),
          )
          .flatMap(([, shown = '']) => shown.match(/[\d.,]*\d(?: (?:%|ms))?/g) ?? [])
          .map((figure) => ({ name, figure }));
      });
    expect(named.filter(({ figure }) => !read(PAGE).includes(figure))).toEqual([]);
    expect(named.length).toBeGreaterThan(2);
  });
});
