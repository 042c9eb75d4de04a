/** Which lines of a folder of lib/ are changed: all of them, or one of so many passages. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

/** Lines of a passage, of which all are changed or none. */
const PASSAGE_LINES = 15;

/** What browsers run: its tests are those of a browser. */
export const OF_BROWSERS = 'lib/board/page/';

const nameHash = (name) => createHash('sha256').update(name).digest().readUInt32BE();

/** The files of a folder with their passages, always the same ones: the first line of each and its last, counted from 1. */
export function passagesOf(folder, sample) {
  return readdirSync(`lib/${folder}`, { recursive: true })
    .map((name) => `lib/${folder}/${name}`)
    .filter((file) => file.endsWith('.ts') && !file.startsWith(OF_BROWSERS))
    .sort()
    .map((file) => {
      const lines = readFileSync(file, 'utf8').split('\n').length;
      const passages = Array.from({ length: Math.ceil(lines / PASSAGE_LINES) }, (_, index) => index)
        .filter((index) => nameHash(`${file} ${index}`) % sample === 0)
        .map((index) => ({ first: index * PASSAGE_LINES + 1, last: (index + 1) * PASSAGE_LINES }));
      return { file, passages };
    })
    .filter(({ passages }) => passages.length > 0);
}
