import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster, Redis } from 'ioredis';
import {
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockServiceClosedError,
  LockStoreUnavailableError,
} from 'nestjs-holdfast';
import * as ours from '@nestjs-holdfast/redlock';
import { createTestLocks } from 'nestjs-holdfast/testing';
import { statsOf } from '../../packages/redlock/lib/errors.js';
import { waitFrom } from '../../packages/redlock/lib/settings.js';
import { scriptedService } from '../support/scripted-service.js';
import { deferred, eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { NODE_REDLOCK as theirs, failureOf } from './implementations.js';

const ONCE = { retryCount: 0 };
const DURATION_MS = 5_000;

let server: RedisServer;
const clients: Redis[] = [];
const opened: ours.Redlock[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false); // a lost lock is one of the subjects
  server = await RedisServer.start();
});
beforeEach(() => server.command('FLUSHDB'));
afterEach(async () => {
  await Promise.all(opened.splice(0).map((redlock) => redlock.quit().catch(() => undefined)));
  for (const client of clients.splice(0)) client.disconnect();
});
afterAll(() => server.stop());

function client(): Redis {
  // Its timer is left behind by a client that is disconnected after it has quit.
  const made = new Redis(server.url, { disconnectTimeout: 100 });
  clients.push(made);
  return made;
}

