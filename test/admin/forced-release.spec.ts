import { describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-holdfast';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';

describe('a forced release', () => {
  it('lets the first in line have the key, whichever process releases it, and nobody after that', async () => {
    const server = await RedisServer.start();
    const services = [1, 2, 3].map(() => new LockService({ redis: server.url }));
    const [one, two, three] = services as [LockService, LockService, LockService];
    try {
      await Promise.all(services.map((service) => service.open()));
      const admin = new LockAdmin(one);
      await eventually(async () => {
        const instances = await admin.instances();
        return instances.filter(({ isListening }) => isListening).length === services.length;
      });
      for (const operator of services) {
        const key = `order:${String(services.indexOf(operator))}`;
        const inLine = (count: number): Promise<boolean> =>
          eventually(async () => (await admin.describe(key)).line.length === count);
        await one.acquire(key, { ttl: '1h' });
        const granted: string[] = [];
        const waits = [two, three].map(async (service, index) => {
          await inLine(index);
          const lock = await service.acquire(key, { wait: '30s' });
          granted.push(service === two ? 'first' : 'second');
          return lock;
        });
        await inLine(2);
        expect(await operator.forceRelease(key, { reason: 'stuck', by: 'ada' })).toBe(true);
        const lock = await Promise.race(waits);
        await lock.extend();
        expect(granted).toEqual(['first']);
        await lock.release();
        for (const wait of waits) await (await wait).release();
      }
    } finally {
      await Promise.all(services.map((service) => service.shutdown(0)));
      await server.stop();
    }
  }, 60_000);
});
