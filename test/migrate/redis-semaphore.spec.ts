import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import {
  LockConfigurationError,
  LockLostError,
  LockNotAcquiredError,
  LockNotAttachedError,
  LockService,
  LockStoreUnavailableError,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { eventually, until } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { scriptedService } from '../support/scripted-service.js';
import { heldFor } from '../support/scripted-store.js';

/** The rows of docs/migrating.md, and what the README of redis-semaphore 5.8 says of the left column. */

let servers: readonly RedisServer[];
let server: RedisServer;
let client: Redis;
const services: LockService[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false); // lost locks are one of the subjects
  servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
  server = servers[0]!;
  client = new Redis(server.url);
});
beforeEach(() => Promise.all(servers.map((each) => each.command('FLUSHDB'))));
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
});
afterAll(async () => {
  client.disconnect();
  await Promise.all(servers.map((each) => each.stop()));
});

async function open(options: LockModuleOptions = {}): Promise<LockService> {
  const service = new LockService({ redis: client, ...options });
  services.push(service);
  await service.open();
  return service;
}

const ttlMsOf = async (name: string): Promise<number> => Number(await server.command('PTTL', name));
const exists = (name: string): Promise<unknown> => server.command('EXISTS', name);

describe('new Mutex(client, "a"): LockModule.forRoot({ redis: client })', () => {
  it('"final key in redis: mutex:<key>": old and new code exclude each other with keyPrefix "mutex:"', async () => {
    const locks = await open({ keyPrefix: 'mutex:' });
    const lockAsOld = (): Promise<unknown> =>
      server.command('SET', 'mutex:a', 'their-identifier', 'PX', '60000', 'NX');
    const lock = await locks.acquire('a');
    expect(await lockAsOld()).toBeNull();
    await lock.release();
    expect(await lockAsOld()).toBe('OK');
    expect(await locks.tryAcquire('a')).toBeNull();
    const waiting = locks.acquire('a');
    await server.command('DEL', 'mutex:a');
    await (await waiting).release();
  });
});

describe('mutex.acquire(), TimeoutError: locks.acquire("a"), LockNotAcquiredError', () => {
  it('"acquireTimeout: max timeout for .acquire() call": wait', async () => {
    const locks = await open();
    await using _held = await locks.acquire('a');
    const startMs = performance.now();
    await expect(locks.acquire('a', { wait: 200 })).rejects.toBeInstanceOf(LockNotAcquiredError);
    expect(performance.now() - startMs).toBeGreaterThan(190);
  });

  it('waits 10 s by default', async () => {
    const { clock, store, locks, refused } = scriptedService();
    store.onAcquire = () => heldFor(60_000);
    const waiting = locks.acquire('a').catch((error: unknown) => error);
    await clock.advance(9_999);
    expect(refused).toEqual([]);
    await clock.advance(100);
    expect(await waiting).toBeInstanceOf(LockNotAcquiredError);
    await locks.shutdown(0);
  });

  it('"acquireAttemptsLimit: max number of attempts": 1 is wait: 0', async () => {
    const locks = await open();
    await using held = await locks.acquire('a');
    const refused = locks.acquire('a', { wait: 0 });
    await expect(refused).rejects.toBeInstanceOf(LockNotAcquiredError);
    expect(held.isHeld).toBe(true);
  });

  it('mutex.acquire(signal): the option signal', async () => {
    const locks = await open();
    await using _held = await locks.acquire('a');
    const controller = new AbortController();
    const waiting = locks.acquire('a', { signal: controller.signal });
    const reason = new Error('given up');
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });
});

describe('mutex.tryAcquire(): locks.tryAcquire("a")', () => {
  it('returns the lock or null, at once', async () => {
    const locks = await open();
    const lock = await locks.tryAcquire('a');
    expect(lock?.isHeld).toBe(true);
    expect(await locks.tryAcquire('a')).toBeNull();
    await lock?.release();
  });
});

