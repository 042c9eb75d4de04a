import { Logger } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  defineLock,
  LockError,
  lockKey,
  LockService,
  RunOnce,
  WithLock,
  type Lock,
} from 'nestjs-holdfast';
import { RedisServer } from '../../support/redis-server.js';
import { FORBIDDEN, ScriptedStore } from '../../support/scripted-store.js';
import { storeOption } from '../../../lib/options/location.js';

const orderLock = defineLock('order:<orderId>');
const keyOf = (id: string): string => `customer:${id}`;

class Orders {
  @WithLock('order:<orderId>')
  async pay(orderId: string): Promise<string> {
    return orderId;
  }

  @WithLock(['order:<from>', 'stock:<to>'])
  async move(from: string, to: string): Promise<string> {
    return from + to;
  }

  @WithLock(keyOf)
  async bill(id: string): Promise<string> {
    return id;
  }

  @RunOnce('report:<day>', { attempts: 1 })
  async report(day: string): Promise<string | undefined> {
    throw new Error(`no paper on ${day}`);
  }
}

async function messageOf(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    if (error instanceof LockError) return error.message;
    throw error;
  }
  throw new Error('it was not refused');
}

describe.each(['memory', 'redis'])('the message of a lock error (%s)', (store) => {
  let redis: RedisServer | undefined;
  let locks: LockService;
  let orders: Orders;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    if (store === 'redis') redis = await RedisServer.start();
    locks = new LockService(redis === undefined ? { store: 'memory' } : { redis: redis.url });
    await locks.open();
    orders = locks.bind(new Orders());
  });

  afterAll(async () => {
    await locks.shutdown(0);
    await redis?.stop();
  });

  /** What the calls are refused with while another caller holds the keys. */
  const whileHeld = async (keys: string[], call: () => unknown): Promise<string> => {
    const lock = await locks.acquire(keys);
    try {
      return await messageOf(call);
    } finally {
      await lock.release();
    }
  };

  const wait = 0;
  it.each<[string, string[], () => unknown, string]>([
    ['a decorated method', ['order:s3cret'], () => orders.pay('s3cret'), 'lock order:<orderId>'],
    [
      'a method with several keys',
      ['stock:s3cret'],
      () => orders.move('1', 's3cret'),
      'lock order:<from>, stock:<to>',
    ],
    ['a key function', ['customer:s3cret'], () => orders.bill('s3cret'), 'lock of Orders.bill'],
    [
      'a definition',
      ['order:s3cret'],
      () => locks.for(orderLock).run('s3cret', { wait }, () => 1),
      'lock order:<orderId>',
    ],
    [
      'lockKey',
      ['order:s3cret:items'],
      () => locks.run(lockKey`order:${'s3cret'}:items`, { wait }, () => 1),
      'lock order:…',
    ],
    [
      'several keys of lockKey, with acquire',
      ['b:s3cret'],
      () => locks.acquire([lockKey`a:${'s3cret'}`, lockKey`b:${'s3cret'}`], { wait }),
      'lock a:…, b:…',
    ],
    [
      'lockKey that begins with a value',
      ['s3cret:order'],
      () => locks.acquire(lockKey`${'s3cret'}:order`, { wait }),
      'lock',
    ],
    [
      'lockKey without a value',
      ['nightly'],
      () => locks.acquire(lockKey`nightly`, { wait }),
      'lock nightly',
    ],
    ['a text', ['text:s3cret'], () => locks.acquire('text:s3cret', { wait }), 'lock'],
  ])('HF-40 names the template and no value: %s', async (_what, keys, call, named) => {
    expect(await whileHeld(keys, call)).toBe(`The ${named} is held by another caller.`);
  });

  it('HF-40 names the lock that was lost, in each place where the loss shows', async () => {
    const LOST = 'The lock order:… was lost: an operator released it by force.';
    let held: Lock | undefined;
    const ended = await messageOf(() =>
      locks.run(lockKey`order:${'s3cret'}`, async (lock) => {
        held = lock;
        await locks.forceRelease('order:s3cret', { reason: 'test' });
      }),
    );
    expect(ended).toBe(LOST);
    expect((held?.signal.reason as Error).message).toBe(LOST);
    expect(await messageOf(() => held?.extend())).toBe(LOST);
  });

  it('HF-40 names work that is not tried again, in the first refusal and in later ones', async () => {
    await expect(orders.report('s3cret')).rejects.toThrow('no paper');
    const message =
      'The work under the lock report:<day> has failed too often, and is not tried again.';
    expect(await messageOf(() => orders.report('s3cret'))).toBe(message);
  });

  it('HF-40 names a lock that is waited for in a circle, or asked for in a wrong way', async () => {
    const nested = await messageOf(() =>
      locks.run('order:1', () =>
        locks.run(lockKey`order:${1}`, { reentrant: false }, () => undefined),
      ),
    );
    expect(nested).toBe(
      'The lock order:… was asked for inside a section that holds it, or a part of it.',
    );
    expect(await messageOf(() => orders.pay(undefined as never))).toBe(
      'A value for the key of the lock order:<orderId> is not valid.',
    );
  });

  it('HF-40 leaves what clients of HTTP get, and has keys in properties only', async () => {
    const lock = await locks.acquire('order:s3cret');
    const error = (await orders.pay('s3cret').catch((reason: unknown) => reason)) as LockError;
    await lock.release();
    expect(error.getResponse().message).toBe(
      'Somebody else is working on this right now. Try again later.',
    );
    expect(error.keys).toEqual(['order:s3cret']);
    expect(error.detail).toContain('order:s3cret');
    expect(error.stack).toMatch(
      /^LockNotAcquiredError: The lock order:<orderId> is held by another caller\.\n/,
    );
  });
});

describe('the message of an outage, and of a shutdown', () => {
  it('HF-40 names what was asked for', async () => {
    const store = new ScriptedStore();
    const locks = new LockService({ store: storeOption(store) });
    const orders = locks.bind(new Orders());
    store.onAcquire = () => FORBIDDEN;
    expect(await messageOf(() => orders.pay('s3cret'))).toBe(
      'Could not acquire the lock order:<orderId>: the lock store is not available.',
    );
    await locks.shutdown(0);
    expect(await messageOf(() => orders.pay('s3cret'))).toBe(
      'The lock order:<orderId> was not acquired: the lock service is shutting down.',
    );
  });
});
