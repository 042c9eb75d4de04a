/** Makes pages/, which git ignores, from docs/, CHANGELOG.md and site/landing/. */
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { redirects, redirectTo } from './redirects.mjs';

const project = new URL('../../', import.meta.url);
const pages = new URL('../pages/', import.meta.url);
const REPOSITORY = 'https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/';

/** Where a page says that the site has the explorer, the site shows it, before any text. */
const EXPLORER = /<!-- explorer -->[^]*?<!-- \/explorer -->\n*/;
const RUNS_HERE = '<div class="explorer-place"><ClientOnly><Explorer /></ClientOnly></div>';
const WIDE = '---\naside: false\n---\n\n';

/** Where the site shows a file of the project, and undefined if it does not. */
const addressOf = (path) => {
  if (path === 'CHANGELOG.md') return '/changelog.md';
  return /^docs\/(?:internals\/)?[^/]+\.(?:md|svg)$/.test(path)
    ? path.slice('docs'.length)
    : undefined;
};

/** Links are relative to the file, as GitHub wants them. A file that the site does not show is linked in the repository. */
const linksOf = (text, folder) =>
  text.replaceAll(
    /(\]\(|^\[[^\]]+\]: )(?![a-z]+:|#|\/)([^)\s#]+)(#[^)\s]*)?/gm,
    (_, before, path, anchor = '') => {
      const file = posix.normalize(posix.join(folder, path));
      return `${before}${addressOf(file) ?? REPOSITORY + file}${anchor}`;
    },
  );

const withExplorer = (text) =>
  text.replace(EXPLORER, '').replace(/^# .*\n/, (title) => `${title}\n${RUNS_HERE}\n`);

const show = (file, name) => {
  const text = readFileSync(new URL(file, project), 'utf8');
  const whole = EXPLORER.test(text) ? WIDE + withExplorer(text) : text;
  // Comments are for the tests of the pages.
  const shown = linksOf(whole.replaceAll(/<!--[^]*?-->\n*/g, ''), posix.dirname(file));
  writeFileSync(new URL(name, pages), shown);
};

rmSync(pages, { recursive: true, force: true });
for (const folder of ['public/', 'internals/'])
  mkdirSync(new URL(folder, pages), { recursive: true });
for (const name of readdirSync(new URL('docs/', project), { recursive: true })) {
  if (name.endsWith('.md')) show(`docs/${name}`, name);
  if (name.endsWith('.svg'))
    cpSync(new URL(`docs/${name}`, project), new URL(`public/${name}`, pages));
}
show('CHANGELOG.md', 'changelog.md');
for (const [from, to] of Object.entries(redirects))
  writeFileSync(new URL(`public/${from}.html`, pages), redirectTo(to));
show('site/landing/index.md', 'index.md');
cpSync(new URL('../landing/mark.svg', import.meta.url), new URL('public/mark.svg', pages));
const bundle = new URL('../node_modules/mermaid/dist/mermaid.min.js', import.meta.url);
cpSync(bundle, new URL('public/mermaid.min.js', pages));
