import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { LockLostError, LockService, type LockModuleOptions } from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred, eventually, until } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { ExecutionError, Redlock, ResourceLockedError, type Lock } from './redlock.js';

/** Longer than any test takes: what is granted before has not expired, but was given back. */
const LONG_MS = 60_000;
/** While the holder is other software, who waits looks again every second. */
const NEXT_LOOK_MS = 1_000;
/** What a busy machine may take for it. */
const SLACK_MS = 4_000;
/** Ask once, as `tryAcquire` does. */
const ONCE = { retryCount: 0 };

let servers: RedisServer[] = [];
let services: LockService[] = [];
let clients: Redis[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false); // nodes that are gone, and lost locks, are the subject here
  servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
}, 60_000);

beforeEach(async () => {
  for (const server of servers) {
    if (server.isRunning) await server.command('FLUSHALL');
    else await server.restart();
  }
});

afterEach(async () => {
  await Promise.all(services.map((service) => service.shutdown(0)));
  for (const client of clients) client.disconnect();
  [services, clients] = [[], []];
});

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  Logger.overrideLogger(['log', 'warn', 'error']);
}, 60_000);

/**
 * Until it is granted. A `retryCount` would keep what redlock has got of a majority from one try to the next, for its whole TTL; two clients
 * that each have one of three masters then keep each other, and everybody else, out.
 */
async function acquireAgainAndAgain(redlock: Redlock, name: string): Promise<Lock> {
  for (;;) {
    try {
      return await redlock.acquire([name], LONG_MS, ONCE);
    } catch (error) {
      if (!(error instanceof ExecutionError)) throw error;
      await sleep(10 + 20 * Math.random());
    }
  }
}

async function openHoldfast(
  masters: readonly RedisServer[],
  options: LockModuleOptions = {},
): Promise<LockService> {
  const [only] = masters;
  const redis = masters.length === 1 ? only!.url : masters.map(({ url }) => url);
  const locks = new LockService({ redis, ttl: LONG_MS, ...options });
  services.push(locks);
  await locks.open();
  return locks;
}

/** With what it says to those who listen: it logs nothing, and its errors name neither a reason nor a node. */
async function openRedlock(
  masters: readonly RedisServer[],
): Promise<{ readonly redlock: Redlock; readonly said: readonly Error[] }> {
  const opened = masters.map(({ url }) => {
    const client = new Redis(url, {
      // As it comes, ioredis keeps commands for a server that is gone, and redlock waits for them.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      // Its timer is left behind by a client that is told to go while its server is gone.
      disconnectTimeout: 100,
    });
    client.on('error', () => undefined);
    return client;
  });
  clients.push(...opened);
  await Promise.all(opened.map((client) => until(client, 'ready')));
  const redlock = new Redlock(opened, { retryCount: 200, retryDelay: 50, retryJitter: 20 });
  const said: Error[] = [];
  redlock.on('error', (error: Error) => said.push(error));
  return { redlock, said };
}

/** Who holds a name on each of the servers, by the token that is there. */
const tokensOf = (masters: readonly RedisServer[], name: string): Promise<unknown[]> =>
  Promise.all(masters.map((server) => server.command('GET', name)));

/** By one, and by nobody else. */
const isHeldByMajority = (tokens: readonly unknown[]): boolean => {
  const held = tokens.filter((token) => token !== null);
  return held.length > tokens.length / 2 && new Set(held).size === 1;
};

const removeFrom = async (masters: readonly RedisServer[], name: string): Promise<void> => {
  await Promise.all(masters.map((server) => server.command('DEL', name)));
};

/** What a client of redlock calls the lock that Holdfast calls `key`. */
const placements = [
  { count: 1, keyPrefix: 'lock:', name: 'lock:order:1' },
  { count: 1, keyPrefix: '', name: 'order:1' },
  { count: 3, keyPrefix: 'lock:', name: 'lock:order:1' },
  { count: 3, keyPrefix: '', name: 'order:1' },
] as const;
const key = 'order:1';

