import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { loadCompiler } from '../../packages/migrate/lib/compiler.js';
import { run } from '../cli/program.js';
import { fixtures } from './fixtures.js';

const { input, expected } = fixtures.find(({ name }) => name === 'redlock/nest.ts')!;
const BROKEN = "import Redlock from 'redlock';\nlet x = ;\n";
const OTHER = "import { Redis } from 'ioredis';\n\n\n  new Redis( ) // as it is\n";

/** The administrator may read and write every file. What is loaded lazily has to be loaded before. */
async function unprivileged<T>(act: () => Promise<T>): Promise<T> {
  const isAdministrator = process.geteuid?.() === 0;
  if (isAdministrator) process.seteuid?.('nobody');
  try {
    return await act();
  } finally {
    if (isAdministrator) process.seteuid?.('root');
  }
}

describe('nestjs-holdfast migrate', () => {
  let folder: string;
  const path = (name: string): string => join(folder, name);
  const read = (name: string): string => readFileSync(path(name), 'utf8');
  const write = (name: string, content: string | Buffer): void => {
    writeFileSync(path(name), content);
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-migrate-'));
    mkdirSync(path('src'));
    mkdirSync(path('node_modules'));
    write('src/orders.ts', input);
    write('src/other.ts', OTHER);
    write('node_modules/redlock.js', input);
  });

  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it('rewrites the files of a folder, and sums up', async () => {
    expect(await run(['migrate', folder])).toMatchObject({
      code: 0,
      stdout: `${path('src/orders.ts')}: 1 rewritten, 3 marked\n`,
      stderr: expect.stringContaining(
        '2 files read, 1 changed: 1 place rewritten, 3 places marked.\nNext: search for TODO(nestjs-holdfast)',
      ),
    });
    expect(read('src/orders.ts')).toBe(expected);
    expect(read('src/other.ts')).toBe(OTHER);
    expect(read('node_modules/redlock.js')).toBe(input);
  });

  it('takes the files of a folder in the order of their names, and nothing but code', async () => {
    for (const name of ['src/c.ts', 'src/b.mts', 'src/a.cts']) write(name, input);
    const others = ['src/notes.md', 'src/types.d.ts', 'src/orders.ts.bak'];
    for (const name of others) write(name, input);
    symlinkSync(path('src/other.ts'), path('src/link.ts'));
    const { stdout, stderr } = await run(['migrate', folder]);
    expect(stdout.match(/\w+\.\w+(?=:)/g)).toEqual(['a.cts', 'b.mts', 'c.ts', 'orders.ts']);
    expect(stderr).toContain('5 files read, 4 changed');
    for (const name of others) expect(read(name)).toBe(input);
  });

  it('changes the import of redlock only with --drop-in', async () => {
    const { stderr } = await run(['migrate', '--drop-in', folder]);
    expect(stderr).toContain('2 files read, 1 changed: 1 place rewritten, 1 place marked.');
    expect(read('src/orders.ts')).toContain("from '@nestjs-holdfast/redlock'");
    expect(read('src/orders.ts')).not.toContain('LockService replaces');
  });

  it('does not say how to register the module where another file does', async () => {
    const { input: mutexes } = fixtures.find(({ name }) => name === 'redis-semaphore/orders.ts')!;
    write('src/orders.ts', mutexes);
    write(
      'src/app.ts',
      "import { LockModule } from 'nestjs-holdfast';\nLockModule.forRoot({ redis });\n",
    );
    await run(['migrate', folder]);
    expect(read('src/orders.ts')).toContain('LockService');
    expect(read('src/orders.ts')).not.toContain('register LockModule');
  });

  it('changes nothing a second time', async () => {
    await run(['migrate', folder]);
    const { mtimeMs } = statSync(path('src/orders.ts'));
    expect(await run(['migrate', folder])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: '2 files read, 0 changed: 0 places rewritten, 0 places marked.\n',
    });
    expect(statSync(path('src/orders.ts')).mtimeMs).toBe(mtimeMs);
  });

  it('prints a diff and writes nothing with --dry-run', async () => {
    const { code, stdout, stderr } = await run(['migrate', '--dry-run', folder]);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr:
        '2 files read, 1 to be changed: 1 place rewritten, 3 places marked.\nNothing was written.\n',
    });
    const name = path('src/orders.ts');
    expect(stdout).toContain(`--- a/${name}\n+++ b/${name}\n`);
    expect(stdout).toContain(
      "-import Redlock, { ExecutionError, type Lock, ResourceLockedError } from 'redlock';\n+import",
    );
    expect(stdout.match(/^@@ .* @@$/gm)).toEqual([
      '@@ -3,1 +3,1 @@',
      '@@ -8,0 +9,1 @@',
      '@@ -22,0 +24,1 @@',
      '@@ -34,0 +37,1 @@',
    ]);
    expect(read('src/orders.ts')).toBe(input);
  });

  it('reports a file that cannot be parsed, leaves it alone, and does the others', async () => {
    write('src/broken.ts', BROKEN);
    expect(await run(['migrate', folder])).toMatchObject({
      code: 6,
      stderr: expect.stringContaining(
        `left alone: ${path('src/broken.ts')} cannot be parsed. line 2: Expression expected.\n`,
      ),
    });
    expect(read('src/broken.ts')).toBe(BROKEN);
    expect(read('src/orders.ts')).toBe(expected);
  });

  it('reports a file that is not UTF-8, and leaves it alone', async () => {
    const bytes = Buffer.from("import Redlock from 'redlock'; // \xe9\n", 'latin1');
    write('src/latin.ts', bytes);
    write('src/foreign.ts', Buffer.from('// \xe9\n', 'latin1'));
    const { code, stderr } = await run(['migrate', folder]);
    expect(code).toBe(6);
    expect(stderr).toContain(`${path('src/latin.ts')} is not UTF-8.`);
    expect(stderr).not.toContain('foreign');
    expect(readFileSync(path('src/latin.ts'))).toEqual(bytes);
  });

  it.each([
    ['read', 'src/orders.ts', 0o200],
    ['read', 'src/lost', 0o300],
    ['written', 'src/orders.ts', 0o444],
  ])('reports what cannot be %s (%s), and does the others', async (what, name, mode) => {
    mkdirSync(path('src/lost'));
    for (const other of ['src/a.ts', 'src/z.ts', 'src/lost/b.ts']) write(other, input);
    await run(['migrate', '--dry-run', folder]);
    const all = ['src/a.ts', 'src/orders.ts', 'src/z.ts', 'src/lost/b.ts'];
    for (const each of ['', 'src', 'src/lost']) chmodSync(path(each), 0o777);
    for (const each of all) chmodSync(path(each), 0o666);
    chmodSync(path(name), mode);
    expect(await unprivileged(() => run(['migrate', folder]))).toMatchObject({
      code: 6,
      stderr: expect.stringContaining(`left alone: ${path(name)} cannot be ${what}: EACCES.\n`),
    });
    chmodSync(path(name), 0o777);
    for (const each of all)
      expect([each, read(each)]).toEqual([each, each.startsWith(name) ? input : expected]);
  });

  it('keeps the mark of the byte order', async () => {
    write('src/orders.ts', `\uFEFF${input}`);
    await run(['migrate', path('src/orders.ts')]);
    expect(read('src/orders.ts')).toBe(`\uFEFF${expected}`);
  });

  it('prints one document with --json', async () => {
    const { stdout } = await run(['migrate', '--json', '--dry-run', path('src/orders.ts')]);
    expect(JSON.parse(stdout)).toEqual({
      files: 1,
      changed: [
        {
          path: path('src/orders.ts'),
          rewritten: 1,
          marked: 3,
          diff: expect.stringContaining('+++ '),
        },
      ],
      failed: [],
    });
  });

  it.each([
    [['migrate', 'no-such-folder'], 'There is no file and no folder "no-such-folder".'],
    [['migrate', '--redis', 'redis://a'], '"migrate" takes no option --redis.'],
  ])('%j is refused', async (args, problem) => {
    const { code, stderr } = await run(args);
    expect(code).toBe(2);
    expect(stderr).toContain(problem);
  });

  it('says what to install where typescript is missing, or has no API', () => {
    expect(() => loadCompiler([folder])).toThrow(
      expect.objectContaining({
        name: 'NoCompilerError',
        message: expect.stringContaining(
          'which is not installed here: npm install --save-dev typescript@6.',
        ),
      }),
    );
    mkdirSync(path('seven/node_modules/typescript'), { recursive: true });
    write('seven/node_modules/typescript/index.js', "exports.version = '7.0.2';");
    expect(() => loadCompiler([path('seven')])).toThrow('which TypeScript 7.0.2 does not have');
    expect(loadCompiler([path('seven'), process.cwd()]).createProgram).toBeDefined();
  });

  it('says what is wrong with a typescript that cannot be loaded', () => {
    mkdirSync(path('node_modules/typescript'), { recursive: true });
    write('node_modules/typescript/index.js', "throw new Error('out of order');");
    expect(() => loadCompiler([folder])).toThrow('out of order');
  });
});
