import { describe, expect, it } from '@jest/globals';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EVENTS } from '../../../lib/observe/channels.js';
import { METRICS } from '../../../lib/observe/metrics.js';
import { labelIn, nameIn } from '../../../lib/prometheus/names.js';
import { redirects } from '../../../site/src/redirects.mjs';
import { brokenLinksIn } from './links.js';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string): string => readFileSync(project + path, 'utf8');

/** Made by the build, and not from docs/. */
const GENERATED = ['api/', 'changelog'];

describe('the documentation site', () => {
  it('names every page of docs/ in its sidebar, once, and no other', () => {
    const named = [...read('site/src/sidebar.mjs').matchAll(/^ {4}'?([\w/-]+)'?: '/gm)].map(
      ([, name]) => name!,
    );
    const pages = readdirSync(`${project}docs`, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => name.slice(0, -'.md'.length));
    expect([...named].sort()).toEqual([...pages, ...GENERATED].sort());
  });
});

describe('a page of docs/', () => {
  const titles = [
    ...read('site/src/sidebar.mjs').matchAll(/^ {4}'?([\w/-]+)'?: '(.*)',$/gm),
  ].filter(([, name = '']) => !GENERATED.includes(name));

  it.each(titles.map(([, name = '', title = '']) => [name, title] as const))(
    'has the title that the sidebar shows: %s',
    (name, title) => {
      expect(read(`docs/${name}.md`).split('\n')[0]).toBe(`# ${title}`);
    },
  );

  it('ends with the pages to read next, if it is for users', () => {
    const names = titles.map(([, name = '']) => name);
    const users = names.filter((name) => !name.startsWith('internals/'));
    expect(
      users.filter(
        (name) => !/^Next: \[.*\.$/.test(read(`docs/${name}.md`).trim().split('\n').at(-1) ?? ''),
      ),
    ).toEqual([]);
  });
});

describe('the pages for users', () => {
  const pages = readdirSync(`${project}docs`).filter((name) => name.endsWith('.md'));

  it.each(pages)('begin with an example: %s', (page) => {
    const [beginning = '', ...sections] = read(`docs/${page}`).split(/^## /m);
    const beginnings = page === 'recipes.md' ? sections : [beginning];
    expect(beginnings.filter((text) => !/^```\w+$/m.test(text))).toEqual([]);
  });

  it('are at most twenty, and can be read in two hours', () => {
    const words = pages.flatMap((page) =>
      read(`docs/${page}`)
        .replaceAll(/<!--[^]*?-->/g, '')
        .split(/\s+/)
        .filter((word) => /\w/.test(word)),
    );
    expect(pages.length).toBeLessThanOrEqual(20);
    expect(words.length).toBeLessThanOrEqual(30_000);
  });
});

describe('a page of the site that has moved', () => {
  const fileOf = (name: string): string => `docs/${name}.md`;

  it.each(Object.entries(redirects))('is /%s, and leads to /%s', (from, to) => {
    expect(existsSync(project + fileOf(from))).toBe(false);
    const [page = '', heading] = to.split('#');
    const link = fileOf(page) + (heading === undefined ? '' : `#${heading}`);
    expect(brokenLinksIn('README.md', `[moved](${link})`, project)).toEqual([]);
  });
});

describe('docs/errors.md', () => {
  const page = read('docs/errors.md');

  it('has a heading for each code of its table of classes', () => {
    const codes = [...page.matchAll(/^\| `\w+` +\| `([A-Z_]+)`/gm)].map(([, code]) => code);
    const headings = [...page.matchAll(/^### ([A-Z_]+)$/gm)].map(([, code]) => code);
    expect(headings).toEqual(codes);
    expect(codes.length).toBeGreaterThan(10);
  });

  it('has the codes of the library, and the reasons of a loss', () => {
    const codes = read('lib/errors/lock-error.ts').matchAll(/^ {2}\| '([A-Z_]+)'/gm);
    for (const [, code] of codes) expect(page).toContain(`\n### ${String(code)}\n`);
    const reasons = read('lib/errors/lost.ts').matchAll(/^ {2}\| '([a-z-]+)'/gm);
    for (const [, reason] of reasons) expect(page).toContain(`\n| \`${String(reason)}\` `);
  });
});

describe('docs/telemetry.md', () => {
  const page = read('docs/telemetry.md');

  it('has a row for each metric, with its labels', () => {
    const rows = [...page.matchAll(/^\| `(holdfast_\w+)` .*\| (.*?) +\|$/gm)];
    expect(rows.map(([, name, labels]) => [name, labels])).toEqual(
      Object.values(METRICS).map((metric) => [
        nameIn(metric),
        metric.labels.map(labelIn).join(', ') || '–',
      ]),
    );
  });

  it('has a row for each event', () => {
    for (const event of Object.keys(EVENTS))
      expect(page).toMatch(new RegExp(`^\\| \`${event}\` `, 'm'));
  });
});

describe('docs/internals/parts.md', () => {
  it('names every peer dependency', () => {
    const page = read('docs/internals/parts.md');
    const { peerDependencies } = JSON.parse(read('package.json')) as {
      peerDependencies: Record<string, string>;
    };
    for (const name of Object.keys(peerDependencies)) expect(page).toContain(`\`${name}\``);
  });
});

describe('CONTRIBUTING.md', () => {
  it('names files and commands that exist', () => {
    const page = read('CONTRIBUTING.md');
    const paths = [...page.matchAll(/`((?:lib|test|docs|scripts|site\/src|sample)\/[\w./-]*)/g)];
    const missing = paths.filter(([, path = '']) => !existsSync(project + path));
    expect(missing.map(([, path]) => path)).toEqual([]);
    expect(paths.length).toBeGreaterThan(20);
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    for (const [, name = ''] of page.matchAll(/`npm run ([\w:]+)/g))
      expect(scripts).toHaveProperty([name]);
  });
});

describe('docs/internals/questions.md', () => {
  const page = read('docs/internals/questions.md');
  const rows = [...page.matchAll(/^\| .* \| \[[^\]]+\]\((.+?)\) +\| \[([^\]]+)\]\((.+?)\) +\|$/gm)];

  it('says which page answers what users of other packages asked', () => {
    expect(rows.length).toBeGreaterThanOrEqual(20);
    expect(page.match(/^\|/gm)).toHaveLength(rows.length + 2);
    for (const [, asked] of rows)
      expect(asked).toMatch(/^https:\/\/github\.com\/[\w.-]+\/[\w.-]+\/issues\/\d+$/);
    expect(new Set(rows.map(([, asked]) => asked)).size).toBe(rows.length);
    expect(brokenLinksIn('docs/internals/questions.md', page, project)).toEqual([]);
    for (const [, , title = '', answer = ''] of rows) {
      const [name = ''] = answer.split('#');
      const [heading] = read(`docs/internals/${name}`).split('\n');
      expect(heading).toBe(`# ${title}`);
    }
  });
});
