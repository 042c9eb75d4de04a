import { describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from 'nestjs-holdfast';
import { masters, memory, oneRedis, threeMasterCluster } from './backends.js';
import { describeDetached } from './detach-suite.js';
import { servicesOn } from './services.js';

describeDetached('a memory store', { limits: true }, memory);
describeDetached('one Redis', { limits: true }, oneRedis);
describeDetached('a Redis Cluster of three masters', { limits: true }, threeMasterCluster);

describe('over several masters', () => {
  const services = servicesOn(() => masters(3));
  const one = servicesOn(oneRedis);

  it('no lock is detached, nor attached, and the lock stays held', async () => {
    const locks = await services.newService();
    const lock = await locks.acquire('key');
    await expect(lock.detach()).rejects.toThrow(LockConfigurationError);
    await expect(lock.detach()).rejects.toThrow(
      /^Locks are detached on one Redis, and option "redis" lists 3: /,
    );
    expect(lock.isHeld).toBe(true);
    expect(await lock.release()).toBe(true);
    const elsewhere = await one.newService();
    const text = await (await elsewhere.acquire('key')).detach();
    await expect(locks.attach(text)).rejects.toThrow(/lists 3: /);
    await (await elsewhere.attach(text)).release();
  });
});
