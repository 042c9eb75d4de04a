import { beforeEach, describe, expect, it } from '@jest/globals';
import { LockConfigurationError, type LockService } from 'nestjs-holdfast';
import { LockingWorker } from 'nestjs-holdfast/worker';
import { masters, oneRedis } from './backends.js';
import { servicesOn } from './services.js';

const ONE_REDIS =
  /needs one Redis, and option "redis" lists 3 masters, over which locks are exclus/;

describe('over several masters', () => {
  const services = servicesOn(() => masters(3));
  const elsewhere = servicesOn(oneRedis);
  let locks: LockService;

  beforeEach(async () => {
    locks = await services.newService();
  });

  it.each<[string, () => unknown]>([
    ['a shared lock', () => locks.acquire('key', { mode: 'shared' })],
    ['a limited lock', () => locks.tryRun('key', { limit: 3 }, () => 'ran')],
    ['a limiter', () => locks.limiter('key', { limit: 3 })],
    ['work that is done once', () => locks.runOnce('key', () => 'ran')],
    ['a LockingWorker', () => new LockingWorker(locks, { lockKey: 'key' }).acquire()],
  ])('%s is refused before anybody asks a master', async (_what, ask) => {
    const refusal = await new Promise((resolve) => resolve(ask())).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(LockConfigurationError);
    expect((refusal as Error).message).toMatch(ONE_REDIS);
    expect(await services.stored('key')).toEqual([]);
  });

  it('guarded() and detach() are refused, and the lock stays held', async () => {
    const lock = await locks.acquire('key');
    await expect(lock.guarded([['set', 'a', 1]])).rejects.toThrow(ONE_REDIS);
    await expect(lock.detach()).rejects.toThrow(ONE_REDIS);
    expect(lock.isHeld).toBe(true);
    expect(await lock.release()).toBe(true);
  });

  it('no lock is attached that was detached elsewhere', async () => {
    const one = await elsewhere.newService();
    const text = await (await one.acquire('key')).detach();
    await expect(locks.attach(text)).rejects.toThrow(ONE_REDIS);
    await (await one.attach(text)).release();
  });
});
