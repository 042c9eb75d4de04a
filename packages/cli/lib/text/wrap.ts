import { widthOf } from './width.js';

/** Lines of whole words. A word that is too long stands alone. */
export function wrapped(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && widthOf(last) + 1 + widthOf(word) <= columns)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

const SHORTEST_TEXT = 20;

/** A line with its indentation: what does not fit stands below it, two cells further to the right. */
export function wrappedLine(line: string, columns: number): readonly string[] {
  if (widthOf(line) <= columns) return [line];
  const text = line.trimStart();
  const indent = line.length - text.length;
  const [first = '', ...rest] = wrapped(text, Math.max(SHORTEST_TEXT, columns - indent - 2));
  const space = ' '.repeat(indent);
  return [space + first, ...rest.map((each) => `${space}  ${each}`)];
}
