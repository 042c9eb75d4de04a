import { describe, expect, it } from '@jest/globals';
import { LockService } from 'nestjs-holdfast';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { memory, oneRedis } from '../conformance/backends.js';
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
      for (const [id, record] of Object.entries({ a: 'null', b: '{"id":7}', c: '{' })) {
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
          waiting: 0,
          remainingMs: Infinity,
        },
      ]);
      const { holders, audit } = await admin.describe('foreign');
      expect(holders).toEqual([{ isForeign: true, isSilent: false, remainingMs: Infinity }]);
      expect(audit).toEqual([]);
      expect((await admin.instances()).map(({ pid }) => pid)).toEqual([process.pid]);
      expect(await admin.release('foreign', { reason: 'left behind' })).toBe(true);
      expect(await server.command('EXISTS', 'lock:foreign')).toBe(0);
      expect(await admin.audit()).toMatchObject([{ keys: ['foreign'], reason: 'left behind' }]);
    } finally {
      await locks.shutdown();
      await server.stop();
    }
  });
});
