import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable, Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  defineLock,
  LockConfigurationError,
  LockKeyError,
  LockModule,
  LockNotAcquiredError,
  LockReturnKindError,
  LockService,
  type DefinedLock,
  type LockEvents,
} from 'nestjs-holdfast';
import { of } from 'rxjs';
import { createTestLocks } from 'nestjs-holdfast/testing';
import { deferred } from '../support/eventually.js';

const orderLock = defineLock('order:<orderId>', { ttl: '10s', wait: 0 });
const nightlyLock = defineLock('nightly');
const itemLock = defineLock('order:<orderId>:item:<itemId>');

@Injectable()
class Orders {
  readonly #order: DefinedLock<'order:<orderId>'>;

  constructor(locks: LockService) {
    this.#order = locks.for(orderLock);
  }

  pay(orderId: number): Promise<readonly string[]> {
    return this.#order.run(orderId, ({ keys }) => keys);
  }

  @orderLock.WithLock()
  async ship(orderId: number): Promise<string> {
    return `shipped ${String(orderId)}`;
  }

  @orderLock.WithLock({ onLocked: 'skip' })
  async perhaps(orderId: number): Promise<string | undefined> {
    return `done ${String(orderId)}`;
  }
}

let module: TestingModule | undefined;
afterEach(async () => {
  await module?.close();
  module = undefined;
});

async function start(prefix?: string): Promise<{ orders: Orders; locks: LockService }> {
  Logger.overrideLogger(false); // refusals are the subject here
  module = await Test.createTestingModule({
    imports: [
      LockModule.forRoot({ store: 'memory' }),
      ...(prefix === undefined ? [] : [LockModule.forFeature({ keyPrefix: prefix, ttl: '5s' })]),
    ],
    providers: [Orders],
  }).compile();
  await module.init();
  return { orders: module.get(Orders), locks: module.get(LockService) };
}

