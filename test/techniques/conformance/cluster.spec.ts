import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import { Cluster } from 'ioredis';
import { LockService, LockStoreUnavailableError } from 'nestjs-holdfast';
import { detailOf } from '../../support/detail.js';
import { eventually } from '../../support/eventually.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { threeMasterCluster } from './backends.js';
import { describeStore } from './suite.js';

describeStore('a Redis Cluster of three masters', threeMasterCluster);

describe('a Redis Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let locks: LockService;

  beforeAll(async () => {
    cluster = await RedisCluster.start();
    client = new Cluster(cluster.startupNodes, { lazyConnect: true });
    locks = new LockService({ redis: client, nodeTimeout: 500 });
    await locks.open();
  }, 60_000);

  afterAll(async () => {
    await locks.shutdown();
    client.disconnect();
    await cluster.stop();
  });

  /** Keys of which each is served by another master. */
  const keysOfAllMasters = async (): Promise<readonly string[]> => {
    const keys = new Map<number, string>();
    for (let number = 0; keys.size < cluster.nodes.length; number += 1) {
      const key = `order:${String(number)}`;
      const { port } = await cluster.masterOf(`lock:${key}`);
      if (!keys.has(port)) keys.set(port, key);
    }
    return [...keys.values()].sort();
  };

  it('TR-52 locks several keys of different slots and masters together', async () => {
    const keys = await keysOfAllMasters();
    const slots = new Set(keys.map((key) => calculateSlot(`lock:${key}`)));
    expect(slots.size).toBe(keys.length);

    const lock = await locks.acquire(keys);
    for (const key of keys) expect(await locks.tryAcquire(key)).toBeNull();
    await lock.extend();
    expect(await lock.release()).toBe(true);
  });

  it('TR-52 says that it is not available, and keeps none of the keys, when the master of one does not answer', async () => {
    const keys = await keysOfAllMasters();
    const [first, ...others] = keys;
    const last = others.at(-1);
    const silent = await cluster.masterOf(`lock:${String(last)}`);
    silent.freeze();
    try {
      const refusal = await locks.acquire(keys, { wait: 0 }).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(LockStoreUnavailableError);
      expect(detailOf(refusal)).not.toMatch(/CROSSSLOT|quorum/i);
      await eventually(async () => !(await locks.inspect(String(first))).held);
      expect(await locks.run(String(first), () => 'works')).toBe('works');
    } finally {
      silent.thaw();
    }
    expect(await locks.run(keys, { wait: '20s' }, () => 'works again')).toBe('works again');
  });
});
