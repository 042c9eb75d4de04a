import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { load } from 'js-yaml';
import { LockAdmin } from '../../../lib/admin/index.js';
import { METRICS } from '../../../lib/observe/metrics.js';
import { nameIn } from '../../../lib/prometheus/names.js';
import { anchorsOf } from './links.js';
import { Said, VARIES } from './said.js';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string): string => readFileSync(project + path, 'utf8');

const sources = readdirSync(`${project}lib`, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => read(`lib/${path}`));

const PAGES = ['docs/operations.md', 'docs/internals/parts.md'];

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
  const parts = page.split(/^(?=###? )/m).map((part) => ({
    isSituation: part.startsWith('## '),
    title: part.split('\n')[0] ?? '',
    /** The anchor of the part that has the same steps. */
    same: /take the steps of \[[^\]]+\]\(#([\w-]+)\)/i.exec(part)?.[1],
    steps: [...part.matchAll(/^(\d)\. \*\*(\w+)\*\*: `([^`]+)`/gm)].map(
      ([, number = '', step = '', command = '']) => ({ number, step, command }),
    ),
  }));
  const situations = parts.filter(({ isSituation }) => isSituation).slice(1);
  const withSteps = parts.filter(({ steps }) => steps.length > 0);

  it('names metrics and alerts that exist', () => {
    const metrics = Object.values(METRICS).map(nameIn);
    const named = [...page.matchAll(/\bholdfast_[a-z_]+/g)].map(([name]) =>
      name.replace(/_(count|bucket|sum)$/, ''),
    );
    expect(named.length).toBeGreaterThan(2);
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

  it('has three commands for each situation: to look, to act and to verify', () => {
    expect(situations.length).toBeGreaterThanOrEqual(12);
    for (const { title, steps } of withSteps)
      expect([title, steps.map(({ number, step }) => `${number}. ${step}`)]).toEqual([
        title,
        ['1. Look', '2. Act', '3. Verify'],
      ]);
    // Without steps, a situation names another one that has them.
    const anchors = withSteps.flatMap(({ title }) => [...anchorsOf(title)]);
    for (const { title, same } of situations.filter(({ steps }) => steps.length === 0))
      expect([title, anchors]).toEqual([title, expect.arrayContaining([same])]);
  });

  it('names commands that the command line has', () => {
    const named = [...page.matchAll(/npx @nestjs-holdfast\/cli ([a-z-]+)/g)].map(
      ([, name = '']) => name,
    );
    expect(named.length).toBeGreaterThan(20);
    const known = readdirSync(`${project}packages/cli/lib/commands`).map((file) =>
      file.replace('.ts', ''),
    );
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });

  it('changes nothing to look or to verify, and kills only after a look at the process', () => {
    for (const { title, steps } of withSteps) {
      const [look = '', act = '', verify = ''] = steps.map(({ command }) => command);
      const harmless =
        /^(npx @nestjs-holdfast\/cli (show|list|top|doctor|audit|instances)\b|ps |grep |redis-cli (-u "\$REDIS_URL" )?(info|--latency)|chronyc tracking)/;
      expect([title, look]).toEqual([title, expect.stringMatching(harmless)]);
      expect([title, verify]).toEqual([title, expect.stringMatching(harmless)]);
      if (/\bkill/.test(act)) {
        expect(act).toMatch(/^kill -9 \d+$/);
        expect([look, verify].join()).toMatch(/^ps .*,ps /);
      }
    }
    // A release says who is released.
    for (const [command] of page.matchAll(/`npx \S+ release [^`]*`/g))
      expect(command).toContain('--if-holder');
  });

  it('names words of the log that the library says', () => {
    const [, first = ''] = page.split(/^## /m);
    const columns = [...first.matchAll(/^\| ([^|]+) \|/gm)].map(([, column = '']) => column);
    const named = [...columns.join(' ').matchAll(/`(\w+(?: \w+)+)`/g)];
    const sought = [...page.matchAll(/`grep '([^']+)' /g)];
    expect([named.length, sought.length]).toEqual([4, 3]);
    expect(unknownIn([...named, ...sought].map(([, words = '']) => words))).toEqual([]);
  });

  it('leads to each of them from its first table', () => {
    const [, first = ''] = page.split(/^## /m);
    for (const { title } of situations) {
      const [anchor = ''] = anchorsOf(title);
      expect(first).toContain(`(#${anchor})`);
    }
  });
});
