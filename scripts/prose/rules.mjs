/** The rules of the documentation's language: short sentences, and the words of the field. */
import { ParseEnglish } from 'parse-english';
import { SKIP, visit } from 'unist-util-visit';
import { textsIn } from './texts.mjs';
import { VOCABULARY } from './vocabulary.mjs';

export const MOST_WORDS = 30;

const english = new ParseEnglish();
/** "1 s. Then" is the end of a sentence, and no initial. */
const UNIT_AT_THE_END = /(?<=\d )[a-z]\.(?= )/g;

/** The sentences of a page, with the number of their words. */
export function sentencesIn(markdown) {
  return textsIn(markdown).flatMap(({ text, line }) => {
    const parsed = text.replaceAll(UNIT_AT_THE_END, 'unit.');
    const sentences = [];
    visit(english.parse(parsed), 'SentenceNode', ({ children, position }) => {
      const words = children.filter(({ type }) => type === 'WordNode').length;
      const { start, end } = position;
      sentences.push({ text: parsed.slice(start.offset, end.offset), line, words });
      return SKIP;
    });
    return sentences;
  });
}

/** @returns {{ line: number, problem: string }[]} */
export function problemsOf(markdown) {
  return [...longSentences(markdown), ...unwantedWords(markdown)].toSorted(
    (one, other) => one.line - other.line,
  );
}

const longSentences = (markdown) =>
  sentencesIn(markdown)
    .filter(({ words }) => words > MOST_WORDS)
    .map(({ text, line, words }) => ({
      line,
      problem: `a sentence of ${String(words)} words, at most ${String(MOST_WORDS)}: ${text.replaceAll(/\s+/g, ' ')}`,
    }));

const unwantedWords = (markdown) =>
  textsIn(markdown).flatMap(({ text, line }) =>
    VOCABULARY.flatMap(([pattern, instead]) => {
      const found = pattern.exec(text.replaceAll(/\s+/g, ' '));
      return found === null ? [] : [{ line, problem: `"${found[0]}": write ${instead}` }];
    }),
  );
