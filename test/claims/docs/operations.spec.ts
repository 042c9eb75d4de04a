import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { load } from 'js-yaml';
import { LockAdmin } from '../../../lib/admin/index.js';
import { METRICS } from '../../../lib/observe/metrics.js';
import { nameIn } from '../../../lib/prometheus/names.js';
import { Said, VARIES } from './said.js';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string): string => readFileSync(project + path, 'utf8');

const sources = readdirSync(`${project}lib`, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => read(`lib/${path}`));

const PAGES = ['docs/operations.md', 'docs/admin.md'];

const linesIn = (page: string): readonly string[] =>
  [...read(page).matchAll(/^```log\n([^]*?)^```$/gm)].flatMap(([, block = '']) =>
    block.trim().split('\n'),
  );

const said = new Said(sources);

/** The parts of lines of the log that the library does not say. */
const unknownIn = (lines: readonly string[]): readonly string[] =>
  lines
    .flatMap((line) => line.split(VARIES))
    .map((part) => part.trim())
    .filter((part) => part !== '' && !said.has(part));

/** A server says them. */
const OF_REDIS = [`OOM command not allowed when used memory > 'maxmemory'`, 'NOPERM'];

const withoutRedis = (line: string): string =>
  OF_REDIS.reduce((text, words) => text.replaceAll(words, VARIES), line);

describe('the lines of the log', () => {
  it.each(PAGES)('that %s quotes are said by the library', (page) => {
    const lines = linesIn(page);
    expect(lines.length).toBeGreaterThan(0);
    expect(unknownIn(lines.map(withoutRedis))).toEqual([]);
  });

  it('are found out when nothing says them', () => {
    expect(
      unknownIn([
        'Redis at … is usable again. Locks are granted again.',
        'Redis at … is there. Locks are given again.',
      ]),
    ).toEqual(['is there. Locks are given again.']);
  });
});

describe('docs/operations.md', () => {
  const page = read('docs/operations.md');

  it('names metrics and alerts that exist', () => {
    const metrics = Object.values(METRICS).map(nameIn);
    const named = [...page.matchAll(/\bholdfast_[a-z_]+/g)].map(([name]) =>
      name.replace(/_(count|bucket|sum)$/, ''),
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !metrics.includes(name))).toEqual([]);
    const { groups } = load(read('docs/grafana/alerts.yml')) as {
      readonly groups: readonly { readonly rules: readonly { readonly alert: string }[] }[];
    };
    const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
    const alerted = [...page.matchAll(/\bHoldfast[A-Z]\w+/g)].map(([name]) => name);
    expect(alerted.filter((name) => !alerts.includes(name))).toEqual([]);
    // And each alert has a situation.
    expect(alerts.filter((name) => !alerted.includes(name))).toEqual([]);
  });

  it('names methods that LockAdmin has', () => {
    const named = [...page.matchAll(/\badmin\.(\w+)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => name !== 'md' && !(name in LockAdmin.prototype))).toEqual([]);
  });

  it('has for each situation what one sees, why, what to do and how to prevent it', () => {
    const [, ...situations] = page.split(/^## /m).slice(1);
    expect(situations.length).toBeGreaterThanOrEqual(12);
    for (const situation of situations)
      for (const part of ['**You see**', '**Why**', '**Prevent**'])
        expect([situation.split('\n')[0], situation.includes(part)]).toEqual([
          situation.split('\n')[0],
          true,
        ]);
  });

  it('leads to each of them from its first table', () => {
    const [first = '', ...situations] = page.split(/^## /m).slice(1);
    const anchors = situations.map(
      (each) =>
        `#${(each.split('\n')[0] ?? '')
          .toLowerCase()
          .replaceAll(/[^\w -]/g, '')
          .replaceAll(' ', '-')}`,
    );
    expect(anchors.filter((anchor) => !first.includes(`(${anchor})`))).toEqual([]);
  });
});