describe('mutex.release(): lock.release(), await using, locks.run', () => {
  it('each releases the lock', async () => {
    const locks = await open();
    const lock = await locks.acquire('a');
    expect(await lock.release()).toBe(true);
    {
      await using _held = await locks.acquire('a', { wait: 0 });
    }
    await locks.run('a', { wait: 0 }, async () => 1);
    expect(await exists('lock:a')).toBe(0);
  });

  it('"It\'s safe to always call release, because if lock is no longer belongs to this mutex, .release() will have no effect"', async () => {
    const [mine, theirs] = [await open(), await open()];
    const lock = await mine.acquire('a');
    await server.command('DEL', 'lock:a');
    const next = await theirs.acquire('a');
    expect(await lock.release()).toBe(false);
    expect(await lock.release()).toBe(false);
    expect(await exists('lock:a')).toBe(1);
    expect(await next.release()).toBe(true);
  });
});

describe('mutex.isAcquired: lock.isHeld', () => {
  it('"while (mutex.isAcquired)" ends when the lock is lost', async () => {
    const locks = await open();
    const lock = await locks.acquire('a', { ttl: 500 });
    expect(lock.isHeld).toBe(true);
    await server.command('DEL', 'lock:a');
    await eventually(() => !lock.isHeld);
    await using other = await locks.acquire('b');
    expect(other.isHeld).toBe(true);
    await other.release();
    expect(other.isHeld).toBe(false);
  });
});

describe('lockTimeout: ttl', () => {
  it('"time after mutex will be auto released (expired)": 30 s by default', async () => {
    const locks = await open();
    await using _short = await locks.acquire('a', { ttl: 10_000 });
    await using _usual = await locks.acquire('b');
    expect(await ttlMsOf('lock:a')).toBeLessThanOrEqual(10_000);
    expect(await ttlMsOf('lock:b')).toBeGreaterThan(20_000);
    expect(await ttlMsOf('lock:b')).toBeLessThanOrEqual(30_000);
  });
});

describe('refreshInterval: renewed every third of the TTL', () => {
  it('"auto-refresh interval": the lock outlasts its TTL', async () => {
    const locks = await open();
    const lock = await locks.acquire('a', { ttl: 2_000 });
    for (let renewals = 0; renewals < 4; renewals += 1)
      await until({ once: (_event, on) => onRenewed(locks, on) }, 'renewed');
    expect(lock.isHeld).toBe(true);
    expect(await lock.release()).toBe(true);
  });

  it('"to disable auto-refresh behaviour set 0": autoExtend: false', async () => {
    const locks = await open();
    const lock = await locks.acquire('a', { ttl: 300, autoExtend: false });
    const next = await locks.acquire('a');
    expect(lock.isHeld).toBe(false);
    await next.release();
  });

  it('stopRefresh(), "to let lock expire over time after operation is finished": lock.stopRenewal()', async () => {
    const locks = await open();
    const lock = await locks.acquire('a', { ttl: 1_000 });
    lock.stopRenewal();
    expect(await locks.tryAcquire('a')).toBeNull();
    const next = await locks.acquire('a');
    expect(lock.isHeld).toBe(false);
    await next.release();
  });
});

describe('onLockLost, LostLockError: lock.signal, the event lost, and the LockLostError of run', () => {
  it('"called when lock loss is detected due refresh cycle"', async () => {
    const locks = await open();
    const lost: unknown[] = [];
    locks.on('lost', ({ keys }) => lost.push(...keys));
    const lock = await locks.acquire('a', { ttl: 300 });
    const aborted = until({ once: (name, on) => lock.signal.addEventListener(name, on) }, 'abort');
    await server.command('DEL', 'lock:a');
    await aborted;
    expect(lock.signal.reason).toBeInstanceOf(LockLostError);
    expect(lost).toEqual(['a']);
    const running = locks.run('b', { ttl: 300 }, async ({ signal }) => {
      await server.command('DEL', 'lock:b');
      await until({ once: (name, on) => signal.addEventListener(name, on) }, 'abort');
    });
    await expect(running).rejects.toBeInstanceOf(LockLostError);
  });
});

