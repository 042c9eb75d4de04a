import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LockLostError, LockStoreUnavailableError } from '../../lib/errors.js';
import type { LockModuleOptions } from '../../lib/options/lock-module-options.js';
import { eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';

const closings: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

/** Its leases outlast the test, so that what ends them is what it is about. */
async function opened(options: LockModuleOptions): Promise<Locks> {
  const locks = new Locks({ ttl: '60s', ...options });
  closings.push(() => locks.shutdown(0));
  await locks.open();
  return locks;
}

async function started(options?: Parameters<typeof RedisServer.start>[0]): Promise<RedisServer> {
  const server = await RedisServer.start(options);
  closings.push(() => server.stop());
  return server;
}

const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-data-'));
  closings.push(() => rmSync(folder, { recursive: true }));
  return folder;
};

describe('a server that comes back with what was on its disk', () => {
  it('a server with the data of its disk has lost the locks of the last moment, and only these', async () => {
    const [folder, saved] = [newFolder(), newFolder()];
    const config = { dir: folder, appendonly: 'yes', appendfsync: 'everysec' };
    const server = await started({ config });
    const [one, other] = [await opened({ redis: server.url }), await opened({ redis: server.url })];

    const kept = await one.acquire('kept');
    cpSync(folder, saved, { recursive: true });
    const lost = await one.acquire('lost');
    await server.kill();
    // As after a loss of power: what the system had not written yet is gone.
    rmSync(folder, { recursive: true });
    cpSync(saved, folder, { recursive: true });
    await server.restart();

    const lock = await other.acquire('lost', { wait: '20s' });
    expect(lock.fencingToken).toBeGreaterThan(lost.fencingToken);
    await expect(lost.extend()).rejects.toThrow(LockLostError);
    expect(await other.tryAcquire('kept')).toBeNull();
    await kept.extend();
    expect(await kept.release()).toBe(true);
    expect(await lock.release()).toBe(true);
  });
});

describe('a place in line that came back with older data', () => {
  it.each([{}, { mode: 'shared' }, { limit: 2 }] as const)(
    'does not shorten the lock that its caller has by now: %p',
    async (how) => {
      const server = await started();
      const [one, other] = [
        await opened({ redis: server.url }),
        await opened({ redis: server.url }),
      ];
      const lock = await one.acquire('key', how);
      const [member] = (await server.command(
        'ZRANGE',
        '{lock:key}:holders',
        '0',
        '-1',
      )) as string[];
      const token = member ?? (await server.command('GET', 'lock:key'));
      const listening = new Redis(server.url);
      closings.push(() => {
        listening.disconnect();
      });
      await listening.subscribe('waiting');
      await server.command('ZADD', '{lock:key}:queue', '1', `${String(token)} 1000 waiting`);
      expect(await other.tryAcquire('key')).toBeNull();
      expect(await server.command('EXISTS', '{lock:key}:queue')).toBe(0);
      expect(await server.command('PTTL', 'lock:key')).toBeGreaterThan(30_000);
      await lock.extend();
      expect(await lock.release()).toBe(true);
    },
  );
});

describe('a master that goes on, although another one has taken its place', () => {
  /** Another master, and the old one, which nobody has told. */
  async function split(
    options: LockModuleOptions = {},
  ): Promise<{ old: RedisServer; present: RedisServer; minority: Locks; majority: Locks }> {
    const old = await started();
    const present = await started({ replicaOf: old });
    const minority = await opened({ redis: old.url, ...options });
    await present.command('REPLICAOF', 'NO', 'ONE');
    await eventually(async () =>
      expect(await old.command('INFO', 'replication')).toContain('connected_slaves:0'),
    );
    return { old, present, minority, majority: await opened({ redis: present.url }) };
  }

  it('an old master grants the same locks as the new one, until it is demoted: then its holders lose them', async () => {
    const { old, present, minority, majority } = await split();
    const lost = await minority.acquire('key');
    const lock = await majority.acquire('key');
    expect([lost.isHeld, lock.isHeld]).toEqual([true, true]);

    await old.command('REPLICAOF', '127.0.0.1', String(present.port));
    await eventually(async () =>
      expect(await old.command('GET', 'lock:key')).toBe(await present.command('GET', 'lock:key')),
    );
    await expect(lost.extend()).rejects.toThrow(LockLostError);
    expect(await lock.release()).toBe(true);
  });

  it('grants nothing where replicas have to acknowledge it', async () => {
    const { minority, majority } = await split({ replicas: { ack: 1, timeout: 100 } });
    await expect(minority.tryAcquire('key')).rejects.toThrow(LockStoreUnavailableError);
    expect(await (await majority.acquire('key')).release()).toBe(true);
  });
});
