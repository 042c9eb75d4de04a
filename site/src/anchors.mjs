/** Whether each link to a heading of the built site has its heading. VitePress itself checks links to pages only. */
import { existsSync, readFileSync, readdirSync } from 'node:fs';

const built = new URL('../.vitepress/dist/', import.meta.url);
const base = process.env.SITE_BASE ?? '/';
const pages = readdirSync(built, { recursive: true }).filter((name) => name.endsWith('.html'));
const html = new Map(pages.map((page) => [page, readFileSync(new URL(page, built), 'utf8')]));
const ids = new Map(
  [...html].map(([page, text]) => [
    page,
    new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)),
  ]),
);

let links = 0;
const dead = [];
for (const [page, text] of html) {
  for (const [, href] of text.matchAll(/<a\b[^>]*? href="([^"]+)"/g)) {
    const to = new URL(href, `http://site${base}${page}`);
    if (to.host !== 'site') continue;
    links++;
    const path = decodeURIComponent(to.pathname.slice(base.length));
    const file = path === '' || path.endsWith('/') ? `${path}index.html` : path;
    const target = html.has(file) ? file : `${file}.html`;
    const found = html.has(target)
      ? to.hash.length < 2 || ids.get(target).has(decodeURIComponent(to.hash.slice(1)))
      : existsSync(new URL(file, built));
    if (!found) dead.push(`${page}: ${href}`);
  }
}
for (const link of new Set(dead)) console.error(`A dead link: ${link}`);
console.log(`${pages.length} pages, ${links} links of the site, ${dead.length} dead`);
process.exitCode = dead.length === 0 ? 0 : 1;
