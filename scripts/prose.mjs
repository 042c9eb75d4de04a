/**
 * `npm run prose [-- pages]`: whether the documentation, and the messages and comments of the library, keep the rules of their
 * language (CONTRIBUTING.md). Of the changelog it reads what is not released. `npm run prose -- --measure` prints words, lines and the
 * longest sentence of each page.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { commentsIn } from './prose/comments.mjs';
import { luaCommentsIn } from './prose/lua-comments.mjs';
import { messagesIn } from './prose/messages.mjs';
import { longCommentLines, problemsOf, problemsOfComment, sentencesIn } from './prose/rules.mjs';

/** Written by `npm run simulate:planted` from the texts in test/techniques/simulation/planted/. */
const GENERATED = ['internals/simulation-planted.md'];

/** Texts there are scripts. */
const LUA = /^lib\/store\/redis\/scripts\//;

const project = new URL('../', import.meta.url);
const args = process.argv.slice(2);
const named = args.filter((arg) => !arg.startsWith('--'));

const everyPage = () => [
  'README.md',
  'site/landing/index.md',
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

function everySource() {
  return ['lib/', 'packages/'].flatMap((folder) =>
    readdirSync(new URL(folder, project), { recursive: true })
      .filter((name) => /^(?!.*\b(?:node_modules|dist)\/).*\.(?:tsx?|cts)$/.test(name))
      .map((name) => folder + name),
  );
}

function problemsOfPage({ page, text }) {
  return located(problemsOf(text), page, (line) => line);
}

function problemsOfSource(file) {
  const source = readFileSync(new URL(file, project), 'utf8');
  const isLua = LUA.test(file);
  const messages = isLua ? [] : messagesIn(source);
  const comments = [...commentsIn(source, file), ...(isLua ? luaCommentsIn(source) : [])];
  return [
    ...messages.flatMap(({ text, line }) => located(problemsOf(text), file, () => line)),
    ...comments.flatMap(({ text, line: first }) =>
      located(problemsOfComment(text), file, (line) => first + line - 1),
    ),
    ...located(longCommentLines(source), file, (line) => line),
  ];
}

function located(problems, file, lineOf) {
  return problems.map(({ line, problem }) => `${file}:${String(lineOf(line))}: ${problem}`);
}

/** The lines before it stay, so that problems name the line of the file. */
function unreleased(changelog) {
  const [, second] = [...changelog.matchAll(/^## \[/gm)];
  return changelog.slice(0, second?.index);
}

function check() {
  const sources = named.length > 0 ? [] : everySource();
  const problems = [...pages.flatMap(problemsOfPage), ...sources.flatMap(problemsOfSource)];
  for (const problem of problems) console.error(problem);
  const read = `${String(pages.length)} pages, ${String(sources.length)} source files`;
  console.log(`prose: ${read}, ${String(problems.length)} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

function measure() {
  console.table(
    pages.map(({ page, text }) => {
      const sentences = sentencesIn(text);
      const words = sentences.reduce((sum, sentence) => sum + sentence.words, 0);
      const longest = Math.max(0, ...sentences.map((sentence) => sentence.words));
      const lines = text.split('\n').length - 1;
      return { page, lines, words, longest, grade: gradeOf(sentences, words) };
    }),
  );
}

/** The school grade that reads it with ease: the automated readability index (Smith and Senter, 1967). */
function gradeOf(sentences, words) {
  const letters = sentences.reduce(
    (sum, { text }) => sum + text.replaceAll(/[^\p{L}\p{N}]/gu, '').length,
    0,
  );
  return Number((4.71 * (letters / words) + 0.5 * (words / sentences.length) - 21.43).toFixed(1));
}
