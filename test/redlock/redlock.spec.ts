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
  LockStoreUnavailableError,
} from 'nestjs-holdfast';
import * as ours from '@nestjs-holdfast/redlock';
import { createTestLocks } from 'nestjs-holdfast/testing';
import { setTimeout as sleep } from 'node:timers/promises';
import { statsOf } from '../../packages/redlock/lib/errors.js';
import { waitFrom } from '../../packages/redlock/lib/settings.js';
import * as theirs from '../claims/interop/redlock.js';
import { scriptedService } from '../support/scripted-service.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';

/** As much of both as is compared. */
interface Implementation {
  readonly Redlock: typeof ours.Redlock;
  readonly ExecutionError: typeof ours.ExecutionError;
  readonly ResourceLockedError: typeof ours.ResourceLockedError;
}

const IMPLEMENTATIONS: readonly (readonly [string, Implementation])[] = [
  ['node-redlock', theirs as unknown as Implementation],
  ['@nestjs-holdfast/redlock', ours],
];

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
  const made = new Redis(server.url);
  clients.push(made);
  return made;
}

describe.each(IMPLEMENTATIONS)('%s', (_name, { Redlock, ExecutionError, ResourceLockedError }) => {
  const redlockOf = (settings: Partial<ours.Settings> = {}): ours.Redlock => {
    const made = new Redlock([client()], settings);
    opened.push(made);
    return made;
  };
  const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => 'no failure',
      (error: unknown) => error,
    );

  it('locks all resources or none, under their names, for the duration', async () => {
    const redlock = redlockOf();
    const before = Date.now();
    const lock = await redlock.acquire(['a', 'b'], DURATION_MS);
    expect(lock.resources).toEqual(['a', 'b']);
    expect(lock.redlock).toBe(redlock);
    expect(lock.expiration).toBeGreaterThan(before + DURATION_MS - 53);
    expect(lock.expiration).toBeLessThanOrEqual(Date.now() + DURATION_MS - 52);
    expect(await server.command('PTTL', 'a')).toBeGreaterThan(1_000);
    const failure = await failureOf(redlock.acquire(['b', 'c'], DURATION_MS, ONCE));
    expect(failure).toBeInstanceOf(ExecutionError);
    expect(await server.command('EXISTS', 'c')).toBe(0);
    await lock.release();
    expect(await server.command('EXISTS', 'a', 'b')).toBe(0);
    expect(lock.expiration).toBe(0);
  });

  it('rejects with an ExecutionError that has the votes, and emits what they were', async () => {
    const redlock = redlockOf();
    const emitted: unknown[] = [];
    redlock.on('error', (error) => emitted.push(error));
    const lock = await redlock.acquire(['a'], DURATION_MS);
    const failure = (await failureOf(
      redlock.acquire(['a'], DURATION_MS, ONCE),
    )) as ours.ExecutionError;
    expect(failure.name).toBe('ExecutionError');
    expect(failure.message).toBe(
      'The operation was unable to achieve a quorum during its retry window.',
    );
    const stats = await failure.attempts[0];
    expect(stats).toMatchObject({ membershipSize: 1, quorumSize: 1, votesFor: new Set() });
    expect([...(stats?.votesAgainst ?? [])]).toEqual([
      [[...redlock.clients][0], expect.any(ResourceLockedError)],
    ]);
    for (const error of stats?.votesAgainst.values() ?? [])
      expect(error.name).toBe('ResourceLockedError');
    expect(emitted.some((error) => error instanceof ResourceLockedError)).toBe(true);
    await lock.release();
  });

  it('resolves with the votes for what succeeds', async () => {
    const redlock = redlockOf();
    const lock = await redlock.acquire(['a'], DURATION_MS);
    const longer = await lock.extend(DURATION_MS);
    for (const { attempts } of [lock, longer, await longer.release()]) {
      expect(attempts).toHaveLength(1);
      const stats = await attempts[0];
      expect([...(stats?.votesFor ?? [])]).toEqual([...redlock.clients]);
      expect([...(stats?.votesAgainst ?? [])]).toEqual([]);
    }
  });

  it('takes the drift of the clocks from what remains', async () => {
    const redlock = redlockOf({ driftFactor: 0.1 });
    const remaining = async (
      locking: () => Promise<ours.Lock>,
      expectedMs: number,
    ): Promise<ours.Lock> => {
      const before = Date.now();
      const lock = await locking();
      expect(lock.expiration).toBeGreaterThanOrEqual(before + expectedMs - 1);
      expect(lock.expiration).toBeLessThanOrEqual(Date.now() + expectedMs);
      return lock;
    };
    const first = await remaining(() => redlock.acquire(['a'], 10_000), 8_998);
    const drift = { driftFactor: 0.2 };
    const other = await remaining(() => redlock.acquire(['b'], 10_000, drift), 7_998);
    await other.release();
    const longer = await remaining(() => redlock.extend(first, 20_000, drift), 15_998);
    await longer.release();
  });

  it('closes the clients when it quits', async () => {
    const redlock = redlockOf();
    await (await redlock.acquire(['a'], DURATION_MS)).release();
    await redlock.quit();
    for (const each of redlock.clients as ReadonlySet<Redis>)
      await eventually(() => each.status === 'end');
  });

  it('waits for as long as the retries take, and gets a lock that is released meanwhile', async () => {
    const redlock = redlockOf({ retryCount: 20, retryDelay: 100, retryJitter: 0 });
    const lock = await redlock.acquire(['a'], DURATION_MS);
    const waiting = redlock.acquire(['a'], DURATION_MS, { retryCount: -1 });
    const impatient = failureOf(
      redlock.acquire(['a'], DURATION_MS, { retryCount: 2, retryDelay: 50 }),
    );
    expect(await impatient).toBeInstanceOf(ExecutionError);
    await lock.release();
    const next = await waiting;
    await next.release();
  });

  it('takes a lease that is longer than any, and as many retries', async () => {
    const redlock = redlockOf({ retryCount: Number.MAX_SAFE_INTEGER });
    const lock = await redlock.acquire(['a'], 1e15);
    const longer = await lock.extend(1e15);
    expect(longer.expiration).toBeGreaterThan(9e14);
    await longer.release();
  });

  it('extends a lock into a new one, and refuses to extend the old one', async () => {
    const redlock = redlockOf();
    const lock = await redlock.acquire(['a'], 1_000);
    const longer = await lock.extend(DURATION_MS);
    expect(longer).not.toBe(lock);
    expect(lock.expiration).toBe(0);
    expect(longer.expiration).toBeGreaterThan(Date.now() + 2_000);
    expect(await server.command('PTTL', 'a')).toBeGreaterThan(1_000);
    const failure = await failureOf(lock.extend(DURATION_MS));
    expect(failure).toBeInstanceOf(ExecutionError);
    expect(failure).toMatchObject({
      message: 'Cannot extend an already-expired lock.',
      attempts: [],
    });
    await lock.release();
    expect(await server.command('EXISTS', 'a')).toBe(0);
  });

  it('rejects the release of a lock that is over, and a second release', async () => {
    const redlock = redlockOf(ONCE);
    const short = await redlock.acquire(['a'], 200);
    const lock = await redlock.acquire(['b'], DURATION_MS);
    await sleep(300);
    expect(await failureOf(short.release())).toBeInstanceOf(ExecutionError);
    const { attempts } = await redlock.release(lock);
    expect(await attempts[0]).toMatchObject({ membershipSize: 1 });
    const emitted: Error[] = [];
    redlock.on('error', (error: Error) => emitted.push(error));
    expect(await failureOf(lock.release())).toBeInstanceOf(ExecutionError);
    expect(emitted.map(({ message }) => message)).toContain(
      'The operation was applied to: 0 of the 1 requested resources.',
    );
  });

  it('runs a routine under a lock that outlasts its duration, and gives back what it returns', async () => {
    const redlock = redlockOf();
    const value = await redlock.using(['a'], 1_000, async (signal) => {
      await sleep(1_300);
      expect(signal.aborted).toBe(false);
      expect(await failureOf(redlock.acquire(['a'], DURATION_MS, ONCE))).toBeInstanceOf(
        ExecutionError,
      );
      return 42;
    });
    expect(value).toBe(42);
    expect(await server.command('EXISTS', 'a')).toBe(0);
  });

  it('aborts the signal of a routine whose lock is gone, and rejects then', async () => {
    const redlock = redlockOf(ONCE);
    const seen: unknown[] = [];
    const using = redlock.using(['a'], 1_000, async (signal) => {
      await server.command('DEL', 'a');
      await new Promise((resolve) => {
        signal.addEventListener('abort', resolve);
      });
      seen.push(signal.aborted, signal.error instanceof Error);
    });
    expect(await failureOf(using)).toBeInstanceOf(ExecutionError);
    expect(seen).toEqual([true, true]);
  });

  it('passes on what a routine throws, and releases its lock', async () => {
    const redlock = redlockOf();
    const failure = new Error('of the routine');
    const using = redlock.using(['a'], 1_000, { retryCount: 1 }, () => Promise.reject(failure));
    expect(await failureOf(using)).toBe(failure);
    expect(await server.command('EXISTS', 'a')).toBe(0);
  });

  it('refuses what node-redlock refuses, in its words', async () => {
    const redlock = redlockOf();
    expect(() => new Redlock([])).toThrow(
      'Redlock must be instantiated with at least one redis client.',
    );
    const integer = 'Duration must be an integer value in milliseconds.';
    await expect(redlock.acquire(['a'], 0.5)).rejects.toThrow(integer);
    await expect(redlock.using(['a'], 0.5, async () => 1)).rejects.toThrow(integer);
    const lock = await redlock.acquire(['b'], DURATION_MS);
    await expect(lock.extend(0.5)).rejects.toThrow(integer);
    await lock.release();
    expect(await redlock.using(['a'], 600, async () => 1)).toBe(1);
    await expect(redlock.using(['a'], 599, async () => 1)).rejects.toThrow(
      'A lock `duration` must be at least 100ms greater than the `automaticExtensionThreshold`',
    );
    await expect(redlock.using(['a'], 1_000, {})).rejects.toThrow(
      'INVARIANT: routine is not a function.',
    );
  });

  it('has the settings of node-redlock', () => {
    expect(redlockOf({ retryCount: 3, retryDelay: undefined as never }).settings).toEqual({
      driftFactor: 0.01,
      retryCount: 3,
      retryDelay: 200,
      retryJitter: 100,
      automaticExtensionThreshold: 500,
    });
  });
});

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
      });
      await expect(using).rejects.toBeInstanceOf(ours.ExecutionError);
      expect(warn.mock.calls).toContainEqual([expect.stringContaining('"a"'), 'HoldfastWarning']);
    } finally {
      warn.mockRestore();
    }
  });

  it('reckons the expiration from when it asked', async () => {
    const { locks } = scriptedService();
    const redlock = new ours.Redlock(locks);
    const clock = jest.spyOn(Date, 'now').mockReturnValue(1_000_000);
    const acquiring = redlock.acquire(['a'], DURATION_MS);
    clock.mockReturnValue(1_000_500);
    const lock = await acquiring;
    clock.mockRestore();
    expect(lock.expiration).toBe(1_000_000 + DURATION_MS - 52);
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
