import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LockError, LockService } from 'nestjs-holdfast';
import { eventually } from '../../support/eventually.js';
import { RedisSentinel } from '../../support/redis-sentinel.js';
import { storedKeys } from './stored-keys.js';
import { describeStore } from './suite.js';

describeStore('Redis behind Sentinel', async () => {
  const group = await RedisSentinel.start();
  return {
    options: { redis: { sentinels: group.sentinels, name: group.name } },
    storedKeys: () => storedKeys([group.master]),
    close: () => group.stop(),
  };
});

describe('a fail-over of Sentinel', () => {
  let group: RedisSentinel;
  let holder: LockService;
  let waiter: LockService;

  beforeAll(async () => {
    group = await RedisSentinel.start();
    const redis = { sentinels: group.sentinels, name: group.name };
    [holder, waiter] = [new LockService({ redis }), new LockService({ redis })];
    await Promise.all([holder.open(), waiter.open()]);
  }, 60_000);

  afterAll(async () => {
    await Promise.all([holder.shutdown(0), waiter.shutdown(0)]);
    await group.stop();
  });

  it('after a fail-over every wait ends, the service works again, and fencing tokens grow', async () => {
    const before = await holder.run('resource', ({ fencingToken }) => fencingToken);
    await holder.acquire('held', { ttl: '60s', autoExtend: false });
    const waits = [
      waiter.acquire('held', { wait: '2s' }),
      waiter.acquire('held', { wait: '20s' }),
    ].map((wait) =>
      wait.then(
        (lock) => lock.release(),
        (error: unknown) => error,
      ),
    );

    // Else the new master may not know it, and the first who waits gets it.
    await eventually(async () =>
      expect(await group.replica.command('EXISTS', 'lock:held')).toBe(1),
    );
    await group.failOver();

    const after = await eventually(
      () => holder.run('resource', ({ fencingToken }) => fencingToken),
      {
        withinMs: 20_000,
      },
    );
    expect(after).toBeGreaterThan(before);
    // Its wait is over while the lock is held, also where the fail-over took less time than that.
    expect(await waits[0]).toBeInstanceOf(LockError);
    await holder.forceRelease('held');
    const long = await waits[1];
    // Granted, unless the wait was over before the new master was found.
    expect(long === true || long instanceof LockError).toBe(true);
    expect(await waiter.run('held', { wait: '20s' }, () => 'works')).toBe('works');
  }, 60_000);
});
