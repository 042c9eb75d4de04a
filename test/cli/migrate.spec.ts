import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { run } from './program.js';

const SOURCE = "import Redlock from 'redlock';\nexport const locks = new Redlock([]);\n";
const here = process.cwd();
const { argv } = process;
let folder: string;

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-here-')));
  writeFileSync(join(folder, 'a.ts'), SOURCE);
  // Everything is loaded before the folder changes.
  expect((await run(['migrate', folder, '-n'])).code).toBe(0);
});

afterEach(() => {
  process.chdir(here);
  process.argv = argv;
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe('migrate without a path', () => {
  it('is for the folder in which it is called', async () => {
    process.chdir(folder);
    const { code, stdout, stderr } = await run(['migrate', '-n']);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^1 file read, 1 to be changed: .*\nNothing was written\.\n$/),
    });
    expect(stdout).toContain("-import Redlock from 'redlock';\n");
    expect(readFileSync('a.ts', 'utf8')).toBe(SOURCE);
  });

  it('says what to install where there is no compiler, also where the program has no name', async () => {
    process.chdir(folder);
    process.argv = ['node'];
    expect(await run(['migrate', '-n'])).toMatchObject({
      ...{ code: 2, stdout: '' },
      stderr: expect.stringMatching(/^error: .*typescript.*\nSee nestjs-holdfast --help\.\n$/),
    });
  });
});
