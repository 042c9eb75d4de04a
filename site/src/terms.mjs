/** The words of docs/internals/glossary.md get a tooltip where a page of docs/ first uses them. */
import { readFileSync } from 'node:fs';

/** Words that everybody knows, or that these pages use in their ordinary sense, too. */
const EVERYDAY = new Set(
  'caller,free,held,taken,instance,key,line,master,node,place,resource,section,server,shared,term,turn'.split(
    ',',
  ),
);

const glossary = readFileSync(new URL('../../docs/internals/glossary.md', import.meta.url), 'utf8');

const plain = (markdown) =>
  markdown
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
    .replace(/: \w[\w ]*$/, '');

/** By its word in small letters. */
export const meanings = new Map(
  [...glossary.matchAll(/^\| ([^|]+?) +\| ([^|]+?) +\|$/gm)]
    .filter(([, words]) => words !== 'word' && !words.startsWith('-'))
    .flatMap(([, words, meaning]) =>
      words.split(', ').map((word) => [word.toLowerCase(), plain(meaning)]),
    )
    .filter(([word]) => !EVERYDAY.has(word)),
);

const longestFirst = [...meanings.keys()].sort((a, b) => b.length - a.length);
const TERM = new RegExp(`\\b(${longestFirst.join('|')})(?:s|es)?\\b`, 'gi');

/** The parts of a text: strings, and pairs of a word and its meaning. `told` are the words that the page has explained before. */
export function partsOf(text, told) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TERM)) {
    const word = match[1].toLowerCase();
    if (told.has(word)) continue;
    told.add(word);
    parts.push(text.slice(end, match.index), [match[0], meanings.get(word)]);
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)].filter((part) => part.length > 0);
}

/** A plugin of markdown-it. Headings, links and code stay as they are. */
export function terms(md) {
  md.core.ruler.push('terms', (state) => {
    if (!isOfUsers(state.env.relativePath)) return;
    const told = new Set();
    let isHeading = false;
    for (const token of state.tokens) {
      if (token.type === 'heading_open' || token.type === 'heading_close')
        isHeading = token.type === 'heading_open';
      if (token.type === 'inline' && !isHeading)
        token.children = explained(token.children, told, state);
    }
  });

  function explained(tokens, told, state) {
    let links = 0;
    return tokens.flatMap((token) => {
      if (token.type === 'link_open') links += 1;
      if (token.type === 'link_close') links -= 1;
      if (token.type !== 'text' || links > 0) return [token];
      return partsOf(token.content, told).map((part) => {
        const isTerm = Array.isArray(part);
        const made = new state.Token(isTerm ? 'html_inline' : 'text', '', 0);
        made.content = isTerm ? tagOf(part, md.utils.escapeHtml) : part;
        return made;
      });
    });
  }
}

const isOfUsers = (path = '') => !/^(?:internals\/|api\/|changelog|index)/.test(path);

const tagOf = ([word, meaning], escape) => `<Term meaning="${escape(meaning)}">${word}</Term>`;
