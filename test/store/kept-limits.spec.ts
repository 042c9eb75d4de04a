import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';

const DAYS_30_MS = 30 * 86_400_000;
const NAME = '{lock:exports}:holders:limit';

describe('a limit that was set', () => {
  let server: RedisServer;
  let locks: Locks;

  beforeAll(async () => {
    server = await RedisServer.start();
    locks = new Locks({ redis: server.url, ttl: '20s' });
    await locks.open();
  });

  afterEach(() => server.command('FLUSHALL'));

  afterAll(async () => {
    await locks.shutdown(0);
    await server.stop();
  });

  const leftMs = async (): Promise<number> => Number(await server.command('PTTL', NAME));

  const expectWhole = async (): Promise<void> => {
    expect(await leftMs()).toBeGreaterThan(DAYS_30_MS - 60_000);
    expect(await leftMs()).toBeLessThanOrEqual(DAYS_30_MS);
  };

  it('is kept for 30 days, counted anew from each grant and each renewal of a limited lock', async () => {
    const limiter = locks.limiter('exports', { limit: 3 });
    await limiter.setLimit(5);
    await expectWhole();

    await server.command('PEXPIRE', NAME, 1_000_000);
    const lock = await locks.acquire('exports', { limit: 2 });
    await expectWhole();

    await server.command('PEXPIRE', NAME, 1_000_000);
    await lock.extend();
    await expectWhole();
    expect(await limiter.usage()).toMatchObject({ limit: 5, inUse: 1, free: 4 });
    await lock.release();
  });

  it('is lost with the data of Redis: then calls go by the limits that they state', async () => {
    const limiter = locks.limiter('exports', { limit: 1 });
    await limiter.setLimit(2);
    await using first = await limiter.acquire();
    const second = await limiter.tryAcquire();
    expect(second).not.toBeNull();
    await second?.release();
    await server.command('DEL', NAME);
    expect(await limiter.tryAcquire()).toBeNull();
    expect(await limiter.usage()).toMatchObject({ limit: 1, inUse: 1, free: 0 });
    expect(first.isHeld).toBe(true);
  });
});