describe('defineLock', () => {
  it('gives services and decorated methods one key, also in a module with a keyPrefix', async () => {
    for (const prefix of [undefined, 'orders:']) {
      const { orders, locks } = await start(prefix);
      expect(await orders.pay(42)).toEqual(['order:42']);
      await locks.run('order:42', async () => {
        await expect(orders.ship(43)).resolves.toBe('shipped 43');
      });
      const lock = await locks.for(orderLock).acquire(42);
      await expect(orders.ship(42)).rejects.toBeInstanceOf(LockNotAcquiredError);
      await expect(orders.pay(42)).rejects.toBeInstanceOf(LockNotAcquiredError);
      expect(await orders.perhaps(42)).toBeUndefined();
      await lock.release();
      expect(await orders.perhaps(42)).toBe('done 42');
      await module?.close();
    }
  });

  it('names the template in events, of calls by hand and of decorated ones', async () => {
    const { orders, locks } = await start();
    const seen: Partial<LockEvents['acquired']>[] = [];
    locks.on('acquired', ({ keys, template, method }) => {
      seen.push({ keys, ...(template && { template }), ...(method && { method }) });
    });
    await orders.pay(1);
    await orders.ship(2);
    await (await locks.for(orderLock).acquire({ orderId: 3 })).release();
    await (await locks.for(orderLock).tryAcquire(4))?.release();
    await locks.for(orderLock).tryRun(5, () => undefined);
    const template = 'order:<orderId>';
    expect(seen).toEqual([
      { keys: ['order:1'], template },
      { keys: ['order:2'], template, method: 'Orders.ship' },
      { keys: ['order:3'], template },
      { keys: ['order:4'], template },
      { keys: ['order:5'], template },
    ]);
  });

  it('takes nothing, one value, or values by name for the key', async () => {
    const { locks } = createTestLocks();
    expect(nightlyLock.key()).toBe('nightly');
    expect(orderLock.key('a:b')).toBe('order:a%3Ab');
    expect(itemLock.key({ orderId: 1, itemId: 2 })).toBe('order:1:item:2');
    expect(await locks.for(nightlyLock).run(({ keys }) => keys)).toEqual(['nightly']);
    const keys = await locks
      .for(itemLock)
      .run({ orderId: 1, itemId: 2 }, { ttl: '1s' }, (lock) => lock.keys);
    expect(keys).toEqual(['order:1:item:2']);
    expect(await locks.for(nightlyLock).inspect()).toEqual({ held: false });
  });

  it('has options that a call may replace, and waits for none where a call does not wait', async () => {
    const { locks } = createTestLocks();
    const slow = locks.for(defineLock('slow', { ttl: '20s', wait: 'forever' }));
    const lock = await slow.acquire({ ttl: '5s' });
    expect(lock.remainingMs).toBeLessThan(5_001);
    expect(await slow.tryAcquire()).toBeNull();
    expect(await slow.tryRun({ ttl: '1s' }, () => 1)).toMatchObject({ acquired: false });
    await lock.release();
    const longer = await slow.acquire();
    expect(longer.remainingMs).toBeGreaterThan(15_000);
    await longer.release();
  });

  it('keeps what a call leaves undefined, and does not wait for a holder that it replaces', async () => {
    const { locks } = createTestLocks();
    const limited = defineLock('pool', { limit: 3, wait: '5s', ttl: '10s' });
    const pool = locks.for(limited);
    const unsaid = { limit: undefined, ttl: undefined } as object;
    await pool.run(unsaid, ({ mode, remainingMs }) => {
      expect(mode).toBe('limit:3');
      expect(remainingMs).toBeLessThanOrEqual(10_000);
    });
    const patient = defineLock('order:<orderId>', { wait: '5s', ttl: '10s' });
    expect(await locks.for(patient).run(1, { onLocked: 'replace' }, () => 'ran')).toBe('ran');
    class Decorated {
      @patient.WithLock({ onLocked: 'replace', ...unsaid })
      async pay(orderId: number): Promise<number> {
        return Promise.resolve(orderId);
      }
    }
    expect(await locks.bind(new Decorated()).pay(1)).toBe(1);
    await locks.shutdown(0);
  });

  it('nests, is one object for one service, and refuses streams, as run() does', async () => {
    const { locks } = createTestLocks();
    const order = locks.for(orderLock);
    expect(locks.for(orderLock)).toBe(order);
    const depth = await order.run(1, () => order.run(1, (lock) => lock.depth));
    expect(depth).toBe(2);
    await expect(order.run(1, () => of(1))).rejects.toBeInstanceOf(LockReturnKindError);
    await expect(
      order.run(1, async () => {
        throw new LockNotAcquiredError({ keys: ['of the work'], retryAfterMs: 1, waitedMs: 0 });
      }),
    ).rejects.toMatchObject({ keys: ['of the work'] });
  });

  it('passes on what the work of tryRun throws, also a refusal of another lock', async () => {
    const { locks } = createTestLocks();
    const refusal = new LockNotAcquiredError({ keys: ['other'], retryAfterMs: 1, waitedMs: 0 });
    const trying = locks.for(orderLock).tryRun(1, () => Promise.reject(refusal));
    await expect(trying).rejects.toBe(refusal);
  });

  it('answers tryRun() with what its work returns, or that it did not get the lock, and no more', async () => {
    const { locks, testLocks } = createTestLocks();
    const order = locks.for(orderLock);
    expect(await order.tryRun(1, () => 'paid')).toEqual({ acquired: true, value: 'paid' });
    await testLocks.hold('order:2');
    expect(await order.tryRun(2, () => 'paid')).toEqual({
      acquired: false,
      retryAfterMs: expect.any(Number),
    });
  });

  it('does not wait in tryRun() for another call of the same section', async () => {
    const { locks } = createTestLocks();
    const patient = locks.for(defineLock('patient', { wait: '1s' }));
    const tried = await patient.run(async () => {
      const end = deferred();
      const other = patient.run(() => end.promise);
      const trying = patient.tryRun(() => 'ran');
      await new Promise(setImmediate);
      end.resolve();
      await other;
      return trying;
    });
    expect(tried).toMatchObject({ acquired: false });
  });

  it('passes on that the store does not reply', async () => {
    const { locks, testLocks } = createTestLocks();
    const order = locks.for(orderLock);
    testLocks.fail();
    const outage = { code: 'LOCK_STORE_UNAVAILABLE', keys: ['order:1'] };
    await expect(order.tryRun(1, () => 'paid')).rejects.toMatchObject(outage);
    await expect(order.tryAcquire(1)).rejects.toMatchObject(outage);
  });

  it('says where a lock was asked for', async () => {
    const { locks } = createTestLocks();
    const lock = await locks.for(orderLock).acquire(7);
    const failure = await locks
      .for(orderLock)
      .acquire(7, { wait: 0 })
      .catch((e: unknown) => e);
    expect((failure as LockNotAcquiredError).detail).toContain('define-lock.spec');
    await lock.release();
  });

  it('refuses values that are missing, and arguments that do not fit', async () => {
    const { locks } = createTestLocks();
    const order = locks.for(orderLock);
    await expect(order.acquire(undefined as never)).rejects.toBeInstanceOf(LockKeyError);
    await expect(order.run({} as never, () => 1)).rejects.toMatchObject({
      detail: expect.stringContaining('<orderId> is undefined'),
    });
    await expect(order.acquire(1, { wiat: 1 } as never)).rejects.toThrow(/Did you mean "wait"/);
    await expect(order.run(1, 2 as never)).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(order.tryRun(1, { wait: 1 } as never, () => 1)).rejects.toThrow(
      'tryRun() does not wait: use run()',
    );
    await expect(locks.for(nightlyLock).run(42 as never, () => 1)).rejects.toThrow(/as an object/);
    expect(() => locks.for({ name: 'order:<orderId>' } as never)).toThrow(
      'for() takes what defineLock() returns',
    );
  });

  it.each([
    [
      () => defineLock('a', { tll: 1 } as never),
      'defineLock("a") has no option "tll". Did you mean "ttl"?',
    ],
    [() => defineLock('a', { signal: 1 } as never), 'It belongs to a call'],
    [
      () => defineLock('a', { ttl: 1 }),
      'defineLock("a"): Option "ttl" must be a duration of at least 50 ms',
    ],
    [() => defineLock('a', { limit: 2, mode: 'shared' }), 'Option "limit" goes without "mode"'],
    [
      () => defineLock('a', { minHold: '1m', ttl: '1s' }),
      '"minHold" (60000 ms) is longer than the TTL',
    ],
    [() => defineLock('<a.b>'), 'must be plain names'],
    [() => defineLock(undefined as never), 'defineLock needs a key template'],
  ])('refuses what cannot work when it is defined: %#', (define, problem) => {
    expect(define).toThrow(LockConfigurationError);
    expect(define).toThrow(problem);
  });

  it('refuses a decorator without parentheses, and a parameter that a method does not have', () => {
    const bare = orderLock.WithLock as unknown as (...args: unknown[]) => void;
    expect(() => {
      bare({}, 'pay', {});
    }).toThrow('its decorator needs parentheses: @orderLock.WithLock().');
    expect(() => {
      class Wrong {
        @orderLock.WithLock()
        async pay(_id: string): Promise<void> {}
      }
      return Wrong;
    }).toThrow(/<orderId>/);
  });

  it('tells at for() that its options do not fit the service', () => {
    const limited = defineLock('a', { limit: 2 });
    const service = new LockService({ redis: ['redis://a', 'redis://b', 'redis://c'] });
    expect(() => service.for(limited)).toThrow(/Option "limit" needs one Redis/);
  });
});
