import { readFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RedisServer } from '../support/redis-server.js';
import { program } from './program.js';

let folder: string;
let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
  folder = mkdtempSync(join(tmpdir(), 'holdfast-start-'));
  writeFileSync(
    join(folder, 'hooks.mjs'),
    `import { appendFileSync } from 'node:fs';
     export const load = (url, context, next) => {
       appendFileSync(process.env.LOADED, url + '\\n');
       return next(url, context);
     };`,
  );
  writeFileSync(
    join(folder, 'record.mjs'),
    `import { register } from 'node:module'; register('./hooks.mjs', import.meta.url);`,
  );
});

afterAll(async () => {
  rmSync(folder, { recursive: true });
  await server.stop();
});

/** What the program loads: packages by their names, and files of this project by their paths. */
async function loadedBy(...args: readonly string[]): Promise<readonly string[]> {
  const file = join(folder, 'loaded.txt');
  writeFileSync(file, '');
  await program(args, {
    LOADED: file,
    REDIS_URL: server.url,
    NODE_OPTIONS: `--import=${pathToFileURL(join(folder, 'record.mjs')).href}`,
  });
  const urls = readFileSync(file, 'utf8').split('\n');
  const names = urls.flatMap((url) => {
    const [, own] = /\/compiled\/[^/]+\/(.*)$/.exec(url) ?? [];
    if (own !== undefined) return [own];
    const [, name] = /^file:.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url) ?? [];
    return name ?? [];
  });
  return [...new Set(names)];
}

const isPackage = (name: string): boolean => !name.endsWith('.js') && !name.endsWith('.cjs');

describe('the program starts quickly, because it', () => {
  it.each(['--help', '--version', 'list --help', 'help release'])(
    'loads no client and nothing to ask a Redis: %s',
    async (line) => {
      const loaded = await loadedBy(...line.split(' '));
      expect(loaded).toContain('packages/cli/lib/run.js');
      expect(loaded.filter(isPackage)).toEqual(['fastest-levenshtein']);
      expect(loaded.filter((name) => name.startsWith('lib/'))).toEqual([]);
    },
  );

  it('loads neither Nest nor the codemod where it asks a Redis', async () => {
    const loaded = await loadedBy('list');
    expect(loaded).toContain('packages/cli/lib/commands/list.js');
    const unwanted = /^(@nestjs\/|rxjs$|typescript|acorn$|packages\/migrate\/|lib\/nest\/)/;
    expect(loaded.filter((name) => unwanted.test(name))).toEqual([]);
  });
});
