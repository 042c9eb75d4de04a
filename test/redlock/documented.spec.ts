import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { Redlock, type ExecutionError } from '@nestjs-holdfast/redlock';
import type * as ours from '@nestjs-holdfast/redlock';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, until } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { IMPLEMENTATIONS, NODE_REDLOCK, failureOf } from './implementations.js';

const ONCE = { retryCount: 0 };
const DURATION_MS = 5_000;
const NO_QUORUM = 'The operation was unable to achieve a quorum during its retry window.';

let servers: readonly RedisServer[];
let clients: Redis[] = [];
let opened: ours.Redlock[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false); // lost locks and servers that are down are the subject
  servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
});
beforeEach(async () => {
  for (const server of servers)
    if (server.isRunning) await server.command('FLUSHDB');
    else await server.restart();
});
afterEach(async () => {
  await Promise.all(opened.map((redlock) => redlock.quit().catch(() => undefined)));
  for (const client of clients) client.disconnect();
  [opened, clients] = [[], []];
});
afterAll(() => Promise.all(servers.map((server) => server.stop())));

/** Clients that report an outage at once: otherwise ioredis keeps the commands, and node-redlock waits for them. */
function connect(masters: readonly RedisServer[]): readonly Redis[] {
  const made = masters.map(({ url }) => {
    const client = new Redis(url, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: 500,
      disconnectTimeout: 100,
    });
    client.on('error', () => undefined);
    return client;
  });
  clients.push(...made);
  return made;
}

async function clientsOf(masters: readonly RedisServer[]): Promise<readonly Redis[]> {
  const made = connect(masters);
  await Promise.all(made.map((client) => until(client, 'ready')));
  return made;
}

