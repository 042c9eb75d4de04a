import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockLostError, LockNotAcquiredError, type LockService } from 'nestjs-holdfast';
import { deferred } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { Services } from './services.js';

let server: RedisServer;
let mine: LockService;
let theirs: LockService;
const services = new Services();

beforeAll(async () => {
  Logger.overrideLogger(false); // lost locks are the subject here
  server = await RedisServer.start();
});

beforeEach(async () => {
  await server.command('FLUSHALL');
  [mine, theirs] = await Promise.all([services.open(server.url), services.open(server.url)]);
});

afterEach(() => services.closeAll());

afterAll(async () => {
  await server.stop();
  Logger.overrideLogger(['log', 'warn', 'error']);
});

const owner = (): Promise<unknown> => server.command('GET', 'lock:order:1');

describe('a callback under a lock', () => {
  it('gives its value back, and the lock is free again', async () => {
    const value = await mine.run('order:1', async () => {
      expect(await theirs.tryAcquire('order:1')).toBeNull();
      return 42;
    });
    expect(value).toBe(42);
    expect(await owner()).toBeNull();
  });

  it('frees the lock when it throws, and its error comes through as it is', async () => {
    const error = new RangeError('sold out');
    const failing = mine.run('order:1', () => {
      throw error;
    });
    await expect(failing).rejects.toBe(error);
    expect(await owner()).toBeNull();
  });

  it('never runs twice at once, however many call', async () => {
    let [now, most, runs] = [0, 0, 0];
    const work = async (): Promise<void> => {
      most = Math.max(most, (now += 1));
      await owner(); // a round trip, in which another could begin
      now -= 1;
      runs += 1;
    };
    const calls = Array.from({ length: 30 }, (_, index) =>
      (index % 2 === 0 ? mine : theirs).run('order:1', { wait: '20s' }, work),
    );
    await Promise.all(calls);
    expect({ most, runs }).toEqual({ most: 1, runs: 30 });
  });

  it('is renewed while it runs: a slow one keeps its lock', async () => {
    await mine.run('order:1', { ttl: '1500ms' }, async (lock) => {
      const first = await owner();
      const others = theirs.acquire('order:1', { wait: '3s' }); // two TTLs
      await expect(others).rejects.toThrow(LockNotAcquiredError);
      expect({ held: lock.isHeld, owner: await owner() }).toEqual({ held: true, owner: first });
    });
  });
});

describe('the release', () => {
  it('of a slow holder whose lock has expired does not delete the lock of its successor', async () => {
    const [begun, mayEnd] = [deferred(), deferred()];
    const slow = mine.run('order:1', { ttl: '300ms', autoExtend: false }, async () => {
      begun.resolve();
      await mayEnd.promise;
    });
    await begun.promise;
    const successor = await theirs.acquire('order:1', { wait: '20s' });
    const owned = await owner();

    mayEnd.resolve();

    await expect(slow).rejects.toThrow(LockLostError);
    expect(await owner()).toBe(owned);
    expect(owned).not.toBeNull();
    await successor.extend(); // asks the server
    expect(await successor.release()).toBe(true);
  });

  it('does not delete what other software wrote over the lock', async () => {
    const lock = await mine.acquire('order:1', { ttl: '20s', autoExtend: false });
    await server.command('SET', 'lock:order:1', 'of somebody else', 'PX', 20_000);
    expect(await lock.release()).toBe(false);
    expect(await owner()).toBe('of somebody else');
  });
});
