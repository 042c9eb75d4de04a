import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A file as its application had it, and as it is after the migration. */
export interface Fixture {
  /** `redlock/nest.ts` */
  readonly name: string;
  readonly input: string;
  readonly expected: string;
}

const FOLDER = fileURLToPath(new URL('fixtures/', import.meta.url));
/** `redlock/nest.input.ts.txt`: a text, because it imports packages that are not installed. */
const INPUT = /\.input(\.\w+)\.txt$/;

export const fixtures: readonly Fixture[] = readdirSync(FOLDER, { recursive: true })
  .map(String)
  .filter((file) => INPUT.test(file))
  .sort()
  .map((file) => ({
    name: file.replace(INPUT, '$1'),
    input: readFileSync(FOLDER + file, 'utf8'),
    expected: expectedAt(FOLDER + file.replace('.input.', '.expected.')),
  }));

function expectedAt(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

/** With `UPDATE_FIXTURES=1` what comes out is written, to be read in the diff. */
export function update({ name }: Fixture, text: string): void {
  if (process.env.UPDATE_FIXTURES !== '1') return;
  writeFileSync(`${FOLDER}${name.replace(/\.(\w+)$/, '.expected.$1.txt')}`, text);
}
