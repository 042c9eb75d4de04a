import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster } from 'ioredis';
import { LockLostError, LockService, type Lock, type LockModuleOptions } from 'nestjs-holdfast';
import { eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisSentinel } from '../support/redis-sentinel.js';
import type { RedisServer } from '../support/redis-server.js';

/** One master and its replica, with what it takes for the replica to be promoted. */
interface Group {
  readonly options: () => LockModuleOptions;
  readonly servers: () => Promise<{ readonly master: RedisServer; readonly replica: RedisServer }>;
  readonly failOver: () => Promise<void>;
}

const SHARED = { mode: 'shared' } as const;
const UPGRADEABLE = { mode: 'upgradeable' } as const;
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

/** Looks all the time whether a lock is alone, as it believes, beside a reader that believes to read. */
function watchBeliefs(pairs: Readonly<Record<string, readonly [Lock, Lock]>>): readonly string[] {
  const overlaps: string[] = [];
  const timer = setInterval(() => {
    for (const [name, [lock, reader]] of Object.entries(pairs)) {
      if (lock.mode === 'exclusive' && lock.isHeld && reader.isHeld) overlaps.push(name);
    }
  }, 5);
  ends.push(() => {
    clearInterval(timer);
  });
  return overlaps;
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

async function upgrading(service: LockService, lock: Lock): Promise<Outcome> {
  const waiting = waits(service, String(lock.keys[0]));
  const outcome = outcomeOf(lock.upgrade({ wait: 'forever' }));
  await waiting;
  return outcome;
}

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
  it('to a replica that has all data changes nothing for upgrades and their readers', async () => {
    const group = await start();
    const [one, two] = [await processOn(group), await processOn(group)];

    const waiting = await one.acquire('waiting', UPGRADEABLE);
    const reader = await two.acquire('waiting', SHARED);
    const upgrade = await upgrading(one, waiting);
    const upgraded = await one.acquire('upgraded', UPGRADEABLE);
    await upgraded.upgrade();
    const downgraded = await one.acquire('downgraded');
    await downgraded.downgrade({ to: 'upgradeable' });
    const beside = await two.acquire('downgraded', SHARED);
    const read = await two.acquire('read', SHARED);
    const writes = waits(one, 'read');
    const writer = one.acquire('read', { wait: 'forever' });
    const write = outcomeOf(writer);
    await writes;

    const overlaps = watchBeliefs({
      waiting: [waiting, reader],
      downgraded: [downgraded, beside],
    });
    const before = [waiting, upgraded, downgraded, reader, read].map((lock) => lock.fencingToken);
    await replicated(group);
    await group.failOver();

    const all = [upgraded, downgraded, reader, beside, read];
    for (const lock of all) await renewed(lock);
    expect([upgrade.ended, write.ended]).toEqual(['pending', 'pending']);
    expect(all.map(({ isHeld }) => isHeld)).toEqual(all.map(() => true));
    expect([waiting, upgraded, downgraded].map(({ mode }) => mode)).toEqual([
      'upgradeable',
      'exclusive',
      'upgradeable',
    ]);
    expect([waiting, upgraded, downgraded, reader, read].map((lock) => lock.fencingToken)).toEqual(
      before,
    );
    // Readers stand behind an upgrade that waits, and behind a writer.
    await refused(two, 'waiting');
    await refused(two, 'read');
    expect(await two.tryAcquire('upgraded', SHARED)).toBeNull();
    expect(await two.tryAcquire('downgraded')).toBeNull();

    expect(await reader.release()).toBe(true);
    expect(await upgrade.end).toBe('done');
    expect([waiting.mode, waiting.isHeld]).toEqual(['exclusive', true]);
    expect(waiting.fencingToken).toBeGreaterThan(reader.fencingToken);
    expect(await two.tryAcquire('waiting', SHARED)).toBeNull();

    const again = await upgrading(one, downgraded);
    expect(await beside.release()).toBe(true);
    expect(await again.end).toBe('done');
    expect(await read.release()).toBe(true);
    const alone = await writer;
    expect(alone.fencingToken).toBeGreaterThan(read.fencingToken);

    for (const lock of [waiting, upgraded, downgraded, alone])
      expect(await lock.release()).toBe(true);
    for (const key of ['waiting', 'upgraded', 'downgraded', 'read'])
      expect(await two.run(key, { wait: 0 }, () => key)).toBe(key);
    expect(overlaps).toEqual([]);
  }, 120_000);

  it('to a replica that missed the last requests ends the locks that it does not know, and no others', async () => {
    const group = await start();
    const [one, two] = [await processOn(group), await processOn(group)];

    const waiting = await one.acquire('waiting', UPGRADEABLE);
    const reader = await two.acquire('waiting', SHARED);
    const upgraded = await one.acquire('upgraded', UPGRADEABLE);
    const earlier = await two.acquire('upgraded', SHARED);
    const kept = await one.acquire('kept', UPGRADEABLE);
    await replicated(group);
    await cutReplication(group);
    const upgrade = await upgrading(one, waiting);
    await earlier.release();
    await upgraded.upgrade();
    await kept.upgrade();
    const forgotten = await one.acquire('forgotten', UPGRADEABLE);
    const forgottenReader = await two.acquire('forgotten', SHARED);
    const forgottenUpgrade = await upgrading(one, forgotten);

    const overlaps = watchBeliefs({
      waiting: [waiting, reader],
      forgotten: [forgotten, forgottenReader],
    });
    await group.failOver();
    await renewed(reader);

    // The place in line was forgotten, and the lock was not.
    expect(upgrade.ended).toBe('pending');
    expect(await reader.release()).toBe(true);
    expect(await upgrade.end).toBe('done');
    expect([waiting.mode, waiting.isHeld]).toEqual(['exclusive', true]);
    expect(await two.tryAcquire('waiting', SHARED)).toBeNull();

    // The new master knows them as they were before the upgrade: a renewal shows it.
    for (const lock of [upgraded, kept]) {
      await expect(lock.extend()).rejects.toMatchObject({ reason: 'stolen' });
      expect(lock.isHeld).toBe(false);
    }

    // Nothing is known of it.
    expect(await forgottenUpgrade.end).toBeInstanceOf(LockLostError);
    expect(forgotten.isHeld).toBe(false);
    await expect(forgottenReader.extend()).rejects.toThrow(LockLostError);
    const next = await two.acquire('forgotten', { wait: 0 });
    expect(next.fencingToken).toBeGreaterThan(forgotten.fencingToken);
    await next.release();
    expect(overlaps).toEqual([]);

    // What the new master knows of the readers and upgradeable locks of before ends with their leases.
    expect(await waiting.release()).toBe(true);
    expect(await two.run('waiting', { wait: 0 }, () => 'free')).toBe('free');
    for (const { keys } of [upgraded, kept]) {
      expect(await two.run(keys, { wait: TTL_MS + 5_000 }, () => 'free')).toBe('free');
    }
  }, 150_000);
});
