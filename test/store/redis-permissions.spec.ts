import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService } from 'nestjs-holdfast';
import { readFile } from 'node:fs/promises';
import { deferred, eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { LINE, openStore, request, type OpenStore } from './open-store.js';

let server: RedisServer;
let opened: OpenStore[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
});

afterEach(async () => {
  Logger.overrideLogger(false);
  await Promise.all(opened.map(({ store }) => store.close()));
  opened = [];
});

afterAll(async () => {
  await server.stop();
});

/** A user with these rights, as a URL. */
async function user(name: string, ...rights: string[]): Promise<string> {
  await server.command('ACL', 'SETUSER', name, 'on', '>secret', ...rights);
  return `redis://${name}:secret@127.0.0.1:${String(server.port)}`;
}

async function open(redis: string): Promise<OpenStore> {
  const store = await openStore({ redis });
  opened.push(store);
  return store;
}

describe('a Redis user', () => {
  it('needs no more than the keys of locks, the channels of inboxes, and what the scripts call', async () => {
    const url = await user(
      'modest',
      'resetchannels',
      '~lock:*',
      '~{lock:*',
      '&holdfast:*',
      '+@all',
      '-@dangerous',
      '+info',
    );
    const { store, warnings } = await open(url);
    const lease = request(['a', 'b']);
    expect(await store.acquire(lease)).toMatchObject({ status: 'granted' });
    expect(await store.extend([lease])).toEqual([{ status: 'extended' }]);
    expect(await store.inspect('a')).toMatchObject({ status: 'held' });

    const told = deferred<string | undefined>();
    const waiter = await open(url);
    expect(await waiter.store.listen(told.resolve)).toBe('listening');
    await waiter.store.acquire(request('b', { line: LINE }));
    expect(await store.release(lease)).toEqual({ status: 'released' });
    expect(await told.promise).toBe('b');
    expect([...warnings, ...waiter.warnings]).toEqual([]);
  });

  it('who must not subscribe waits by looking again, and this is said once', async () => {
    const url = await user('deaf', '~*', '&*', '+@all', '-subscribe', '-psubscribe', '-ssubscribe');
    const { store, warnings } = await open(url);
    expect(await store.listen(() => undefined)).toBe('polling');
    expect(await store.listen(() => undefined)).toBe('polling');
    expect(warnings).toEqual([expect.stringMatching(/Cannot be told of releases.*SUBSCRIBE/s)]);
    expect(warnings[0]).not.toContain('secret');

    const logged: string[] = [];
    const log = (message: unknown): void => void logged.push(String(message));
    Logger.overrideLogger({ log, error: log, warn: log });
    const [holder, waiter] = [new LockService({ redis: url }), new LockService({ redis: url })];
    for (let turn = 0; turn < 2; turn += 1) {
      const lock = await holder.acquire('polled', { ttl: '60s', autoExtend: false });
      const waiting = waiter.acquire('polled', { wait: '25s' });
      await holder.inspect('polled');
      await lock.release();
      await (await waiting).release();
    }
    await Promise.all([holder.shutdown(), waiter.shutdown()]);
    expect(logged).toEqual([expect.stringContaining('Cannot be told of releases')]);
  });

  it('who must not publish waits by looking again: a release could not tell anybody', async () => {
    const url = await user('mute', '~*', '&*', '+@all', '-publish');
    const { store, warnings } = await open(url);
    expect(await store.listen(() => undefined)).toBe('polling');
    expect(warnings).toEqual([
      expect.stringMatching(/Cannot be told of releases.*NOPERM.*publish/is),
    ]);
  });

  it('who must not run scripts is told so at the start', async () => {
    const { store, warnings } = await open(
      await user('scriptless', '~*', '+@all', '-eval', '-evalsha'),
    );
    expect(warnings).toEqual([expect.stringMatching(/not usable yet.*NOPERM.*EVALSHA/s)]);
    expect(await store.acquire(request('key'))).toMatchObject({ status: 'unavailable' });
  });
});

describe('a server that may evict locks', () => {
  it('is warned of once, when the store opens; with noeviction nothing is said', async () => {
    expect((await open(server.url)).warnings).toEqual([]);
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    try {
      expect((await open(server.url)).warnings).toEqual([
        expect.stringMatching(/allkeys-lru.*noeviction/s),
      ]);
    } finally {
      await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    }
  });

  it('with the rights that the README lists is denied nothing', async () => {
    const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
    const rights = /ACL SETUSER locks on >secret (.*)/.exec(readme)?.[1]?.split(' ') ?? [];
    expect(rights.length).toBeGreaterThan(10);
    const url = await user('listed', 'resetchannels', ...rights);
    await server.command('ACL', 'LOG', 'RESET');
    const services = [new LockService({ redis: url }), new LockService({ redis: url })];
    const [first, second] = services as [LockService, LockService];
    await Promise.all(services.map((service) => service.open()));
    const lock = await first.acquire(['a', 'b']);
    const waiting = [second.acquire('b'), second.acquire(['a', 'b']), first.acquire('a')];
    await lock.extend();
    await eventually(async () => Number(await server.command('ZCARD', '{lock:a}:queue')) > 0);
    await lock.release();
    await Promise.all(waiting.map(async (acquiring) => (await acquiring).release()));
    await first.acquire('c');
    await second.forceRelease('c');
    await second.inspect('c');
    const shared = { mode: 'shared' } as const;
    const together = [await first.acquire('d', shared), await second.acquire('d', shared)];
    const alone = first.acquire('d');
    await Promise.all(together.map((one) => one.release()));
    await (await alone).release();
    expect((await first.runOnce('once', () => 1)).outcome).toBe('completed');
    expect((await second.runOnce('once', () => 1)).outcome).toBe('done-elsewhere');
    expect((await first.health()).nodes[0]?.problem).toBeUndefined();
    await Promise.all(services.map((service) => service.shutdown(0)));
    expect(await server.command('ACL', 'LOG')).toEqual([]);
  });
});
