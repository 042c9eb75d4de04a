/** Makes pages/, which git ignores, from docs/, CHANGELOG.md and README.md: docs/ is the one source of the site. */
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { redirects, redirectTo } from './redirects.mjs';

const project = new URL('../../', import.meta.url);
const pages = new URL('../pages/', import.meta.url);
const REPOSITORY = 'https://github.com/nestjs-holdfast/nestjs-holdfast/blob/main/';

/** npm shows README.md, and none of the files beside it. The site has the pictures of docs/ itself. */
const PICTURES = 'https://raw.githubusercontent.com/nestjs-holdfast/nestjs-holdfast/main/docs/';

/** Where a page says that the site has the explorer, the site has it. */
const EXPLORER = /<!-- explorer -->[^]*?<!-- \/explorer -->/;
const RUNS_HERE = '<ClientOnly><Explorer /></ClientOnly>';
const WIDE = '---\naside: false\n---\n\n';

/** Where the site shows a file of the project, and undefined if it does not. */
const addressOf = (path) => {
  if (path === 'README.md') return '/';
  if (path === 'CHANGELOG.md') return '/changelog.md';
  return /^docs\/(?:internals\/)?[^/]+\.md$/.test(path) ? path.slice('docs'.length) : undefined;
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

const show = (file, name) => {
  const text = readFileSync(new URL(file, project), 'utf8');
  const whole = EXPLORER.test(text) ? WIDE + text.replace(EXPLORER, RUNS_HERE) : text;
  // Comments are for the tests of the pages.
  const shown = linksOf(whole.replaceAll(/<!--[^]*?-->\n*/g, ''), posix.dirname(file));
  writeFileSync(new URL(name, pages), shown.replaceAll(`](${PICTURES}`, '](/'));
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
show('README.md', 'index.md');
for (const [from, to] of Object.entries(redirects))
  writeFileSync(new URL(`public/${from}.html`, pages), redirectTo(to));
const bundle = new URL('../node_modules/mermaid/dist/mermaid.min.js', import.meta.url);
cpSync(bundle, new URL('public/mermaid.min.js', pages));
