/** Which lines of a folder of lib/, or of a package, are changed: all of them, or one of so many passages. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Lines of a passage, of which all are changed or none. */
const PASSAGE_LINES = 15;

/** Where the code of a folder of lib/ is, or that of a package. */
export const homeOf = (folder) =>
  existsSync(`lib/${folder}`) ? `lib/${folder}` : `packages/${folder}/lib`;

/** What browsers run: its tests are those of a browser. */
export const OF_BROWSERS = 'packages/board/lib/page/';

const nameHash = (name) => createHash('sha256').update(name).digest().readUInt32BE();

/** The files of a folder with their passages, always the same ones: the first line of each and its last, counted from 1. */
export function passagesOf(folder, sample) {
  return readdirSync(homeOf(folder), { recursive: true })
    .map((name) => `${homeOf(folder)}/${name}`)
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
