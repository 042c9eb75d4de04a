import stringWidth from 'string-width';

/** What a reader takes for one character may be several code points. */
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

const charactersOf = (text: string): readonly string[] =>
  Array.from(segmenter.segment(text), ({ segment }) => segment);

/** How many cells of a terminal a text takes. Without control characters: see `printable`. */
export const widthOf = (text: string): number => stringWidth(text);

/** A text in at most this many cells: `…` replaces the rest. */
export function fitted(text: string, columns: number): string {
  if (columns <= 0) return '';
  if (widthOf(text) <= columns) return text;
  let left = columns - 1;
  let kept = '';
  for (const character of charactersOf(text)) {
    left -= widthOf(character);
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
