/**
 * `npm run prose [-- pages]`: whether the documentation keeps the rules of its language (CONTRIBUTING.md). Of the changelog it
 * reads what is not released. `npm run prose -- --measure` prints words, lines and the longest sentence of each page.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { problemsOf, sentencesIn } from './prose/rules.mjs';

/** Written by `npm run simulate:planted` from the texts in test/simulation/planted/. */
const GENERATED = ['simulation-planted.md'];

const project = new URL('../', import.meta.url);
const args = process.argv.slice(2);
const named = args.filter((arg) => !arg.startsWith('--'));

const everyPage = () => [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  ...readdirSync(new URL('docs/', project), { recursive: true })
    .filter((name) => name.endsWith('.md') && !GENERATED.includes(name))
    .map((name) => `docs/${name}`),
];

const pages = (named.length > 0 ? named : everyPage()).map((page) => {
  const text = readFileSync(new URL(page, project), 'utf8');
  return { page, text: page === 'CHANGELOG.md' ? unreleased(text) : text };
});

if (args.includes('--measure')) measure();
else check();

/** The lines before it stay, so that problems name the line of the file. */
function unreleased(changelog) {
  const [, second] = [...changelog.matchAll(/^## \[/gm)];
  return changelog.slice(0, second?.index);
}

function check() {
  const problems = pages.flatMap(({ page, text }) =>
    problemsOf(text).map(({ line, problem }) => `${page}:${String(line)}: ${problem}`),
  );
  for (const problem of problems) console.error(problem);
  console.log(`prose: ${String(pages.length)} pages, ${String(problems.length)} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

function measure() {
  console.table(
    pages.map(({ page, text }) => {
      const sentences = sentencesIn(text);
      const words = sentences.reduce((sum, sentence) => sum + sentence.words, 0);
      const longest = Math.max(0, ...sentences.map((sentence) => sentence.words));
      return { page, lines: text.split('\n').length - 1, words, longest };
    }),
  );
}
