import { describe, expect, it } from '@jest/globals';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { FILES } from './built-site.js';

const read = (name: string): string => readFileSync(FILES + name, 'utf8');
const ADDRESS = 'https://nestjs-holdfast.github.io/nestjs-holdfast/';
const docs = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.md'),
);

describe('llms.txt', () => {
  const [users = '', ours = ''] = read('llms.txt').split('\n## Optional\n');
  const linked = (text: string): readonly string[] =>
    Array.from(text.matchAll(/^- \[.+?\]\((.+?)\)/gm), ([, link = '']) =>
      link.slice(ADDRESS.length),
    );

  it('names each page with a sentence about it', () => {
    expect(users).toMatch(/^# Holdfast\n\n> .+\.\n\n## /);
    const names = [...linked(users), ...linked(ours)];
    expect(names.toSorted()).toEqual([...docs, 'api/', 'changelog.md'].toSorted());
    for (const name of names) expect(existsSync(FILES + name)).toBe(true);
    const lines = `${users}\n${ours}`.split('\n').filter((line) => line.startsWith('- '));
    expect(lines.filter((line) => !/\): .+[.!?]$/.test(line))).toEqual([`- [API](${ADDRESS}api/)`]);
  });

  it('leads to the text of the pages, whose links have whole addresses', () => {
    const page = read('cron.md');
    expect(page).toMatch(/^# Cron jobs and leaders\n/);
    expect(page).toContain(`](${ADDRESS}once.md`);
  });

  it('has the text of all pages for users in llms-full.txt, and nothing that is for the site', () => {
    const text = read('llms-full.txt');
    const titles = (names: readonly string[]): readonly string[] =>
      names.filter((name) => docs.includes(name)).map((name) => `${read(name).split('\n')[0]!}\n`);
    for (const title of titles(linked(users))) expect(text).toContain(title);
    for (const title of titles(linked(ours))) expect(text).not.toContain(`\n${title}`);
    expect(text.replaceAll(/^```[^]*?^```$/gm, '')).not.toMatch(/<!--|<Explorer|^---$|\]\(\//m);
  });
});
