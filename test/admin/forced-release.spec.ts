import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockService } from 'nestjs-holdfast';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { deferred, eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';

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

  it('ends when its service shuts down while a holder is asked that does not reply', async () => {
    const server = await RedisServer.start();
    const proxy = await TcpProxy.start(server.port);
    const frozen = new LockService({ redis: `redis://127.0.0.1:${String(proxy.port)}` });
    const operator = new LockService({ redis: server.url });
    const messages = new Redis(server.url);
    try {
      await Promise.all([frozen.open(), operator.open()]);
      const admin = new LockAdmin(operator);
      await eventually(async () => {
        const instances = await admin.instances();
        return instances.filter(({ isListening }) => isListening).length === 2;
      });
      await frozen.acquire('order:42', { ttl: '1h' });
      let questions = 0;
      const areAsked = deferred();
      messages.on('pmessage', (_pattern, _channel, text: string) => {
        if (text.includes('"type":"ask"') && (questions += 1) === 3) areAsked.resolve();
      });
      await messages.psubscribe('*');
      proxy.pause();
      const calls = [
        operator.forceRelease('order:42', { reason: 'stuck' }),
        operator.getLeader('order:42'),
        admin.describe('order:42'),
      ];
      await areAsked.promise;
      await operator.shutdown(0);
      await Promise.allSettled(calls);
    } finally {
      proxy.cut();
      messages.disconnect();
      await Promise.all([frozen, operator].map((service) => service.shutdown(0)));
      await proxy.stop();
      await server.stop();
    }
  }, 20_000);
});
