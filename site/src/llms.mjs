/**
 * Writes what language models read, after VitePress has built the site: each page as Markdown beside its HTML, `llms.txt` with a line for
 * each of them (https://llmstxt.org), and `llms-full.txt` with the text of all. The last group of the sidebar is for those who change the
 * library: it is optional there, and not in `llms-full.txt`.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { sidebar } from './sidebar.mjs';

const ADDRESS = 'https://nestjs-holdfast.github.io/nestjs-holdfast/';
const ABOUT =
  'Distributed locks for NestJS on Redis: a decorator, an injectable service, waiting without polling, fencing tokens, prompt loss detection.';

const pages = new URL('../pages/', import.meta.url);
const built = new URL('../.vitepress/dist/', import.meta.url);

/** Made by TypeDoc: a folder of pages, which is only linked. */
const isFolder = (name) => name.endsWith('/');

const textOf = (name) =>
  readFileSync(new URL(`${name}.md`, pages), 'utf8')
    .replace(/^---\n[^]*?\n---\n+/, '')
    .replace(/<div class="explorer-place">.*<\/div>\n+/, '')
    .replaceAll('](/', `](${ADDRESS}`)
    .replaceAll(/^(\[[^\]]+\]: )\//gm, `$1${ADDRESS}`);

/** The first sentence of the page. */
function aboutOf(text) {
  const paragraphs = text.replaceAll(/^```[^]*?^```$/gm, '').split(/\n{2,}/);
  const first = paragraphs.find((paragraph) => /^[^#|<-]/.test(paragraph)) ?? '';
  const words = first.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/\s+/g, ' ');
  const [sentence] = words.split(/(?<=[.!?]) /);
  return sentence.replace(/:$/, '.');
}

const groups = sidebar.map(({ text: group, items }, index) => ({
  group: index === sidebar.length - 1 ? 'Optional' : group,
  items: items.map(({ text: title, link }) => {
    const name = link.slice(1);
    return isFolder(name) ? { title, name } : { title, name, text: textOf(name) };
  }),
}));

const lineOf = ({ title, name, text }) =>
  text === undefined
    ? `- [${title}](${ADDRESS}${name})`
    : `- [${title}](${ADDRESS}${name}.md): ${aboutOf(text)}`;

const parts = groups.map(({ group, items }) => `## ${group}\n\n${items.map(lineOf).join('\n')}\n`);
writeFileSync(new URL('llms.txt', built), `# Holdfast\n\n> ${ABOUT}\n\n${parts.join('\n')}`);

for (const { name, text } of groups.flatMap(({ items }) => items)) {
  if (text === undefined) continue;
  const file = new URL(`${name}.md`, built);
  mkdirSync(new URL('./', file), { recursive: true });
  writeFileSync(file, text);
}

const users = groups.filter(({ group }) => group !== 'Optional').flatMap(({ items }) => items);
const texts = users.filter(({ name }) => name !== 'changelog').flatMap(({ text = [] }) => text);
writeFileSync(new URL('llms-full.txt', built), texts.join('\n'));
