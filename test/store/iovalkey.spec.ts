import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster, Redis } from 'iovalkey';
import { LockService, LockStoreUnavailableError, type LockModuleOptions } from 'nestjs-holdfast';
import { eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisSentinel } from '../support/redis-sentinel.js';
import { RedisServer } from '../support/redis-server.js';

const ELECTED = { withinMs: 25_000 };

let closings: (() => unknown)[] = [];

beforeAll(() => {
  Logger.overrideLogger(false);
});

afterEach(async () => {
  for (const close of closings.reverse()) await close();
  closings = [];
});

async function open(redis: Redis | Cluster, options: LockModuleOptions = {}): Promise<LockService> {
  const service = new LockService({
    ...options,
    redis: redis,
  });
  closings.push(() => service.shutdown(0));
  await service.open();
  return service;
}

async function expectPassedOn(client: () => Redis | Cluster): Promise<void> {
  const [one, other] = [await open(client()), await open(client())];
  for (const key of ['a', 'b', 'c', 'd']) {
    const lock = await one.acquire(key);
    await lock.extend();
    const waiting = other.acquire(key, { wait: '25s' });
    await lock.release();
    await (await waiting).release();
  }
}

describe('locks over clients of iovalkey', () => {
  it('are passed on with one server', async () => {
    const server = await RedisServer.start();
    closings.push(() => server.stop());
    await expectPassedOn(() => new Redis(server.url, { lazyConnect: true }));
  });

  it('report a wrong password, and a reply that is an error', async () => {
    const server = await RedisServer.start();
    closings.push(() => server.stop());
    const options = { port: server.port, username: 'nobody', password: 'wrong-password' };
    const service = await open(new Redis({ ...options, lazyConnect: true }));
    const error: unknown = await service.acquire('key').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockStoreUnavailableError);
    expect((error as LockStoreUnavailableError).nodes[0]).toMatchObject({
      kind: 'error',
      message: expect.stringContaining('WRONGPASS'),
    });
  });

  it('survive a fail-over of Sentinel', async () => {
    const group = await RedisSentinel.start();
    closings.push(() => group.stop());
    const { name, sentinels } = group;
    const service = await open(new Redis({ name, sentinels, lazyConnect: true }));
    expect(await service.run('key', () => 1)).toBe(1);
    await group.failOver();
    expect(await service.run('key', { wait: '25s' }, () => 2)).toBe(2);
  }, 120_000);

  it('are passed on with a Cluster', async () => {
    const cluster = await RedisCluster.start({ masters: 2 });
    closings.push(() => cluster.stop());
    await expectPassedOn(() => new Cluster(cluster.startupNodes, { lazyConnect: true }));
  }, 90_000);

  it('reach the successor of a master that died, after a request that fails', async () => {
    const cluster = await RedisCluster.start({ masters: 3, replicas: 3 });
    closings.push(() => cluster.stop());
    const service = await open(
      new Cluster(cluster.startupNodes, { lazyConnect: true, slotsRefreshInterval: 0 }),
      { instance: false },
    );
    await service.run('key', () => undefined);
    const master = await cluster.masterOf('lock:key');
    await master.kill();
    await eventually(async () => (await cluster.masterOf('lock:key')) !== master, ELECTED);
    await expect(service.tryAcquire('key')).rejects.toThrow(LockStoreUnavailableError);
    await eventually(() => service.tryAcquire('key'));
  }, 90_000);
});
