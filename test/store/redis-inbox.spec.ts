import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService } from 'nestjs-holdfast';
import { LockAdmin } from 'nestjs-holdfast/admin';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/** Much less than the TTL that a waiter would otherwise sleep for, and the pace of polling with room for a busy machine. */
const SOON_MS = 5_000;

let server: RedisServer;
let services: LockService[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
});

afterEach(async () => {
  await Promise.all(services.map((service) => service.shutdown(0)));
  services = [];
});

afterAll(async () => {
  await server.stop();
});

function serviceAt(redis: string): LockService {
  const service = new LockService({ redis, ttl: '60s' });
  services.push(service);
  return service;
}

const subscribers = async (): Promise<string> =>
  String(await server.command('CLIENT', 'LIST', 'TYPE', 'pubsub'));

describe('the ear of a process', () => {
  it('that cannot be opened again makes those who wait look by themselves', async () => {
    await server.command('ACL', 'SETUSER', 'hearing', 'on', '>secret', '~*', '&*', '+@all');
    const waiter = serviceAt(`redis://hearing:secret@127.0.0.1:${String(server.port)}`);
    const holder = serviceAt(server.url);
    const lock = await holder.acquire('deaf');
    const waiting = waiter.acquire('deaf', { wait: '50s' });
    await eventually(async () => (await subscribers()).includes('sub=1'));

    await server.command('ACL', 'SETUSER', 'hearing', '-subscribe');
    await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(async () => !(await subscribers()).includes('sub=1'));
    const since = performance.now();
    await lock.release();
    await (await waiting).release();
    expect(performance.now() - since).toBeLessThan(SOON_MS);
  });

  it('that is closed asks no instance, whose reply could not arrive', async () => {
    await server.command('ACL', 'SETUSER', 'hearing', 'on', '>secret', '~*', '&*', '+@all');
    const operator = serviceAt(`redis://hearing:secret@127.0.0.1:${String(server.port)}`);
    const holder = serviceAt(server.url);
    await Promise.all([operator.open(), holder.open()]);
    const lock = await holder.acquire('asked');
    const admin = new LockAdmin(operator);
    const asked = async (): Promise<boolean> => {
      const sent = await server.commandsSentDuring(() => admin.describe('asked'));
      return sent.some(([name, , message = '']) => name === 'publish' && message.includes('"ask"'));
    };
    await eventually(async () => {
      expect(await asked()).toBe(true);
      const [found] = (await admin.describe('asked')).holders;
      expect(found?.fencingToken).toBe(lock.fencingToken);
    });

    await server.command('ACL', 'SETUSER', 'hearing', '-subscribe');
    await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(async () => !(await asked()));
  });

  it('that is cut off in the moment it opens is opened again', async () => {
    const proxy = await TcpProxy.start(server.port);
    try {
      const waiter = serviceAt(`redis://127.0.0.1:${String(proxy.port)}`);
      const holder = serviceAt(server.url);
      const lock = await holder.acquire('half open');
      // Held back: the trial PUBLISH goes over this connection, while the subscriber has been answered.
      proxy.delay(40);
      const first = waiter.acquire('half open', { wait: 1_500 }).catch(() => undefined);
      await eventually(async () => (await subscribers()).includes('sub=1'));
      await server.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await first;
      proxy.delay(0);

      const waiting = waiter.acquire('half open', { wait: '50s' });
      await eventually(
        async () => Number(await server.command('ZCARD', '{lock:half open}:queue')) === 1,
      );
      const since = performance.now();
      await lock.release();
      await (await waiting).release();
      expect(performance.now() - since).toBeLessThan(SOON_MS);
    } finally {
      await Promise.all(services.splice(0).map((service) => service.shutdown(0)));
      await proxy.stop();
    }
  });
});