describe('identifier, acquiredExternally: lock.detach(), and locks.attach(text)', () => {
  it('"acquire in scheduler, refresh and release in handler", with another lockTimeout', async () => {
    const [scheduler, handler] = [await open(), await open()];
    const lock = await scheduler.acquire('a', { ttl: '30m', autoExtend: false });
    const text = await lock.detach();
    expect(await scheduler.tryAcquire('a')).toBeNull();
    const taken = await handler.attach(text, { ttl: 10_000, autoExtend: true });
    expect(await ttlMsOf('lock:a')).toBeLessThanOrEqual(10_000);
    expect(await taken.release()).toBe(true);
    expect(await exists('lock:a')).toBe(0);
  });

  it('"if mutex was locked by another process or lock was expired - exception will be thrown"', async () => {
    const [scheduler, handler] = [await open(), await open()];
    const text = await (await scheduler.acquire('a')).detach({ ttl: 100 });
    const next = await handler.acquire('a');
    await expect(handler.attach(text)).rejects.toBeInstanceOf(LockNotAttachedError);
    expect(await next.release()).toBe(true);
  });
});

describe('new Semaphore(client, "a", 5): locks.acquire("a", { limit: 5 })', () => {
  it('"maximum simultaneously resource usage count"', async () => {
    const [here, there] = [await open(), await open()];
    const five = [here, there, here, there, here].map((locks) => locks.acquire('a', { limit: 5 }));
    const [first, ...others] = await Promise.all(five);
    expect(await there.tryAcquire('a', { limit: 5 })).toBeNull();
    const sixth = there.acquire('a', { limit: 5 });
    await first?.release();
    await Promise.all([...others, await sixth].map((lock) => lock.release()));
  });
});

describe('new MultiSemaphore(client, "a", 5, 2): locks.acquire("a", { limit: 5, places: 2 })', () => {
  it('"MultiSemaphore and Semaphore shares same key namespace and can be used together"', async () => {
    const locks = await open();
    await using _two = await locks.acquire('a', { limit: 5, places: 2 });
    await using _more = await locks.acquire('a', { limit: 5, places: 2 });
    expect(await locks.tryAcquire('a', { limit: 5, places: 2 })).toBeNull();
    await using last = await locks.acquire('a', { limit: 5 });
    expect(last.isHeld).toBe(true);
  });

  it('a limit does not see the semaphores that the old code holds, and needs another prefix', async () => {
    await server.command('ZADD', 'semaphore:a', String(Date.now()), 'their-identifier');
    await using lock = await (await open()).acquire('a', { limit: 1, wait: 0 });
    expect(lock.isHeld).toBe(true);
    const mixed = await open({ keyPrefix: 'semaphore:' });
    await expect(mixed.acquire('a', { limit: 1, wait: 0 })).rejects.toBeInstanceOf(
      LockStoreUnavailableError,
    );
  });
});

describe('new RedlockMutex(clients, "a"): redis: [url1, url2, url3]', () => {
  it('"Distributed Mutex version" is held by a majority', async () => {
    const locks = await open({ redis: servers.map(({ url }) => url), keyPrefix: 'mutex:' });
    for (const each of servers.slice(1))
      await each.command('SET', 'mutex:a', 'their-identifier', 'PX', '60000');
    expect(await locks.tryAcquire('a')).toBeNull();
    await servers[1]!.command('DEL', 'mutex:a');
    await using lock = await locks.acquire('a');
    expect(lock.isHeld).toBe(true);
  });
});

describe('RedlockSemaphore, RedlockMultiSemaphore: a second service on one Redis', () => {
  it('a limit over several masters is refused', async () => {
    const redis = servers.map(({ url }) => url);
    const [masters, single] = [await open({ redis }), await open({ keyPrefix: 'single:' })];
    await expect(masters.acquire('a', { limit: 5 })).rejects.toBeInstanceOf(LockConfigurationError);
    await using lock = await single.acquire('a', { limit: 5, places: 2 });
    expect(lock.isHeld).toBe(true);
  });
});

function onRenewed(locks: LockService, listener: () => void): void {
  const stop = locks.on('renewed', () => {
    stop();
    listener();
  });
}
