import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { EXIT } from '../../packages/cli/lib/exit-codes.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';
import { program } from './program.js';

let server: RedisServer;
let locks: Locks;
let folder: string;

beforeAll(async () => {
  server = await RedisServer.start();
  locks = new Locks({ redis: server.url });
  await locks.open();
  await locks.acquire('held');
  await locks.acquire('mine');
  folder = mkdtempSync(join(tmpdir(), 'holdfast-codes-'));
  writeFileSync(join(folder, 'broken.ts'), "import Redlock from 'redlock';\nlet x = ;\n");
});

afterAll(async () => {
  rmSync(folder, { recursive: true });
  await locks.shutdown(0);
  await server.stop();
});

const BECAUSE = ['--reason', 'a test'];

/** Makes the memory of the server too small for any entry of the audit log. */
const fill = () => server.command('CONFIG', 'SET', 'maxmemory', '1');
const empty = () => server.command('CONFIG', 'SET', 'maxmemory', '0');

async function holderOf(key: string): Promise<string> {
  const { stdout } = await program(['show', key, '--json'], { REDIS_URL: server.url });
  const { holders } = JSON.parse(stdout) as { holders: readonly { leaseId: string }[] };
  return holders[0]?.leaseId ?? '';
}

/** How a user gets each code. */
const WAYS: Readonly<Record<keyof typeof EXIT, () => Promise<number | null>>> = {
  ok: async () => codeOf('list'),
  nothing: async () => codeOf('show', 'free'),
  usage: async () => codeOf('lst'),
  unavailable: async () => codeOf('list', '--redis', 'redis://127.0.0.1:1'),
  unhealthy: async () => {
    await server.command('HSET', 'lock:cache', 'a', 'b');
    const code = await codeOf('doctor');
    await server.command('DEL', 'lock:cache');
    return code;
  },
  unconfirmed: async () => codeOf('release', 'held', ...BECAUSE),
  incomplete: async () => codeOf('migrate', folder, '-n'),
  notRecorded: async () => {
    const holder = await holderOf('mine');
    await fill();
    const code = await codeOf('release', 'mine', '-y', '--if-holder', holder, ...BECAUSE);
    await empty();
    return code;
  },
  refused: async () => codeOf('release', 'held', '-y', '--if-holder', 'ffffffffffff', ...BECAUSE),
  internal: async () => {
    const fault = `process.stdout.write = () => { throw new TypeError('planted'); }`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(fault)}`;
    const { code, stderr } = await program(['list'], { REDIS_URL: server.url, NODE_OPTIONS });
    expect(stderr).toContain('TypeError: planted');
    return code;
  },
};

async function codeOf(...args: readonly string[]): Promise<number | null> {
  return (await program(args, { REDIS_URL: server.url })).code;
}

describe('an exit code', () => {
  it.each(Object.entries(EXIT))('%s is %d in the real program', async (name, code) => {
    expect(await WAYS[name as keyof typeof EXIT]()).toBe(code);
  });

  it('of a dry run is that of the command', async () => {
    const dry = async (...args: readonly string[]) => codeOf(...args, '-n');
    expect(await dry('release', 'held')).toBe(EXIT.ok);
    expect(await dry('release', 'free')).toBe(EXIT.nothing);
    expect(await dry('release', 'held', '--if-holder', 'ffffffffffff')).toBe(EXIT.refused);
  });

  it('has one row in docs/cli.md', () => {
    const [, section = ''] =
      /^## Exit codes\n([^]*?)^## /m.exec(readFileSync('docs/cli.md', 'utf8')) ?? [];
    const rows = [...section.matchAll(/^\| (\d+) +\| .*\w/gm)].map(([, code]) => Number(code));
    expect(rows).toEqual(Object.values(EXIT));
  });
});
