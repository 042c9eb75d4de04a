/** East Asian Wide and Fullwidth (Unicode Standard Annex #11), in ranges that terminals agree on. */
const WIDE =
  /^[\u1100-\u115F\u2E80-\u303E\u3041-\u33FF\u3400-\u4DBF\u4E00-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{16FE0}-\u{18DFF}\u{1AFF0}-\u{1B2FF}\u{1F200}-\u{1F2FF}\u{20000}-\u{3FFFD}]/u;

const EMOJI = /^(?:\p{Emoji_Presentation}|\p{Extended_Pictographic}\uFE0F|\p{Regional_Indicator})/u;

/** Combining marks, the later parts of Korean syllables, and other characters that take no cell of their own. */
const ZERO = /^(?:\p{Mn}|\p{Me}|[\u1160-\u11FF]|\u200C|\u200D|[\uFE00-\uFE0F])/u;

const ONLY_ASCII = /^[\x20-\x7E]*$/;

/** What a reader takes for one character may be several code points. */
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

const charactersOf = (text: string): readonly string[] =>
  Array.from(segmenter.segment(text), ({ segment }) => segment);

function widthOfCharacter(character: string): number {
  if (EMOJI.test(character)) return 2;
  let width = 0;
  for (const part of character) if (!ZERO.test(part)) width += WIDE.test(part) ? 2 : 1;
  return width;
}

/** How many cells of a terminal a text takes. Without control characters: see `printable`. */
export function widthOf(text: string): number {
  if (ONLY_ASCII.test(text)) return text.length;
  return charactersOf(text).reduce((sum, character) => sum + widthOfCharacter(character), 0);
}

/** A text in at most this many cells: `…` replaces the rest. */
export function fitted(text: string, columns: number): string {
  if (columns <= 0) return '';
  if (widthOf(text) <= columns) return text;
  let left = columns - 1;
  let kept = '';
  for (const character of charactersOf(text)) {
    left -= widthOfCharacter(character);
    if (left < 0) break;
    kept += character;
  }
  return `${kept}…`;
}

/** A text in exactly this many cells, unless it is wider. */
export function padded(text: string, columns: number, align: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, columns - widthOf(text)));
  return align === 'left' ? text + space : space + text;
}
