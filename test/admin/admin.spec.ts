import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockService } from 'nestjs-holdfast';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { memory, oneRedis } from '../techniques/conformance/backends.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { describeAdmin } from './admin-suite.js';

describeAdmin('a memory store', memory);
describeAdmin('one Redis', oneRedis);

describe('LockAdmin on a Redis that other software writes to', () => {
  it('leaves out what is none of ours, and goes on', async () => {
    const server = await RedisServer.start();
    const locks = new LockService({ redis: server.url });
    await locks.open();
    try {
      const admin = new LockAdmin(locks);
      await server.command('SET', 'lock:foreign', 'somebody');
      await server.command('LPUSH', 'lock:list', 'no lock');
      await server.command('SET', '{lock:text}:queue', 'no queue');
      for (const entry of ['', 'null', '{}', '{"at":1,"action":"release","keys":5}'])
        await server.command('XADD', 'lock:{audit}', '*', 'entry', entry);
      await server.command('XADD', 'lock:{audit}', '*', 'other', 'field');
      for (const [id, record] of Object.entries({
        ...{ a: 'null', b: '{"id":7}', c: '{' },
        // Operators copy the process id into "kill -9".
        d: '{"id":"d","application":"x","host":"x","pid":-1,"startedAtMs":1,"lifeMs":60000}',
      })) {
        await server.command('ZADD', 'lock:{instances}', Date.now(), id);
        await server.command('SET', `lock:{instances}:${id}`, record, 'PX', 60_000);
      }
      const found = [];
      for await (const lock of admin.list()) found.push(lock);
      expect(found).toEqual([
        {
          key: 'foreign',
          state: 'held',
          mode: 'exclusive',
          holders: 1,
          leases: [{ leaseId: expect.any(String) }],
          waiting: 0,
          waitingInstanceIds: [],
          isUnresponsive: false,
          remainingMs: Infinity,
        },
      ]);
      const { holders, audit } = await admin.describe('foreign');
      expect(holders).toEqual([
        {
          leaseId: expect.stringMatching(/^[0-9a-f]{12}$/),
          ...{ isForeign: true, isUnresponsive: false, remainingMs: Infinity },
        },
      ]);
      expect(audit).toEqual([]);
      expect((await admin.instances()).map(({ pid }) => pid)).toEqual([process.pid]);
      const seen = await admin.describe('foreign');
      expect(await admin.release(seen, { reason: 'left behind' })).toEqual({
        status: 'done',
        keys: ['foreign'],
      });
      expect(await server.command('EXISTS', 'lock:foreign')).toBe(0);
      expect(await admin.audit()).toMatchObject([{ keys: ['foreign'], reason: 'left behind' }]);
    } finally {
      await locks.shutdown();
      await server.stop();
    }
  });
});

describe('a client that may only publish and subscribe', () => {
  it('sees no owner token in the messages of operators, and ends no lock by a forged one', async () => {
    const server = await RedisServer.start();
    const services = [1, 2].map(() => new LockService({ redis: server.url }));
    const [one, two] = services as [LockService, LockService];
    const spy = new Redis(server.url);
    const messages: string[] = [];
    spy.on('pmessage', (_pattern, _channel, text: string) => messages.push(text));
    try {
      await Promise.all(services.map((service) => service.open()));
      await spy.psubscribe('*');
      const admin = new LockAdmin(two);
      await eventually(async () => {
        const instances = await admin.instances();
        return instances.filter(({ isListening }) => isListening).length === 2;
      });
      const [ended, kept] = [await one.acquire('ended'), await one.acquire('kept')];
      const tokens = [
        await server.command('GET', 'lock:ended'),
        await server.command('GET', 'lock:kept'),
      ];
      const [holder] = (await admin.describe('kept')).holders;
      await admin.release(await admin.describe('ended'), { reason: 'stuck' });
      expect(ended.isHeld).toBe(false);
      const order = await eventually(
        () => messages.find((text) => text.includes('"about":"end"')) ?? null,
      );
      for (const token of tokens)
        expect(messages.filter((text) => text.includes(String(token)))).toEqual([]);
      const asked = JSON.parse(order) as { question: { leases: { digest: string }[] } };
      const digests = [holder!.leaseId, asked.question.leases[0]!.digest, ...tokens];
      const leases = digests.map((digest) => ({ key: 'kept', digest }));
      const forged = { ...asked, id: 'forged', question: { ...asked.question, leases } };
      const channels = (await server.command('PUBSUB', 'CHANNELS')) as string[];
      for (const channel of channels)
        await server.command('PUBLISH', channel, JSON.stringify(forged));
      // Its answer shows that the forged message was read.
      await eventually(() =>
        messages.some((text) => /"type":"answer","id":"forged".*"unknown"/.test(text)),
      );
      expect(kept.isHeld).toBe(true);
    } finally {
      spy.disconnect();
      await Promise.all(services.map((service) => service.shutdown(0)));
      await server.stop();
    }
  });
});
