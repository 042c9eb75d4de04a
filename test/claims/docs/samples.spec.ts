import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import * as holdfast from '../../../lib/index.js';
import * as testing from '../../../lib/testing/index.js';
import { brokenLinksIn } from './links.js';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const read = (page: string): string => readFileSync(project + page, 'utf8');

const docs = readdirSync(`${project}docs`, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`);
const pages = [...readdirSync(project).filter((name) => name.endsWith('.md')), ...docs];

describe('the samples of the documentation', () => {
  it('are marked as "ts", so that none goes unseen', () => {
    const languages = ['README.md', ...docs].flatMap((page) =>
      [...read(page).matchAll(/^```(\w*)\n[^]*?^```$/gm)].map(([, language]) => language),
    );
    expect(
      languages.filter((language) => /^(typescript|js|javascript|)$/.test(language ?? '')),
    ).toEqual([]);
  });
});

describe('the links of the documentation', () => {
  it.each(pages)('of %s lead to files and headings that exist', (page) => {
    expect(brokenLinksIn(page, read(page), project)).toEqual([]);
  });

  it('are found out when they lead nowhere', () => {
    const text =
      '# One\n[a](README.md) [b](docs/none.md) [c](#one) [d](#two) [e](https://nestjs.com) [f]\n\n[f]: docs/neither.md';
    expect(brokenLinksIn('page.md', text, project)).toEqual([
      'docs/none.md',
      '#two',
      'docs/neither.md',
    ]);
  });
});

describe('the addresses of pages that the packages print', () => {
  const ADDRESS =
    /https:\/\/github\.com\/nestjs-holdfast\/nestjs-holdfast\/blob\/main\/((?:docs|CHANGELOG)[\w./-]*\.md(?:#[\w-]+)?)/g;
  const sources = ['lib', 'packages'].flatMap((folder) =>
    readdirSync(project + folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /^(?!.*\b(?:node_modules|dist)\/).*\.(?:tsx?|cts|lua|md)$/.test(name))
      .map((name) => `${folder}/${name}`),
  );
  const links = sources.flatMap((source) =>
    Array.from(read(source).matchAll(ADDRESS), ([, address = '']) => `[${source}](${address})`),
  );

  it('lead to pages and headings that exist', () => {
    expect(links.length).toBeGreaterThan(10);
    expect(brokenLinksIn('README.md', links.join(' '), project)).toEqual([]);
  });
});

describe('the documentation', () => {
  const text = ['README.md', ...docs].map(read).join('\n');

  it.each([...Object.keys(holdfast), ...Object.keys(testing)])('names %s', (name) => {
    expect(text).toMatch(new RegExp(`\\b${name}\\b`));
  });
});