describe('@nestjs-holdfast/redlock', () => {
  it('and node-redlock exclude each other', async () => {
    const [old, replacement] = [new theirs.Redlock([client()]), new ours.Redlock([client()])];
    opened.push(replacement);
    const lock = await old.acquire(['a'], DURATION_MS);
    await expect(replacement.acquire(['a'], DURATION_MS, ONCE)).rejects.toBeInstanceOf(
      ours.ExecutionError,
    );
    await lock.release();
    const next = await replacement.acquire(['a'], DURATION_MS);
    await expect(old.acquire(['a'], DURATION_MS, ONCE)).rejects.toBeInstanceOf(
      theirs.ExecutionError,
    );
    await next.release();
  });

  it('may use a LockService, and then closes nothing', async () => {
    const { locks } = createTestLocks();
    const redlock = new ours.Redlock(locks);
    const lock = await redlock.acquire(['a'], DURATION_MS);
    expect(lock).toBeInstanceOf(ours.Lock);
    expect(lock.value).toBe(String(lock.held.fencingToken));
    const failure = await redlock.acquire(['a'], DURATION_MS, ONCE).catch((e: unknown) => e);
    expect((failure as Error).cause).toMatchObject({ cause: expect.any(LockNotAcquiredError) });
    locks.lose('a');
    await expect(lock.extend(DURATION_MS)).rejects.toMatchObject({
      name: 'ExecutionError',
      cause: { cause: expect.any(LockLostError) },
    });
    await redlock.quit();
    await (await locks.acquire('b')).release();
  });

  it.each([
    ['with < or >', 'a<b', 'The lock key "a<b" contains a "<" or ">".'],
    ['with a control character', 'a\nb', 'The lock key "a\\nb" contains a control character.'],
    ['longer than 1,024 characters', 'a'.repeat(1_025), 'A lock key has at most 1024 characters'],
  ])('refuses a name %s, and says why', async (_what, name, message) => {
    const redlock = new ours.Redlock(createTestLocks().locks);
    const failure = (await failureOf(redlock.acquire([name], DURATION_MS))) as Error;
    expect(failure.message).toContain(message);
    expect(failure.message).not.toContain('hash tag');
  });

  it('refuses a duration below 50 ms', async () => {
    const redlock = new ours.Redlock(createTestLocks().locks);
    await expect(redlock.acquire(['a'], 49)).rejects.toThrow('at least 50 ms, received 49');
    await (await redlock.acquire(['a'], 50)).release();
  });

  it('tries a release that failed again by itself, and rejects a second release', async () => {
    const redlock = new ours.Redlock([client()], ONCE);
    opened.push(redlock);
    const lock = await redlock.acquire(['a'], 60_000);
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '1');
    expect(await failureOf(lock.release())).toBeInstanceOf(ours.ExecutionError);
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '0');
    expect(await failureOf(lock.release())).toBeInstanceOf(ours.ExecutionError);
    await eventually(async () => (await server.command('EXISTS', 'a')) === 0);
  });

  it('waits for a routine when it quits', async () => {
    const redlock = new ours.Redlock([client()]);
    const [isIn, mayEnd] = [deferred(), deferred()];
    const using = redlock.using(['a'], DURATION_MS, async () => {
      isIn.resolve();
      await mayEnd.promise;
      return server.command('EXISTS', 'a');
    });
    await isIn.promise;
    const quitting = redlock.quit();
    mayEnd.resolve();
    expect(await using).toBe(1);
    await quitting;
    expect(await server.command('EXISTS', 'a')).toBe(0);
    expect(await failureOf(redlock.acquire(['a'], DURATION_MS))).toBeInstanceOf(
      LockServiceClosedError,
    );
  });

  it('locks a resource once that is named twice', async () => {
    const redlock = new ours.Redlock([client()]);
    opened.push(redlock);
    const lock = await redlock.acquire(['a', 'a'], DURATION_MS);
    expect(lock.resources).toEqual(['a', 'a']);
    await lock.release();
    expect(await server.command('EXISTS', 'a')).toBe(0);
  });

  it('locks several resources on a Cluster without a hash tag', async () => {
    const cluster = await RedisCluster.start();
    const redlock = new ours.Redlock([new Cluster(cluster.startupNodes)]);
    await redlock.using(['a', 'b', 'c'], DURATION_MS, async (signal) => {
      expect(signal.aborted).toBe(false);
    });
    await redlock.quit();
    await cluster.stop();
  });

  it('refuses to lock nothing', async () => {
    const acquiring = new ours.Redlock(createTestLocks().locks).acquire([], DURATION_MS);
    await expect(acquiring).rejects.toMatchObject({ cause: expect.any(LockKeyError) });
  });

  it('declares no constructor of a lock', () => {
    // @ts-expect-error Cannot extend a class 'RedlockLock'. Class constructor is marked as private.
    class Own extends ours.Lock {}
    expect(Own.prototype).toBeInstanceOf(ours.Lock);
  });

  it('refuses names with hash tags, and says where a tag belongs', async () => {
    const { locks } = createTestLocks();
    const acquiring = new ours.Redlock(locks).acquire(['{orders}a'], DURATION_MS);
    await expect(acquiring).rejects.toMatchObject({
      message: expect.stringMatching(/"\{orders\}a" contains a brace\. .*keyPrefix: '\{orders\}'/),
      cause: expect.any(LockKeyError),
    });
  });

  it('locks in the database that the setting db names, as @sesamecare-oss/redlock does', async () => {
    const used = client();
    await used.select(5);
    const redlock = new ours.Redlock([used], { db: 0 });
    opened.push(redlock);
    const lock = await redlock.acquire(['a'], DURATION_MS);
    expect(await server.command('EXISTS', 'a')).toBe(1);
    expect(await used.exists('a')).toBe(0);
    await lock.release();
  });

  it('refuses a setting db that it cannot use', () => {
    const { locks } = createTestLocks();
    const cluster = new Cluster([{ port: 1 }], { lazyConnect: true });
    const db = 3;
    expect(() => new ours.Redlock(locks, { db })).toThrow('no effect with a LockService');
    expect(() => new ours.Redlock([cluster], { db })).toThrow('A Cluster has database 0 only');
    cluster.disconnect();
    expect(() => new ours.Redlock([server.url], { db })).toThrow('needs clients of ioredis');
    expect(() => new ours.Redlock([client()], { db: -1 })).toThrow('the number of a database');
  });

  it('rejects with an ExecutionError while the store cannot be reached', async () => {
    const { locks, testLocks } = createTestLocks();
    const redlock = new ours.Redlock(locks);
    testLocks.fail();
    const emitted: unknown[] = [];
    redlock.on('error', (error) => emitted.push(error));
    const failure = await redlock.acquire(['a'], DURATION_MS, ONCE).catch((e: unknown) => e);
    expect(failure).toBeInstanceOf(ours.ExecutionError);
    expect(failure).toMatchObject({ cause: expect.any(LockStoreUnavailableError) });
    expect(emitted).toEqual([(failure as Error).cause]);
  });

  it('warns of locks that are lost', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockReturnValue(undefined);
    try {
      const redlock = new ours.Redlock([client()], ONCE);
      opened.push(redlock);
      const using = redlock.using(['a'], 1_000, async (signal) => {
        await server.command('DEL', 'a');
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
        expect(signal.error).toMatchObject({ cause: { cause: expect.any(LockLostError) } });
      });
      await expect(using).rejects.toBeInstanceOf(ours.ExecutionError);
      expect(warn.mock.calls).toContainEqual([expect.stringContaining('"a"'), 'HoldfastWarning']);
    } finally {
      warn.mockRestore();
    }
  });

  it('counts the expiration from when the lock was granted, and extends it after a long wait', async () => {
    const redlock = new ours.Redlock([client()], { retryCount: -1 });
    opened.push(redlock);
    await redlock.acquire(['a'], 1_000);
    const lock = await redlock.acquire(['a'], 900);
    expect(lock.expiration).toBeGreaterThan(Date.now());
    const longer = await lock.extend(DURATION_MS);
    await longer.release();
  });

  it('counts the expiration from the request, and not from its reply', async () => {
    const { clock, store, locks } = scriptedService({ clockDrift: 0.01 });
    const redlock = new ours.Redlock(locks);
    store.onAcquire = () => {
      clock.block(500);
      return { status: 'granted', fencingToken: 1 };
    };
    const now = jest.spyOn(Date, 'now').mockReturnValue(1_000_500);
    const lock = await redlock.acquire(['a'], DURATION_MS);
    now.mockRestore();
    expect(lock.expiration).toBe(1_000_000 + DURATION_MS - 57);
    await lock.release();
    await locks.shutdown(0);
  });

  it('counts the votes that make a majority', async () => {
    const clients = [1, 2, 3, 4, 5].map((port) => new Redis({ port, lazyConnect: true }));
    const quorums = [1, 2, 3, 4, 5].map(async (count) => {
      const stats = await statsOf(new Set(clients.slice(0, count)), undefined)[0];
      return [stats?.membershipSize, stats?.quorumSize];
    });
    expect(await Promise.all(quorums)).toEqual([
      [1, 1],
      [2, 2],
      [3, 2],
      [4, 3],
      [5, 3],
    ]);
  });

  it.each([
    [{ retryCount: 10, retryDelay: 200 }, 2_000],
    [{ retryCount: 1, retryDelay: 10 }, 50],
    [{ retryCount: 0, retryDelay: 200 }, 0],
    [{ retryCount: -1, retryDelay: 200 }, Infinity],
    [{ retryCount: -2, retryDelay: 200 }, 0],
  ])('waits with %j for %d ms', (settings, waitMs) => {
    expect(waitFrom(settings as ours.Settings)).toBe(waitMs);
  });

  it('is exported as node-redlock is', () => {
    expect(ours.default).toBe(ours.Redlock);
  });
});
