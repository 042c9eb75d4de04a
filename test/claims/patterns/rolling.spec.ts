import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger, type INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { LockNotAcquiredError } from 'nestjs-holdfast';
import { deferred } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { ExecutionError, Redlock } from '../interop/redlock.js';
import { recipesOf } from './recipe-pages.js';
import { lockModule, Payments, work } from './rolling.js';

let server: RedisServer;
let client: Redis;
let redlock: Redlock;
let app: INestApplicationContext;

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
});

beforeEach(async () => {
  await server.command('FLUSHALL');
  client = new Redis(server.url);
  redlock = new Redlock([client], { retryCount: 0 });
  const module = await Test.createTestingModule({
    imports: [lockModule(client)],
    providers: [Payments],
  }).compile();
  app = await module.init();
  work.charge = (orderId) => Promise.resolve({ paid: orderId });
});

afterEach(async () => {
  await app.close();
  client.disconnect();
});

afterAll(async () => {
  await server.stop();
  Logger.overrideLogger(['log', 'warn', 'error']);
});

const pay = (id: string): Promise<unknown> => app.get(Payments).pay(id);

it('the migration is the code of docs/recipes.md', () => {
  expect(recipesOf('rolling.ts')).toEqual({ shown: 1, missing: [] });
});

describe('while an old and a new release run', () => {
  it('a payment of the new one waits for a payment of the old one', async () => {
    const [begun, mayEnd] = [deferred(), deferred()];
    const order: string[] = [];
    const old = redlock.using(['order:a:1'], 5_000, async () => {
      begun.resolve();
      await mayEnd.promise;
      order.push('old');
    });
    await begun.promise;
    work.charge = async (orderId) => {
      order.push('new');
      return { paid: orderId };
    };
    const paid = pay('a:1');
    mayEnd.resolve();
    expect(await paid).toEqual({ paid: 'a:1' });
    await old;
    expect(order).toEqual(['old', 'new']);
  });

  it('a payment of the new one gives up after its wait', async () => {
    const lock = await redlock.acquire(['order:7'], 30_000);
    await expect(pay('7')).rejects.toThrow(LockNotAcquiredError);
    await lock.release();
  });

  it('a payment of the old one is refused during a payment of the new one', async () => {
    const [begun, mayEnd] = [deferred(), deferred()];
    work.charge = async (orderId) => {
      begun.resolve();
      await mayEnd.promise;
      return { paid: orderId };
    };
    const paid = pay('7');
    await begun.promise;
    const old = redlock.using(['order:7'], 5_000, async () => undefined);
    await expect(old).rejects.toBeInstanceOf(ExecutionError);
    mayEnd.resolve();
    await paid;
    expect(await redlock.using(['order:7'], 5_000, async () => 'paid')).toBe('paid');
  });
});
