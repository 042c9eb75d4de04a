import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockKeyError, LockService, WithLock, type LockModuleOptions } from 'nestjs-holdfast';
import { AcknowledgedWrites } from '../../../lib/store/redis/node/acknowledged-writes.js';
import type { Command, CommandResult } from '../../../lib/store/redis/client/redis-client.js';
import type { RedisConnection } from '../../../lib/store/redis/client/redis-connection.js';
import { script } from '../../../lib/store/redis/scripts/script.js';
import { openStore, request } from '../../store/open-store.js';
import { RedisServer } from '../../support/redis-server.js';
import { watchRejections } from '../../support/scripted-service.js';

let servers: RedisServer[] = [];
let services: LockService[] = [];

beforeAll(async () => {
  Logger.overrideLogger(false);
  servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
});

afterEach(async () => {
  await Promise.all(services.map((service) => service.shutdown(0)));
  services = [];
});

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

async function open(options: LockModuleOptions): Promise<LockService> {
  const service = new LockService(options);
  services.push(service);
  await service.open();
  return service;
}

const keysOf = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `key:${String(index)}`);

class Orders {
  @WithLock((ids: readonly string[]) => ids)
  ship(ids: readonly string[]): Promise<number> {
    return Promise.resolve(ids.length);
  }
}

/** More arguments than one call of a function can take. */
const TOO_MANY = keysOf(150_000);

describe('many keys in one call', () => {
  it.each([1, 3])(
    'HF-14 1,001 keys are refused with an error that says why and what to do (%d nodes)',
    async (nodes) => {
      const locks = await open({ redis: servers.slice(0, nodes).map(({ url }) => url) });
      const orders = locks.bind(new Orders());
      const work = (): string => 'done';
      const keys = keysOf(1_001);
      for (const call of [
        () => locks.acquire(keys),
        () => locks.tryAcquire(keys),
        () => locks.run(keys, work),
        () => locks.tryRun(keys, work),
        () => orders.ship(keys),
        () => locks.acquire(TOO_MANY),
      ]) {
        const error: unknown = await call().catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(LockKeyError);
        const { detail } = error as LockKeyError;
        expect(detail).toMatch(
          /locks at most 1000 keys, and this one names \d+\. Redis .* in one step/,
        );
        expect(detail).toMatch(/do the work in batches/);
      }
      // One key in a list is one key, however often it stands there.
      await expect(locks.run([...keysOf(1_000), 'key:1'], work)).resolves.toBe('done');
      await expect(locks.run('key:1', { wait: 0 }, work)).resolves.toBe('done');
    },
  );

  it.each([1, 3])('HF-14 a request that cannot be sent is an outcome (%d nodes)', async (nodes) => {
    const rejections = watchRejections();
    const { store } = await openStore({ redis: servers.slice(0, nodes).map(({ url }) => url) });
    try {
      const commands = TOO_MANY.map((key) => ['del', key] as const);
      const outcome = await store.write({ ...request('key:1'), keys: ['key:1'], commands });
      expect(outcome).toMatchObject({ status: 'unavailable', transient: false });
      const [failure] = outcome.status === 'unavailable' ? outcome.nodes : [];
      expect(failure).toMatchObject({
        kind: 'error',
        message: expect.stringMatching(/^could not be sent: /),
      });
      await expect(store.acquire(request('key:1'))).resolves.toMatchObject({ status: 'granted' });
    } finally {
      await store.close();
      await Promise.all(servers.map((server) => server.command('FLUSHALL')));
    }
    await rejections.expectNone();
  });

  it('HF-14 writes for replicas go out a thousand at a time, however many there are', async () => {
    const sizes: number[] = [];
    const pipeline = (commands: readonly Command[]): Promise<readonly CommandResult[]> => {
      const scripts = commands.filter(([name]) => name === 'evalsha');
      sizes.push(scripts.length);
      return Promise.resolve([...scripts.map(() => [null, 'written'] as const), [null, 1]]);
    };
    const connection: object = {
      client: { pipeline },
      ask: async (_: number, ask: (connection: unknown, limit: unknown) => Promise<unknown>) => ({
        status: 'answered',
        value: await ask(connection, { isOver: false }),
      }),
    };
    const writes = new AcknowledgedWrites(connection as unknown as RedisConnection, {
      ack: 1,
      timeoutMs: 50,
    });
    const write = () =>
      writes.run(0, { script: script('return 1'), call: [1, 'key'], timeLimitMs: 60_000 });
    const replies = await Promise.all(Array.from({ length: 5_000 }, write));
    expect(replies.every(({ status }) => status === 'answered')).toBe(true);
    expect(Math.max(...sizes)).toBe(1_000);
  });
});