describe.each(placements)(
  'redlock and Holdfast on the same keys, masters: $count, keyPrefix: "$keyPrefix"',
  ({ count, keyPrefix, name }) => {
    let masters: readonly RedisServer[];
    let locks: LockService;
    let redlock: Redlock;
    let said: readonly Error[];

    beforeEach(async () => {
      masters = servers.slice(0, count);
      locks = await openHoldfast(masters, { keyPrefix });
      ({ redlock, said } = await openRedlock(masters));
    });

    it('Holdfast is refused while redlock holds, and granted after its release', async () => {
      const theirs = await redlock.acquire([name], LONG_MS);
      expect(await locks.tryAcquire(key)).toBeNull();
      expect(await locks.tryRun(key, () => 'ran')).toMatchObject({ acquired: false });
      expect(await locks.inspect(key)).toMatchObject({ held: true });
      // Two of three masters decide. Where our own vote was first, the third never has it; and that vote goes back.
      await eventually(async () => isHeldByMajority(await tokensOf(masters, name)));

      let granted = false;
      const waiting = locks.acquire(key, { wait: '30s' }).then((lock) => {
        granted = true;
        return lock;
      });
      await sleep(NEXT_LOOK_MS * 1.5); // it has looked at least twice
      expect(granted).toBe(false);

      // That tells nobody.
      const releasedAt = performance.now();
      await theirs.release();
      const ours = await waiting;
      expect(performance.now() - releasedAt).toBeLessThan(NEXT_LOOK_MS + SLACK_MS);
      expect(await ours.release()).toBe(true);
    });

    it('redlock is refused while Holdfast holds, and granted after its release', async () => {
      const ours = await locks.acquire(key);
      const failure = await redlock.acquire([name], LONG_MS, ONCE).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(ExecutionError);
      // The error does not say why; only the event does, once for each node, and nobody has to listen.
      expect((failure as Error).message).not.toMatch(/lock(ed)? by|held|applied/);
      await eventually(() => said.length >= count);
      for (const error of said) expect(error).toBeInstanceOf(ResourceLockedError);
      expect(ours.isHeld).toBe(true);

      let granted = false;
      const waiting = redlock.acquire([name], LONG_MS).then((lock) => {
        granted = true;
        return lock;
      });
      await eventually(() => said.length >= 4 * count); // it has tried again
      expect(granted).toBe(false);
      expect(await ours.release()).toBe(true);

      const theirs = await waiting;
      expect(await locks.tryAcquire(key)).toBeNull();
      await theirs.release();
    });

    // Over several masters there are no readers.
    if (count === 1)
      it('redlock is refused while readers of Holdfast hold, until the last of them has gone', async () => {
        const readers = [
          await locks.acquire(key, { mode: 'shared' }),
          await locks.acquire(key, { mode: 'shared' }),
        ];
        const refused = { retryCount: 0 };
        for (const reader of readers) {
          await expect(redlock.acquire([name], LONG_MS, refused)).rejects.toThrow(ExecutionError);
          expect(await reader.release()).toBe(true);
        }
        const theirs = await redlock.acquire([name], LONG_MS);
        expect(await locks.tryAcquire(key, { mode: 'shared' })).toBeNull();
        await theirs.release();
        expect(await locks.tryAcquire(key, { mode: 'shared' })).not.toBeNull();
      });

    it('several keys of the one exclude each of them of the other', async () => {
      const others = [`${keyPrefix}a`, name];
      const theirs = await redlock.acquire(others, LONG_MS);
      expect(await locks.tryAcquire(['z', key])).toBeNull();
      await theirs.release();

      const ours = await locks.acquire(['z', key]);
      await expect(redlock.acquire(others, LONG_MS, ONCE)).rejects.toBeInstanceOf(ExecutionError);
      expect(await tokensOf(masters, `${keyPrefix}a`)).toEqual(masters.map(() => null));
      await ours.release();
    });

    it('Holdfast neither extends nor releases what is redlock’s by now', async () => {
      const [released, extended] = ['released', 'extended'].map((last) => `${key}:${last}`);
      for (const theirKey of [released!, extended!]) {
        const theirName = `${keyPrefix}${theirKey}`;
        const ours = await locks.acquire(theirKey, { autoExtend: false });
        await removeFrom(masters, theirName);
        const theirs = await redlock.acquire([theirName], LONG_MS / 2);
        const before = await tokensOf(masters, theirName);

        if (theirKey === extended) {
          await expect(ours.extend(2 * LONG_MS)).rejects.toBeInstanceOf(LockLostError);
          expect(ours.isHeld).toBe(false);
        }
        expect(await ours.release()).toBe(false);

        expect(await tokensOf(masters, theirName)).toEqual(before);
        for (const master of masters)
          expect(await master.command('PTTL', theirName)).toBeLessThanOrEqual(LONG_MS / 2);
        await theirs.release(); // rejects when it is lost
      }
    });

    it('redlock neither extends nor releases what is Holdfast’s by now', async () => {
      const theirs = await redlock.acquire([name], LONG_MS);
      await removeFrom(masters, name);
      const ours = await locks.acquire(key);
      const before = await tokensOf(masters, name);

      await expect(redlock.extend(theirs, LONG_MS, ONCE)).rejects.toBeInstanceOf(ExecutionError);
      await expect(redlock.release(theirs, ONCE)).rejects.toBeInstanceOf(ExecutionError);

      expect(await tokensOf(masters, name)).toEqual(before);
      await ours.extend();
      expect(ours.isHeld).toBe(true);
      expect(await ours.release()).toBe(true);
    });

    it('the automatic extension of `using` keeps Holdfast out for longer than its TTL', async () => {
      const ttlMs = 1_200;
      const begun = deferred();
      const finish = deferred();
      let isOver = false;
      const using = redlock.using(
        [name],
        ttlMs,
        { automaticExtensionThreshold: 1_000 },
        async (signal) => {
          begun.resolve();
          await finish.promise;
          isOver = true;
          return signal.aborted;
        },
      );
      await begun.promise;
      const waiting = locks.acquire(key, { wait: '30s' }).then((lock) => ({ lock, isOver }));

      const startedAt = performance.now();
      while (performance.now() - startedAt < 1.5 * ttlMs) {
        expect(await locks.tryAcquire(key)).toBeNull();
        await sleep(50);
      }
      finish.resolve();
      expect(await using).toBe(false);
      const granted = await waiting;
      expect(granted.isOver).toBe(true);
      await granted.lock.release();
    });

    it('no two of them are inside at once when all of them want in', async () => {
      const [more, other] = [
        await openHoldfast(masters, { keyPrefix }),
        await openRedlock(masters),
      ];
      let inside = 0;
      let entries = 0;
      const overlaps: string[] = [];
      const work = (who: string) => async (): Promise<void> => {
        inside += 1;
        entries += 1;
        if (inside > 1) overlaps.push(who);
        await sleep(2);
        inside -= 1;
      };
      const rounds = 8;
      const repeat = async (round: () => Promise<unknown>): Promise<void> => {
        for (let turn = 0; turn < rounds; turn += 1) await round();
      };
      const ofHoldfast = [locks, more].map((service) =>
        repeat(() => service.run(key, { wait: '60s' }, work('Holdfast'))),
      );
      const ofRedlock = [redlock, other.redlock].map((client) =>
        repeat(async () => {
          const theirs = await acquireAgainAndAgain(client, name);
          await work('redlock')();
          await theirs.release();
        }),
      );
      await Promise.all([...ofHoldfast, ...ofRedlock]);
      expect({ overlaps, entries }).toEqual({ overlaps: [], entries: 4 * rounds });
    }, 90_000);
  },
);

