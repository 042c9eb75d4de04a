import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster } from 'ioredis';
import { LockLostError, LockService, type Lock, type LockModuleOptions } from 'nestjs-holdfast';
import { eventually } from '../../support/eventually.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { RedisSentinel } from '../../support/redis-sentinel.js';
import type { RedisServer } from '../../support/redis-server.js';

/** One master and its replica, with what it takes for the replica to be promoted. */
interface Group {
  readonly options: () => LockModuleOptions;
  readonly servers: () => Promise<{ readonly master: RedisServer; readonly replica: RedisServer }>;
  readonly failOver: () => Promise<void>;
}

const SHARED = { mode: 'shared' } as const;
/** Longer than a fail-over takes. */
const TTL_MS = 30_000;
const ELECTED = { withinMs: 25_000 };
/** On a Cluster all keys are in one slot. */
const KEY_PREFIX = '{fail-over}:';

const ends: (() => unknown)[] = [];

beforeEach(() => {
  Logger.overrideLogger(false);
});

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function sentinel(): Promise<Group> {
  const group = await RedisSentinel.start();
  ends.push(() => group.stop());
  return {
    options: () => ({ redis: { sentinels: group.sentinels, name: group.name } }),
    servers: () => Promise.resolve(group),
    failOver: () => group.failOver(),
  };
}

async function cluster(): Promise<Group> {
  const nodes = await RedisCluster.start({ masters: 3, replicas: 3 });
  ends.push(() => nodes.stop());
  return {
    options: () => {
      const redis = new Cluster(nodes.startupNodes, { lazyConnect: true });
      ends.push(() => {
        redis.disconnect();
      });
      return { redis };
    },
    servers: async () => {
      const master = await nodes.masterOf(KEY_PREFIX);
      const [, , replicas] = (await master.command('ROLE')) as [string, number, string[][]];
      const replica = nodes.nodes.find(({ port }) => String(port) === replicas[0]?.[1]);
      if (replica === undefined) throw new Error('the master has no replica');
      return { master, replica };
    },
    failOver: () => nodes.failOver(KEY_PREFIX),
  };
}

async function processOn(group: Group): Promise<LockService> {
  const locks = new LockService({ ...group.options(), keyPrefix: KEY_PREFIX, ttl: TTL_MS });
  ends.push(() => locks.shutdown(0));
  await locks.open();
  return locks;
}

/** Whatever the master has now. */
async function replicated({ servers }: Group): Promise<void> {
  const { master, replica } = await servers();
  const offsetOf = async (server: RedisServer): Promise<number> => {
    const info = String(await server.command('INFO', 'replication'));
    const [, offset] = /^(?:slave|master)_repl_offset:(\d+)/m.exec(info) ?? [];
    return Number(offset);
  };
  const reached = await offsetOf(master);
  await eventually(async () => (await offsetOf(replica)) >= reached);
}

/** From now on the replica gets nothing: it has a password that its master does not know. */
async function cutReplication({ servers }: Group): Promise<void> {
  const { master, replica } = await servers();
  await replica.command('CONFIG', 'SET', 'masterauth', 'unknown');
  await master.command('CLIENT', 'KILL', 'TYPE', 'replica');
  await eventually(async () =>
    expect(await replica.command('INFO', 'replication')).toContain('master_link_status:down'),
  );
  ends.push(() => replica.command('CONFIG', 'SET', 'masterauth', '').catch(() => undefined));
}

/** What became of it, without a rejection that nobody handles. */
function outcomeOf(call: Promise<unknown>): Outcome {
  const outcome: { end: Promise<unknown>; ended: unknown } = { end: call, ended: 'pending' };
  outcome.end = call.then(
    () => (outcome.ended = 'done'),
    (error: unknown) => (outcome.ended = error),
  );
  return outcome;
}

interface Outcome {
  readonly end: Promise<unknown>;
  readonly ended: unknown;
}

/** Resolves when a call of this service waits. */
const waits = (service: LockService, key: string): Promise<void> =>
  new Promise((resolve) => {
    const stop = service.on('waiting', ({ keys }) => {
      if (!keys.includes(key)) return;
      stop();
      resolve();
    });
  });

/** The new master is found, and asked. */
const renewed = (lock: Lock): Promise<unknown> =>
  eventually(async () => {
    await lock.extend();
  }, ELECTED);

/**
 * A caller whose process does not listen counts as dead. After a fail-over, that is over when its subscriber has found
 * the new master: until then another caller may pass it.
 */
const refused = (service: LockService, key: string): Promise<unknown> =>
  eventually(async () => {
    const joined = await service.tryAcquire(key, SHARED);
    await joined?.release();
    return joined === null ? 'refused' : null;
  });

describe.each([
  ['Sentinel', sentinel],
  ['a Cluster', cluster],
])('a fail-over of %s', (_name, start) => {
  it('to a replica that has all data changes nothing for writers, readers and those who wait', async () => {
    const group = await start();
    const [one, two] = [await processOn(group), await processOn(group)];

    const written = await one.acquire('written');
    const [read, beside] = [await one.acquire('read', SHARED), await two.acquire('read', SHARED)];
    const writes = waits(one, 'read');
    const writer = one.acquire('read', { wait: 'forever' });
    const write = outcomeOf(writer);
    await writes;

    const all = [written, read, beside];
    const before = all.map((lock) => lock.fencingToken);
    await replicated(group);
    await group.failOver();

    for (const lock of all) await renewed(lock);
    expect(write.ended).toBe('pending');
    expect(all.map(({ isHeld }) => isHeld)).toEqual(all.map(() => true));
    expect(all.map((lock) => lock.fencingToken)).toEqual(before);
    // Readers stand behind a writer.
    await refused(two, 'read');
    expect(await two.tryAcquire('written', SHARED)).toBeNull();

    expect(await beside.release()).toBe(true);
    expect(write.ended).toBe('pending');
    expect(await read.release()).toBe(true);
    const alone = await writer;
    expect(alone.fencingToken).toBeGreaterThan(read.fencingToken);

    for (const lock of [written, alone]) expect(await lock.release()).toBe(true);
    for (const key of ['written', 'read'])
      expect(await two.run(key, { wait: 0 }, () => key)).toBe(key);
  }, 120_000);

  it('to a replica that missed the last requests ends the locks that it does not know, and no others', async () => {
    const group = await start();
    const [one, two] = [await processOn(group), await processOn(group)];

    const reader = await two.acquire('kept', SHARED);
    await replicated(group);
    await cutReplication(group);
    const writes = waits(one, 'kept');
    const writer = one.acquire('kept', { wait: 'forever' });
    await writes;
    const forgotten = await one.acquire('forgotten');
    const forgottenReader = await two.acquire('forgotten too', SHARED);

    await group.failOver();
    await renewed(reader);

    // The place in line was forgotten, and the lock was not.
    expect(await reader.release()).toBe(true);
    const alone = await writer;
    expect(alone.isHeld).toBe(true);
    expect(await two.tryAcquire('kept', SHARED)).toBeNull();

    // Nothing is known of them.
    for (const lock of [forgotten, forgottenReader]) {
      await expect(lock.extend()).rejects.toThrow(LockLostError);
      expect(lock.isHeld).toBe(false);
      const next = await two.acquire(lock.keys, { wait: 0 });
      expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
      await next.release();
    }
    expect(await alone.release()).toBe(true);
    expect(await two.run('kept', { wait: 0 }, () => 'free')).toBe('free');
  }, 150_000);
});
