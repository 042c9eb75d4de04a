import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster, Redis } from 'ioredis';
import {
  GuardedCommandError,
  LockConfigurationError,
  LockLostError,
  LockService,
  LockStoreUnavailableError,
  type Lock,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { RedisCluster } from '../../support/redis-cluster.js';
import { RedisServer } from '../../support/redis-server.js';

let services: LockService[] = [];
let keysMade = 0;

beforeAll(() => {
  Logger.overrideLogger(false);
});

afterEach(async () => {
  await Promise.all(services.map((service) => service.shutdown(0)));
  services = [];
});

async function serviceOf(options: LockModuleOptions): Promise<LockService> {
  const service = new LockService(options);
  services.push(service);
  await service.open();
  return service;
}

/** A key of a lock, and one for data in its slot. */
function names(): { key: string; data: string } {
  const key = `order:${String((keysMade += 1))}`;
  return { key, data: `{lock:${key}}:total` };
}

interface Place {
  readonly client: Redis | Cluster;
  readonly options: LockModuleOptions;
  close(): Promise<void>;
}

const places: Readonly<Record<string, () => Promise<Place>>> = {
  'one Redis': async () => {
    const server = await RedisServer.start();
    const client = new Redis(server.url);
    const options = { redis: server.url };
    return {
      client,
      options,
      close: async () => {
        client.disconnect();
        await server.stop();
      },
    };
  },
  'a Redis Cluster': async () => {
    const cluster = await RedisCluster.start();
    const client = new Cluster(cluster.startupNodes);
    return {
      client,
      options: { redis: client },
      close: async () => {
        client.disconnect();
        await cluster.stop();
      },
    };
  },
};

it('guarded commands that only read are answered where Redis refuses writes', async () => {
  const server = await RedisServer.start();
  try {
    const locks = await serviceOf({ redis: server.url });
    const { key, data } = names();
    const lock = await locks.acquire(key, { autoExtend: false });
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '1');
    expect(await lock.guarded([['get', data]])).toEqual([null]);
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '0');
    await lock.release();
  } finally {
    await server.stop();
  }
});

