import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService, LockStoreUnavailableError, type Lock } from 'nestjs-holdfast';
import { openStore, request } from '../../store/open-store.js';
import { detailOf } from '../../support/detail.js';
import { RedisServer } from '../../support/redis-server.js';

let server: RedisServer;
let locks: LockService;

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
});

beforeEach(async () => {
  await server.command('FLUSHALL');
  locks = new LockService({ redis: server.url });
  await locks.open();
});

afterEach(async () => {
  await locks.shutdown(0);
});

afterAll(async () => {
  await server.stop();
});

const failureOf = (promise: Promise<Lock | null>): Promise<unknown> =>
  promise.then(
    (lock) => lock?.fencingToken,
    (error: unknown) => error,
  );

describe('numbers that no fencing token and no expiry can have', () => {
  it.each(['1e20', '9007199254740993', '-5', '1.5', 'nan', 'inf', 'text', ''])(
    'HF-20 a fence of "%s" is refused by an acquire, which names the key and leaves nothing behind',
    async (value) => {
      const before = await locks.acquire('other');
      await before.release();
      await server.command('SET', '{lock:key}:fence', value);
      for (const refused of [
        () => locks.tryAcquire('key'),
        () => locks.acquire('key', { wait: '20s' }),
        () => locks.tryAcquire(['key', 'other']),
        () => locks.tryAcquire('key', { mode: 'shared' }),
        () => locks.tryAcquire('key', { limit: 2 }),
      ]) {
        const error = await failureOf(refused());
        expect(error).toBeInstanceOf(LockStoreUnavailableError);
        expect(detailOf(error)).toContain('"{lock:key}:fence"');
      }
      expect(await server.namesInUse()).toEqual(['{lock:key}:fence', '{lock:other}:fence']);
      await server.command('DEL', '{lock:key}:fence');
      const after = await locks.acquire(['key', 'other']);
      expect(after.fencingToken).toBeGreaterThan(before.fencingToken);
    },
  );

  it('HF-20 a fence of another type is refused as well', async () => {
    await server.command('LPUSH', '{lock:key}:fence', 'x');
    const error = await failureOf(locks.tryAcquire('key'));
    expect(detailOf(error)).toContain('"{lock:key}:fence"');
  });

  it('HF-20 a damaged fence ends no lock that is held: it is renewed and released', async () => {
    const lock = await locks.acquire('key');
    await server.command('SET', '{lock:key}:fence', '1e20');
    await lock.extend('40s');
    expect(await lock.release()).toBe(true);
  });

  it('HF-20 a damaged token behind the marker of readers is not taken over by who joins them', async () => {
    const reader = await locks.acquire('key', { mode: 'shared' });
    const marker = String(await server.command('GET', 'lock:key'));
    await server.command('SET', 'lock:key', marker.replace(/\d+$/, '9'.repeat(20)), 'KEEPTTL');
    const other = await locks.acquire('key', { mode: 'shared' });
    expect(other.fencingToken).toBeGreaterThan(reader.fencingToken);
    expect(Number.isSafeInteger(other.fencingToken)).toBe(true);
  });

  it('HF-20 a damaged fence on one of three masters is one vote less, and no token for whoever has the others', async () => {
    const servers = [server, await RedisServer.start(), await RedisServer.start()];
    const { store } = await openStore({ redis: servers.map(({ url }) => url) });
    try {
      await server.command('SET', '{lock:key}:fence', '1e20');
      const granted = await store.acquire(request('key'));
      expect(granted).toMatchObject({ status: 'granted' });
      expect(granted.status === 'granted' && Number.isSafeInteger(granted.fencingToken)).toBe(true);
    } finally {
      await store.close();
      await Promise.all(servers.slice(1).map((other) => other.stop()));
    }
  });
  it('HF-20 takes the longest duration that an option may have, in every script', async () => {
    const longest = '100y';
    const service = new LockService({
      redis: server.url,
      ttl: longest,
      fencingTokenRetention: longest,
    });
    await service.open();
    for (const mode of ['exclusive', 'shared'] as const) {
      const lock = await service.acquire('key', { mode, minHold: longest });
      await lock.extend();
      expect(await lock.release()).toBe(true);
      expect(Number(await server.command('PTTL', 'lock:key'))).toBeGreaterThan(3e12);
      expect(Number(await server.command('PTTL', '{lock:key}:fence'))).toBeGreaterThan(3e12);
      await service.forceRelease('key');
    }
    await service.runOnce('job', { keepDone: longest }, () => undefined);
    expect(Number(await server.command('PTTL', '{lock:job}:once'))).toBeGreaterThan(3e12);
    await service.shutdown(0);
  });
});