describe('redlock and Holdfast on three masters of which one is dead', () => {
  const name = `lock:${key}`;
  let locks: LockService;
  let redlock: Redlock;
  let said: readonly Error[];

  beforeEach(async () => {
    locks = await openHoldfast(servers);
    ({ redlock, said } = await openRedlock(servers));
    await servers[1]!.kill();
    await eventually(async () => {
      expect((await locks.health()).nodes.map(({ reachable }) => reachable)).toEqual([
        true,
        false,
        true,
      ]);
    });
  });

  it('Holdfast is refused while redlock holds, and granted after its release', async () => {
    const theirs = await redlock.acquire([name], LONG_MS);
    // Nobody hears of the dead node who does not listen: the lock was granted.
    await eventually(() => said.length > 0);
    expect(await locks.tryAcquire(key)).toBeNull();
    const waiting = locks.acquire(key, { wait: '30s' });
    await theirs.release();
    expect(await (await waiting).release()).toBe(true);
  });

  it('redlock is refused while Holdfast holds, and granted after its release', async () => {
    const ours = await locks.acquire(key);
    await expect(redlock.acquire([name], LONG_MS, ONCE)).rejects.toBeInstanceOf(ExecutionError);
    const waiting = acquireAgainAndAgain(redlock, name);
    expect(await ours.release()).toBe(true);
    const theirs = await waiting;
    expect(await locks.tryAcquire(key)).toBeNull();
    await theirs.release();
  });

  it('the node that comes back empty lets neither of them in', async () => {
    const isBack = async (): Promise<void> => {
      await servers[1]!.restart();
      await eventually(async () => {
        expect((await locks.health()).nodes.every(({ reachable }) => reachable)).toBe(true);
        expect(clients.every(({ status }) => status === 'ready')).toBe(true);
      });
    };
    const theirs = await redlock.acquire([name], LONG_MS);
    await isBack();
    expect(await locks.tryAcquire(key)).toBeNull();
    await theirs.release();

    await servers[1]!.kill();
    const ours = await locks.acquire(key);
    await isBack();
    await expect(redlock.acquire([name], LONG_MS, ONCE)).rejects.toBeInstanceOf(ExecutionError);
    expect(ours.isHeld).toBe(true);
    await ours.extend();
    expect(await ours.release()).toBe(true);
  });
});