describe.each(IMPLEMENTATIONS)('%s', (_name, { Redlock, ExecutionError, ResourceLockedError }) => {
  const redlockOn = async (
    masters: readonly RedisServer[],
    settings: Partial<ours.Settings> = {},
  ): Promise<ours.Redlock> => {
    const made = new Redlock(await clientsOf(masters), settings);
    opened.push(made);
    return made;
  };
  const errorsOf = (redlock: ours.Redlock): Error[] => {
    const errors: Error[] = [];
    redlock.on('error', (error: Error) => errors.push(error));
    return errors;
  };

  describe.each([1, 3])('on %i servers', (count) => {
    const masters = (): readonly RedisServer[] => servers.slice(0, count);
    const redlockOf = (settings?: Partial<ours.Settings>): Promise<ours.Redlock> =>
      redlockOn(masters(), settings);
    const onEach = (...command: readonly string[]): Promise<readonly unknown[]> =>
      Promise.all(masters().map((server) => server.command(...command)));
    const remove = (name: string): Promise<unknown> => onEach('DEL', name);
    /** Replies come from a majority: the last server may be later. */
    const holds = (name: string, isHeld: boolean): Promise<unknown> =>
      eventually(async () =>
        (await onEach('EXISTS', name)).every((exists) => exists === Number(isHeld)),
      );

    describe('README, Configuration', () => {
      it('"instantiated with an array of at least one redis client"', async () => {
        const given = new Set(await clientsOf(masters()));
        const redlock = new Redlock(given);
        opened.push(redlock);
        expect([...redlock.clients]).toEqual([...given]);
        expect(() => new Redlock([])).toThrow(
          'Redlock must be instantiated with at least one redis client.',
        );
      });

      it('"and an optional options object", with defaults', async () => {
        const redlock = await redlockOf({ retryCount: 3, retryDelay: undefined as never });
        expect(redlock.settings).toEqual({
          driftFactor: 0.01,
          retryCount: 3,
          retryDelay: 200,
          retryJitter: 100,
          automaticExtensionThreshold: 500,
        });
      });

      it('"driftFactor: multiplied by lock ttl to determine drift time", also of one call', async () => {
        const redlock = await redlockOf({ driftFactor: 0.1 });
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

      it('"retryCount: the max number of times Redlock will attempt", "retryDelay: the time between attempts"', async () => {
        const redlock = await redlockOf({ retryCount: 3, retryDelay: 100, retryJitter: 0 });
        const lock = await redlock.acquire(['a'], DURATION_MS);
        const refusedAfterMs = async (settings?: Partial<ours.Settings>): Promise<number> => {
          const startMs = performance.now();
          const failure = await failureOf(redlock.acquire(['a'], DURATION_MS, settings));
          expect(failure).toBeInstanceOf(ExecutionError);
          return performance.now() - startMs;
        };
        expect(await refusedAfterMs()).toBeGreaterThan(290);
        expect(await refusedAfterMs({ retryCount: 1, retryDelay: 500 })).toBeGreaterThan(490);
        expect(await refusedAfterMs({ retryCount: 0, retryDelay: 60_000 })).toBeLessThan(5_000);
        await lock.release();
      });
    });

    describe('README, Usage: using', () => {
      it('"executes a routine in the context of an auto-extending lock, returning a promise of the routine\'s value"', async () => {
        const redlock = await redlockOf();
        const value = await redlock.using(['a', 'b'], 1_000, async (signal) => {
          await sleep(1_300);
          expect(signal.aborted).toBe(false);
          expect(signal.error).toBeUndefined();
          for (const name of ['a', 'b'])
            expect(await failureOf(redlock.acquire([name], DURATION_MS, ONCE))).toBeInstanceOf(
              ExecutionError,
            );
          return 42;
        });
        expect(value).toBe(42);
        await holds('a', false);
        await holds('b', false);
      });

      it('"In the case that auto-extension fails, an AbortSignal will be updated … to pass along the encountered error"', async () => {
        // An extension that is tried too late, on a busy machine, is no error of node-redlock.
        const redlock = await redlockOf({ ...ONCE, automaticExtensionThreshold: 1_500 });
        const errors = errorsOf(redlock);
        const seen: unknown[] = [];
        const using = redlock.using(['a'], 2_000, async (signal) => {
          await remove('a');
          await until(
            {
              once: (name, on) => {
                signal.addEventListener(name, on);
              },
            },
            'abort',
          );
          seen.push(signal.aborted, signal.error, errors.length > 0);
          throw signal.error!;
        });
        const failure = await failureOf(using);
        expect(seen).toEqual([true, expect.any(ExecutionError), true]);
        // "The error thrown out of redlock.using will not be signal.error"
        expect(failure).toBeInstanceOf(ExecutionError);
        expect(failure).not.toBe(seen[1]);
        expect(failure).toMatchObject({ message: NO_QUORUM });
      });

      it('"duration MUST NOT contain values after the decimal"', async () => {
        const redlock = await redlockOf();
        const integer = 'Duration must be an integer value in milliseconds.';
        await expect(redlock.using(['a'], 0.5, async () => 1)).rejects.toThrow(integer);
        await expect(redlock.acquire(['a'], 0.5)).rejects.toThrow(integer);
        const lock = await redlock.acquire(['b'], DURATION_MS);
        await expect(lock.extend(0.5)).rejects.toThrow(integer);
        await lock.release();
      });

      it('a duration is at least 100 ms longer than automaticExtensionThreshold', async () => {
        const redlock = await redlockOf();
        expect(await redlock.using(['a'], 600, async () => 1)).toBe(1);
        const longer = { automaticExtensionThreshold: 501 };
        for (const using of [
          redlock.using(['a'], 599, async () => 1),
          redlock.using(['a'], 600, longer, async () => 1),
        ])
          await expect(using).rejects.toThrow(
            'A lock `duration` must be at least 100ms greater than the `automaticExtensionThreshold` setting.',
          );
        await expect(redlock.using(['a'], 1_000, {})).rejects.toThrow(
          'INVARIANT: routine is not a function.',
        );
      });

      it('passes on what a routine throws, and releases its lock', async () => {
        const redlock = await redlockOf();
        const failure = new Error('of the routine');
        const using = redlock.using(['a'], 1_000, { retryCount: 1 }, () => Promise.reject(failure));
        expect(await failureOf(using)).toBe(failure);
        await holds('a', false);
      });

      it('takes another lock inside, and refuses its own', async () => {
        const redlock = await redlockOf();
        const run = (name: string): Promise<string> =>
          redlock.using([name], DURATION_MS, ONCE, async () => name);
        const seen = await redlock.using(['a'], DURATION_MS, async () => [
          await run('b'),
          await failureOf(run('a')),
        ]);
        expect(seen).toEqual(['b', expect.any(ExecutionError)]);
      });
    });

    it.each([undefined, null])('takes %s as settings of one call', async (settings) => {
      const left = settings as unknown as Partial<ours.Settings>;
      const redlock = await redlockOf();
      expect(await redlock.using(['a'], DURATION_MS, left, async () => 'done')).toBe('done');
      const lock = await redlock.acquire(['a'], DURATION_MS, left);
      const longer = await redlock.extend(lock, DURATION_MS, left);
      await longer.release();
    });

    describe('README, Usage: acquire, extend and release', () => {
      it('locks all resources or none, under their names, for the duration', async () => {
        const redlock = await redlockOf();
        const before = Date.now();
        const lock = await redlock.acquire(['b', 'a'], DURATION_MS);
        expect(lock.resources).toEqual(['b', 'a']);
        expect(lock.redlock).toBe(redlock);
        // Ours may end 5 ms before its time.
        const marginMs = Redlock === NODE_REDLOCK.Redlock ? 52 : 57;
        expect(lock.expiration).toBeGreaterThan(before + DURATION_MS - marginMs - 1);
        expect(lock.expiration).toBeLessThanOrEqual(Date.now() + DURATION_MS - marginMs);
        await holds('a', true);
        for (const ttlMs of await onEach('PTTL', 'a')) {
          expect(ttlMs).toBeGreaterThan(1_000);
          expect(ttlMs).toBeLessThanOrEqual(DURATION_MS);
        }
        const failure = await failureOf(redlock.acquire(['b', 'c'], DURATION_MS, ONCE));
        expect(failure).toBeInstanceOf(ExecutionError);
        await holds('c', false);
        await lock.release();
        await holds('a', false);
        await holds('b', false);
        expect(lock.expiration).toBe(0);
      });

      it('a lock of acquire is not extended by itself', async () => {
        const redlock = await redlockOf();
        const errors = errorsOf(redlock);
        const lock = await redlock.acquire(['a'], 300);
        const next = await redlock.acquire(['a'], DURATION_MS);
        expect(lock.expiration).toBeLessThanOrEqual(Date.now() + 1);
        expect(errors.filter((error) => !(error instanceof ResourceLockedError))).toEqual([]);
        await next.release();
      });

      it('takes a duration and retries that are longer than any', async () => {
        const redlock = await redlockOf({ retryCount: Number.MAX_SAFE_INTEGER });
        const lock = await redlock.acquire(['a'], 1e15);
        const longer = await lock.extend(1e15);
        expect(longer.expiration).toBeGreaterThan(Date.now() + 1e12);
        await longer.release();
      });

      it('"Extend the lock. Note that this returns a new Lock instance"', async () => {
        const redlock = await redlockOf();
        const lock = await redlock.acquire(['b', 'a'], 1_000);
        const longer = await lock.extend(DURATION_MS);
        expect(longer).not.toBe(lock);
        expect(longer.resources).toEqual(['b', 'a']);
        expect(longer.value).toBe(lock.value);
        expect(lock.expiration).toBe(0);
        expect(longer.expiration).toBeGreaterThan(Date.now() + 2_000);
        await eventually(async () =>
          (await onEach('PTTL', 'a')).every((ttlMs) => Number(ttlMs) > 1_000),
        );
        expect(await failureOf(lock.extend(DURATION_MS))).toMatchObject({
          name: 'ExecutionError',
          message: 'Cannot extend an already-expired lock.',
          attempts: [],
        });
        await lock.release();
        await holds('a', false);
      });
    });

    describe('README, Error Handling', () => {
      it('"Ignore cases where a resource is explicitly marked as locked": ResourceLockedError', async () => {
        const redlock = await redlockOf();
        const errors = errorsOf(redlock);
        const lock = await redlock.acquire(['a'], DURATION_MS);
        const settings = { retryCount: 2, retryDelay: 50 };
        await failureOf(redlock.acquire(['a'], DURATION_MS, settings));
        await eventually(() => errors.length > 0);
        expect(errors.filter((error) => !(error instanceof ResourceLockedError))).toEqual([]);
        await lock.release();
      });

      it('"per-attempt and per-client stats (including errors)" of Lock and ExecutionError', async () => {
        const redlock = await redlockOf();
        const quorumSize = Math.floor(count / 2) + 1;
        const lock = await redlock.acquire(['a'], DURATION_MS);
        const failure = await failureOf(redlock.acquire(['a'], DURATION_MS, ONCE));
        expect(failure).toBeInstanceOf(ExecutionError);
        expect(failure).toMatchObject({ name: 'ExecutionError', message: NO_QUORUM });
        const { attempts: failed } = failure as ours.ExecutionError;
        expect(failed).toHaveLength(1);
        const stats = await failed[0];
        expect(stats).toMatchObject({ membershipSize: count, quorumSize, votesFor: new Set() });
        expect([...(stats?.votesAgainst ?? [])]).toEqual(
          expect.arrayContaining(
            [...redlock.clients].map((client) => [client, expect.any(ResourceLockedError)]),
          ),
        );
        for (const error of stats?.votesAgainst.values() ?? [])
          expect(error.name).toBe('ResourceLockedError');
        const longer = await lock.extend(DURATION_MS);
        for (const { attempts } of [lock, longer, await longer.release()]) {
          expect(attempts).toHaveLength(1);
          const voted = await attempts[0];
          expect(voted).toMatchObject({ membershipSize: count, quorumSize });
          expect(voted?.votesFor).toEqual(redlock.clients);
          expect([...(voted?.votesAgainst ?? [])]).toEqual([]);
        }
      });

      it('an outage makes an ExecutionError and emits an error, which is no ResourceLockedError', async () => {
        const redlock = await redlockOf(ONCE);
        await (await redlock.acquire(['a'], DURATION_MS)).release();
        const errors = errorsOf(redlock);
        await Promise.all(masters().map((server) => server.kill()));
        const failure = await failureOf(redlock.acquire(['a'], DURATION_MS));
        expect(failure).toMatchObject({ name: 'ExecutionError', message: NO_QUORUM });
        expect(errors.some((error) => !(error instanceof ResourceLockedError))).toBe(true);
      });
    });

    it('README, Error Handling: an outage at the start, until the servers are there', async () => {
      await Promise.all(masters().map((server) => server.kill()));
      const redlock = new Redlock(connect(masters()), ONCE);
      opened.push(redlock);
      expect(await failureOf(redlock.acquire(['a'], DURATION_MS))).toMatchObject({
        name: 'ExecutionError',
        message: NO_QUORUM,
      });
      await Promise.all(masters().map((server) => server.restart()));
      const lock = await eventually(() => redlock.acquire(['a'], DURATION_MS));
      await lock.release();
    });

    describe('README, How do I check if something is locked?', () => {
      it('"with retryCount=-1 there will be unlimited retries until the lock is acquired"', async () => {
        const redlock = await redlockOf({ retryCount: 1, retryDelay: 50, retryJitter: 0 });
        const lock = await redlock.acquire(['a'], DURATION_MS);
        const waiting = redlock.acquire(['a'], DURATION_MS, { retryCount: -1 });
        expect(await failureOf(redlock.acquire(['a'], DURATION_MS))).toBeInstanceOf(ExecutionError);
        await lock.release();
        await (await waiting).release();
      });
    });

    describe('TSDoc', () => {
      it('release "will fail with an error if it is unable to release the lock on a quorum of nodes"', async () => {
        const redlock = await redlockOf(ONCE);
        const short = await redlock.acquire(['a'], 200);
        const lock = await redlock.acquire(['b'], DURATION_MS);
        await eventually(async () => (await onEach('EXISTS', 'a')).every((exists) => exists === 0));
        expect(await failureOf(short.release())).toBeInstanceOf(ExecutionError);
        const { attempts } = await redlock.release(lock);
        expect(await attempts[0]).toMatchObject({ membershipSize: count });
        const errors = errorsOf(redlock);
        expect(await failureOf(lock.release())).toBeInstanceOf(ExecutionError);
        expect(errors.map(({ message }) => message)).toContain(
          'The operation was applied to: 0 of the 1 requested resources.',
        );
      });

      it('"It is safe to re-attempt a release"', async () => {
        const redlock = await redlockOf(ONCE);
        const lock = await redlock.acquire(['a'], 20_000);
        for (const server of masters()) server.freeze();
        const failure = await failureOf(lock.release());
        for (const server of masters()) server.thaw();
        expect(failure).toBeInstanceOf(ExecutionError);
        await failureOf(lock.release());
        await holds('a', false);
      });

      it('"or to ignore the error, as the lock will automatically expire"', async () => {
        const redlock = await redlockOf(ONCE);
        const lock = await redlock.acquire(['a'], 1_000);
        for (const server of masters()) server.freeze();
        await failureOf(lock.release());
        for (const server of masters()) server.thaw();
        await (await redlock.acquire(['a'], DURATION_MS, { retryCount: -1 })).release();
      });

      it('extend "extends a valid lock": not one that another caller has', async () => {
        const redlock = await redlockOf(ONCE);
        const lock = await redlock.acquire(['a'], DURATION_MS);
        await remove('a');
        const next = await redlock.acquire(['a'], DURATION_MS);
        expect(await failureOf(lock.extend(DURATION_MS))).toMatchObject({
          name: 'ExecutionError',
          message: NO_QUORUM,
        });
        expect(await failureOf(lock.release())).toBeInstanceOf(ExecutionError);
        await (await next.extend(DURATION_MS)).release();
      });

      it('quit "runs .quit() on all client connections"', async () => {
        const redlock = await redlockOf();
        await (await redlock.acquire(['a'], DURATION_MS)).release();
        await redlock.quit();
        for (const each of redlock.clients as ReadonlySet<Redis>)
          await eventually(() => each.status === 'end');
      });
    });

    it('the prefix and the database of a client are those of its locks', async () => {
      const made = masters().map(({ url }) => new Redis(`${url}/3`, { keyPrefix: 'app:' }));
      clients.push(...made);
      const redlock = new Redlock(made);
      opened.push(redlock);
      const lock = await redlock.acquire(['a'], DURATION_MS);
      expect(lock.resources).toEqual(['a']);
      await eventually(async () =>
        (await Promise.all(made.map((each) => each.exists('a')))).every((found) => found === 1),
      );
      await holds('a', false);
      await lock.release();
    });
  });

  describe('README, Error Handling: a minority of three servers', () => {
    const [down] = [2];
    it.each(['killed', 'frozen'] as const)(
      '"does not care if a minority of redis instances/clusters fail at an operation": %s',
      async (how) => {
        const redlock = await redlockOn(servers);
        const before = await redlock.acquire(['a'], DURATION_MS);
        if (how === 'killed') await servers[down]!.kill();
        else servers[down]!.freeze();
        try {
          await (await before.extend(DURATION_MS)).release();
          await (await redlock.acquire(['b'], DURATION_MS)).release();
          const value = await redlock.using(['c'], 1_000, async (signal) => {
            await sleep(1_300);
            return signal.aborted;
          });
          expect(value).toBe(false);
        } finally {
          if (how === 'frozen') servers[down]!.thaw();
        }
      },
    );

    it('"emits an error event whenever it encounters an error, even if the error is ignored"', async () => {
      const redlock = await redlockOn(servers);
      await (await redlock.acquire(['a'], DURATION_MS)).release();
      const errors = errorsOf(redlock);
      await servers[down]!.kill();
      await (await redlock.acquire(['a'], DURATION_MS)).release();
      await eventually(() => errors.length > 0);
      expect(errors[0]).not.toBeInstanceOf(ResourceLockedError);
    });

    it('TSDoc of acquire: "release any partial lock state that may exist on a minority of clients"', async () => {
      const redlock = await redlockOn(servers);
      for (const server of servers.slice(0, 2)) await server.command('SET', 'a', 'of another');
      expect(await failureOf(redlock.acquire(['a'], DURATION_MS, ONCE))).toBeInstanceOf(
        ExecutionError,
      );
      await eventually(async () => (await servers[down]!.command('EXISTS', 'a')) === 0);
    });
  });
});

describe('@nestjs-holdfast/redlock, other than node-redlock', () => {
  it('has one attempt, in which all clients vote as the majority did', async () => {
    const made = await clientsOf(servers);
    const redlock = new Redlock(made, { retryCount: 2, retryDelay: 50 });
    opened.push(redlock);
    for (const server of servers.slice(1)) await server.command('SET', 'a', 'of another');
    const failure = (await failureOf(redlock.acquire(['a'], DURATION_MS))) as ExecutionError;
    expect(failure.attempts).toHaveLength(1);
    expect([...((await failure.attempts[0])?.votesAgainst.keys() ?? [])]).toEqual(made);
    await servers[1]!.command('DEL', 'a');
    const lock = await redlock.acquire(['a'], DURATION_MS);
    expect([...((await lock.attempts[0])?.votesFor ?? [])]).toEqual(made);
    await lock.release();
  });
});
