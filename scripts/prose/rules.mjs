/** The rules of the documentation's language: short sentences, and the words of the field. */
import { ParseEnglish } from 'parse-english';
import { SKIP, visit } from 'unist-util-visit';
import { textsIn } from './texts.mjs';
import { VOCABULARY } from './vocabulary.mjs';

export const MOST_WORDS = 30;
const MOST_COLUMNS = 140;

/** A comment has no text before it that says what such a word stands for. */
const WITHOUT_ITS_NOUN = /^(?:It|Its|They|Their|Them|Those|That)\b/;
const IS_COMMENT = /^\s*(?:\/?\*|\/\/|--)/;

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

/**
 * What comments have to keep beyond that: each sentence begins with its subject, and the first one names it.
 *
 * @returns {{ line: number, problem: string }[]}
 */
export function problemsOfComment(markdown) {
  const sentences = sentencesIn(markdown);
  const [first] = sentences;
  const problems = sentences
    .filter(({ text }) => /^Of\b/.test(text))
    .map(({ text, line }) => ({ line, problem: `begin with the subject, not with "Of": ${text}` }));
  if (first !== undefined && WITHOUT_ITS_NOUN.test(first.text))
    problems.push({ line: first.line, problem: `name the subject of the comment: ${first.text}` });
  return [...problemsOf(markdown), ...problems];
}

/** @returns {{ line: number, problem: string }[]} */
export const longCommentLines = (source) =>
  source.split('\n').flatMap((text, index) =>
    IS_COMMENT.test(text) && text.length > MOST_COLUMNS
      ? [
          {
            line: index + 1,
            problem: `a comment of ${String(text.length)} columns, at most ${String(MOST_COLUMNS)}`,
          },
        ]
      : [],
  );

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
