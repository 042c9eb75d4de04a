import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';

const root = new URL('../../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };

/** Where the checks run, in the order of the columns. */
const PLACES = [
  ['.ci/run', read('.ci/run')],
  ['CI', read('.github/workflows/ci.yml') + read('.github/workflows/site.yml')],
  ['nightly', read('.github/workflows/nightly.yml')],
  ['release', scripts.prepublishOnly!],
] as const;

const rows = Array.from(
  read('docs/internals/testing.md').matchAll(/^\| [^|]+\| `(np[mx] [^`]+)` +\|(.+)\|$/gm),
  ([, command = '', cells = '']) => [command, cells.split('|').map((cell) => cell.trim())] as const,
).filter(([, cells]) => cells.length === PLACES.length);

/** Checks begin so. Others are steps on the way, such as `npm ci`. */
const CHECK = /^npm (test|run (check|test:\w+|simulate(:\w+)?|bench))$/;
const isOurCheck = (command: string): boolean => CHECK.test(command);

describe('the table of docs/internals/testing.md that says which checks run where', () => {
  it.each(PLACES.map(([name, text], column) => [name, { text, column }] as const))(
    'names the checks of %s',
    (_, { text, column }) => {
      const run = [...text.matchAll(/npm (?:test(?! -- )|run [\w:]+)/g)].map(([words]) => words);
      const named = rows.filter(([, cells]) => cells[column] !== '').map(([command]) => command);
      expect(named.filter(isOurCheck).sort()).toEqual([...new Set(run)].filter(isOurCheck).sort());
    },
  );

  it('names all checks of package.json', () => {
    const commands = Object.keys(scripts)
      .map((name) => (name === 'test' ? 'npm test' : `npm run ${name}`))
      .filter(isOurCheck);
    expect(
      rows
        .map(([command]) => command)
        .filter(isOurCheck)
        .sort(),
    ).toEqual(commands.sort());
  });
});
