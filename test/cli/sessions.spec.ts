import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';
import { run } from './program.js';

let server: RedisServer;
let locks: Locks;

beforeAll(async () => {
  server = await RedisServer.start();
  locks = new Locks({ redis: server.url });
  await locks.acquire('order:1');
});

afterAll(async () => {
  await locks.shutdown(0);
  await server.stop();
});

const connections = async (): Promise<number> =>
  String(await server.command('CLIENT', 'LIST'))
    .trim()
    .split('\n').length;

describe('a command', () => {
  it.each(['show order:1', 'list', 'top', 'doctor'])(
    'leaves no connection behind: %s',
    async (line) => {
      const before = await connections();
      await run([...line.split(' '), '--redis', server.url]);
      await eventually(async () => (await connections()) <= before);
    },
  );

  it('notes at its end what the library warned of', async () => {
    const other = await RedisServer.start();
    const urls = [server.url, `redis://localhost:${server.port}`, other.url];
    const { code, stderr } = await run(['list', ...urls.flatMap((url) => ['--redis', url])]);
    await other.stop();
    const names = [`127.0.0.1:${server.port}`, `localhost:${server.port}`] as const;
    const place = `Redis at ${names.join(', ')}, 127.0.0.1:${other.port}, prefix lock:\n`;
    const warning = (one: string, same: string): string =>
      `${place}warning: Redis at ${one} is the same server as ${same}: it has one vote, not two.\n`;
    expect(code).toBe(0);
    // Whichever was connected to later.
    expect([warning(...names), warning(names[1], names[0])]).toContain(stderr);
  });

  it('that does nothing says no more than why', async () => {
    const { code, stderr } = await run([
      ...['release', 'order:1', '--reason', 'stuck', '--redis', server.url],
    ]);
    expect({ code, stderr }).toEqual({
      code: 5,
      stderr:
        '"release" asks before it acts, and this is no terminal. Nothing was changed. Give --yes to act without a question.\n',
    });
  });
});