describe.each(Object.entries(places))('guarded writes on %s', (_, open) => {
  let place: Place;

  beforeAll(async () => {
    place = await open();
  }, 60_000);

  afterAll(() => place.close(), 60_000);

  it('are run as long as the lock is held, and answered one by one', async () => {
    const locks = await serviceOf(place.options);
    const { key, data } = names();
    await using lock = await locks.acquire(key);
    const replies = await lock.guarded([
      ['set', data, 90],
      ['incrby', data, 10],
      ['get', data],
      ['get', `${data}:none`],
      ['hset', `${data}:more`, 'a', 1, 'b', 2.5],
      ['HGETALL', `${data}:more`],
    ]);
    expect(replies).toEqual(['OK', 100, '100', null, 2, ['a', '1', 'b', '2.5']]);
    expect(await place.client.get(data)).toBe('100');
  });

  it('leave the lock its end', async () => {
    const locks = await serviceOf(place.options);
    const { key, data } = names();
    await using lock = await locks.acquire(key, { autoExtend: false });
    const leftMs = await place.client.pttl(`lock:${key}`);
    await lock.guarded([['set', data, 90]]);
    expect(await place.client.pttl(`lock:${key}`)).toBeLessThanOrEqual(leftMs);
  });

  it('are run in sections, by those who hold a key together, and after an attach', async () => {
    const [one, other] = [await serviceOf(place.options), await serviceOf(place.options)];
    const { key, data } = names();
    const write = (lock: Lock) => lock.guarded([['rpush', data, lock.fencingToken]]);
    expect(await one.run(key, write)).toEqual([1]);
    const readers = await Promise.all(
      [one, other].map((service) => service.acquire(key, { mode: 'shared', wait: '20s' })),
    );
    for (const reader of readers) await write(reader);
    await Promise.all(readers.map((reader) => reader.release()));
    const detached = await one.acquire(key);
    const lock = await other.attach(await detached.detach());
    expect(await write(lock)).toEqual([4]);
    await expect(write(detached)).rejects.toMatchObject({ reason: 'detached' });
    await lock.release();
  });

  it('are not run for a holder that does not know yet that it has lost its lock', async () => {
    const [one, other] = [await serviceOf(place.options), await serviceOf(place.options)];
    const { key, data } = names();
    const late = await one.acquire(key);
    const { signal } = late;
    await place.client.del(`lock:${key}`);
    await using next = await other.acquire(key);
    await next.guarded([['set', data, 'new']]);

    expect(late.isHeld).toBe(true);
    const refusal: unknown = await late.guarded([['set', data, 'late']]).catch((e: unknown) => e);
    expect(refusal).toBeInstanceOf(LockLostError);
    expect(refusal).toMatchObject({ reason: 'stolen' });
    expect(signal.aborted).toBe(true);
    expect(await place.client.get(data)).toBe('new');

    await place.client.del(`lock:${key}`);
    await expect(next.guarded([['set', data, 'late']])).rejects.toMatchObject({
      reason: 'released-elsewhere',
    });
    await expect(next.guarded([['set', data, 'late']])).rejects.toBeInstanceOf(LockLostError);
    expect(await place.client.get(data)).toBe('new');
  });

  it('are not run for who has given the lock back, though it goes on in the same process', async () => {
    const locks = await serviceOf(place.options);
    const { key, data } = names();
    const lock = await locks.acquire(key);
    const waiting = locks.acquire(key, { wait: '20s' });
    await locks.inspect(key);
    await lock.release();
    await using next = await waiting;
    await expect(lock.guarded([['set', data, 'late']])).rejects.toMatchObject({
      reason: 'released',
    });
    await next.guarded([['setnx', data, 'mine']]);
    expect(await place.client.get(data)).toBe('mine');
  });

  it('end at the first command that fails, and say which', async () => {
    const locks = await serviceOf(place.options);
    const { key, data } = names();
    await using lock = await locks.acquire(key);
    const failure: unknown = await lock
      .guarded([
        ['set', data, 'text'],
        ['incr', data],
        ['set', data, 'not run'],
      ])
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(GuardedCommandError);
    expect(failure).toMatchObject({ index: 1, command: 'incr' });
    expect(String(failure)).toMatch(/Command 2 of guarded\(\) \(incr\) failed: .*not an integer/);
    expect(await place.client.get(data)).toBe('text');
    await expect(lock.guarded([['nosuch', data]])).rejects.toMatchObject({ index: 0 });
    expect(lock.isHeld).toBe(true);
  });

  it('leave the keys of the lock alone', async () => {
    const locks = await serviceOf(place.options);
    const { key } = names();
    await using lock = await locks.acquire(key);
    for (const own of [`lock:${key}`, `{lock:${key}}:fence`, `{lock:${key}}:queue`])
      await expect(lock.guarded([['del', own]])).rejects.toThrow(/is a key of the lock itself/);
    expect(lock.isHeld).toBe(true);
  });

  it.each([
    ['nothing', []],
    ['no list', 'set a 1'],
    ['a command that is none', ['set a 1']],
    ['no name', [[]]],
    ['an object', [['set', 'a', {}]]],
    ['no number', [['set', 'a', NaN]]],
    ['too much', [['sadd', 'a', ...Array.from({ length: 5_000 }, String)]]],
  ])('are refused where they are %s', async (_what, commands) => {
    const locks = await serviceOf(place.options);
    await using lock = await locks.acquire(names().key);
    const writing = lock.guarded(commands as never);
    await expect(writing).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(writing).rejects.toThrow(/Write lock.guarded\(\[\['set'/);
  });
});

describe('guarded writes', () => {
  it('on a Cluster are refused for keys in another slot, with the name to use', async () => {
    const place = await places['a Redis Cluster']!();
    try {
      const locks = await serviceOf(place.options);
      const { key } = names();
      await using lock = await locks.acquire(key);
      const writing = lock.guarded([['set', 'total', 1]]);
      await expect(writing).rejects.toBeInstanceOf(LockConfigurationError);
      await expect(writing).rejects.toThrow(`"{lock:${key}}:…"`);
      await expect(lock.guarded([['JSON.SET', 'doc', '$', 1]])).rejects.toThrow(/slot/);
      await using several = await locks.acquire(['a', 'b', 'c', 'd']);
      await expect(several.guarded([['incr', '{lock:a}:n']])).rejects.toThrow(/several slots/);
      await locks.shutdown();
    } finally {
      await place.close();
    }
  }, 60_000);

  it('are refused in memory', async () => {
    const locks = await serviceOf({ store: 'memory' });
    await using lock = await locks.acquire('order:42');
    const writing = lock.guarded([['set', 'a', 1]]);
    await expect(writing).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(writing).rejects.toThrow(/Give "redis"/);
    expect(lock.isHeld).toBe(true);
  });

  it('that Redis does not answer may have been run, and leave the lock as it is', async () => {
    const server = await RedisServer.start();
    try {
      const locks = await serviceOf({ redis: server.url, nodeTimeout: 300 });
      await using lock = await locks.acquire('order:42');
      server.freeze();
      await expect(lock.guarded([['set', 'a', 1]])).rejects.toBeInstanceOf(
        LockStoreUnavailableError,
      );
      expect(lock.isHeld).toBe(true);
      server.thaw();
    } finally {
      await Promise.all(services.map((service) => service.shutdown(0)));
      await server.stop();
    }
  });
});
