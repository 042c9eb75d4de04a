import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Program } from './program.js';

const COMMITTED = new URL('../../docs/picture.svg', import.meta.url);

let folder: string;
let program: Program;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'picture-'));
});

afterEach(async () => {
  program.signal('SIGTERM'); // SIGKILL would leave its processes and its Redis server behind
  await program.ended;
});

afterAll(() => rm(folder, { recursive: true }));

describe('npm run picture', () => {
  it('draws what the committed picture shows', async () => {
    const file = join(folder, 'picture.svg');
    program = new Program('scripts/picture.mjs', {
      PICTURE_APP: 'sample/orders/src/main.js',
      PICTURE_FILE: file,
    });
    const { code } = await program.ended;
    expect(code === 0 ? '' : program.output).toBe('');
    // Otherwise run "npm run picture", look at the picture, and commit it.
    expect(await readFile(file, 'utf8')).toBe(await readFile(COMMITTED, 'utf8'));
  }, 60_000);
});
