import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster } from 'ioredis';
import { LockService, type LockModuleOptions } from 'nestjs-holdfast';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';

let ends: (() => unknown)[] = [];
let logged: string[] = [];

beforeEach(() => {
  logged = [];
  const log = (message: unknown): void => void logged.push(String(message));
  Logger.overrideLogger({ log, error: log, warn: log });
});

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
  Logger.overrideLogger(false);
});

async function start(): Promise<RedisServer> {
  const server = await RedisServer.start();
  ends.push(() => server.stop());
  return server;
}

async function open(options: LockModuleOptions): Promise<LockService> {
  const service = new LockService(options);
  ends.push(() => service.shutdown(0));
  await service.open();
  return service;
}

describe('track record: names of our own', () => {
  const KEYS = ['epoch', 'health', 'probe'];

  it.each(['lock:', '{app}:', ''])(
    'I10-7 with the prefix "%s", a start and a health check leave the locks of "health", "probe" and "epoch" alone',
    async (keyPrefix) => {
      const server = await start();
      const restartGuard = { maxTtl: 60_000, bootstrap: true };
      const options = { redis: server.url, keyPrefix, restartGuard };
      const lock = await (await open(options)).acquire(KEYS, { ttl: '60s', autoExtend: false });
      const other = await open(options);
      expect(await other.health()).toMatchObject({ hasQuorum: true });
      for (const key of KEYS) {
        expect(await server.command('PTTL', keyPrefix + key)).toBeGreaterThan(30_000);
        expect(await other.tryAcquire(key)).toBeNull();
      }
      expect(await lock.release()).toBe(true);
    },
  );

  it('I10-7 on a Cluster, too', async () => {
    const cluster = await RedisCluster.start();
    ends.push(() => cluster.stop());
    const redis = new Cluster(cluster.startupNodes, { lazyConnect: true });
    const lock = await (await open({ redis })).acquire(KEYS, { ttl: '60s', autoExtend: false });
    const other = await open({ redis });
    expect(await other.health()).toMatchObject({ hasQuorum: true });
    for (const key of KEYS) expect(await other.tryAcquire(key)).toBeNull();
    expect(await lock.release()).toBe(true);
  }, 60_000);
});
