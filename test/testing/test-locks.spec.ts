import { Injectable, Logger } from '@nestjs/common';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  LockLostError,
  LockNotAcquiredError,
  LockService,
  LockStoreUnavailableError,
  WithLock,
  type AcquireOptions,
  type Lock,
} from 'nestjs-holdfast';
import { createTestLocks, type TestLocks } from 'nestjs-holdfast/testing';
import { deferred, type Deferred } from '../support/eventually.js';
import { expectNoOpenHandles } from '../support/no-leaks.js';

/** What an application has: a service whose unit test makes it by hand. */
@Injectable()
class Orders {
  readonly paid: string[] = [];

  constructor(private readonly locks: LockService) {}

  @WithLock('order:<orderId>')
  async pay(orderId: string, until?: Deferred<void>): Promise<string> {
    await until?.promise;
    this.paid.push(orderId);
    return `paid ${orderId}`;
  }

  async transfer(from: string, to: string): Promise<void> {
    await this.locks.run([`account:${from}`, `account:${to}`], () => undefined);
  }

  async refund(orderId: string): Promise<string> {
    const result = await this.locks.tryRun(`order:${orderId}`, () => 'refunded');
    return result.acquired ? result.value : 'later';
  }
}

let locks: LockService;
let testLocks: TestLocks;
let orders: Orders;

beforeAll(() => {
  Logger.overrideLogger(false); // losses are logged
});

beforeEach(() => {
  ({ locks, testLocks } = createTestLocks({ wait: '5s' }));
  orders = locks.bind(new Orders(locks));
});

afterEach(() => locks.shutdown(0));

/** A lock that others may hold at the same time. */
const together = (how: AcquireOptions = { mode: 'shared' }): Promise<Lock> =>
  locks.acquire('catalogue', how);

describe('createTestLocks', () => {
  it('makes @WithLock work on objects made by hand, with real locks', async () => {
    const until = deferred();
    const first = orders.pay('42', until);
    await expect(orders.pay('42')).rejects.toThrow(LockNotAcquiredError);
    expect(await orders.pay('43')).toBe('paid 43');
    until.resolve();
    expect(await first).toBe('paid 42');
    expect(orders.paid).toEqual(['43', '42']);
  });

  it('needs neither start nor end, and leaves nothing open', async () => {
    await expectNoOpenHandles(async () => {
      const mine = createTestLocks();
      const bound = mine.locks.bind(new Orders(mine.locks));
      await mine.testLocks.hold('order:42');
      await expect(bound.pay('42')).rejects.toThrow(LockNotAcquiredError);
      expect(await bound.pay('43')).toBe('paid 43');
    });
  });

  it('takes the options of the module, and a name', async () => {
    const mine = createTestLocks({ name: 'jobs', ttl: '5s', errors: { exposeKeys: true } });
    expect(mine.locks.name).toBe('jobs');
    class Jobs {
      @WithLock('job', { instance: 'jobs' })
      async run(): Promise<boolean> {
        return (await mine.locks.inspect('job')).held;
      }
    }
    expect(await mine.locks.bind(new Jobs()).run()).toBe(true);
    await mine.testLocks.hold('job');
    const error = (await mine.locks
      .acquire('job', { wait: 0 })
      .catch((reason: unknown) => reason)) as LockNotAcquiredError;
    expect(error.getResponse()).toMatchObject({ keys: ['job'] });
    expect(() => createTestLocks({ ttl: 'soon' as '1s' })).toThrow('Option "ttl"');
    expect(() => createTestLocks({ redis: 'redis://localhost' } as object)).toThrow(
      'createTestLocks() has no option "redis". The locks of a test are in memory: leave it out. Its options are keyPrefix, ttl,',
    );
    expect(() => createTestLocks({ isGlobal: true } as object)).toThrow(
      'createTestLocks() has no option "isGlobal". It is an option of LockTestingModule.forRoot().',
    );
  });
});

describe('hold and free', () => {
  it('make a key look locked by somebody else until it is freed', async () => {
    await testLocks.hold('order:42', 'order:43');
    await expect(orders.pay('42')).rejects.toThrow(LockNotAcquiredError);
    expect(await orders.refund('43')).toBe('later');
    expect(await orders.pay('44')).toBe('paid 44');
    await testLocks.free('order:42');
    expect(await orders.pay('42')).toBe('paid 42');
    expect(await orders.refund('43')).toBe('later');
    await testLocks.free();
    expect(await orders.refund('43')).toBe('refunded');
  });

  it('wake whoever waits', async () => {
    await testLocks.hold('account:a');
    const transfer = orders.transfer('a', 'b');
    expect(testLocks.acquired).toEqual([]);
    await testLocks.free('account:a');
    await transfer;
    expect(testLocks.acquired).toEqual(['account:a,account:b']);
  });

  it('say what cannot be: a key that is held, or not held, or no key', async () => {
    const lock = await locks.acquire('order:42');
    await expect(testLocks.hold('order:42')).rejects.toThrow(
      '"order:42" cannot be held by another owner: it is held already.',
    );
    await lock.release();
    await testLocks.hold('order:42');
    await expect(testLocks.hold('order:42')).rejects.toThrow('held already');
    await expect(testLocks.free('order:43')).rejects.toThrow(
      '"order:43" is not held through hold(), lose() or beginWork().',
    );
    await expect(testLocks.hold('')).rejects.toThrow();
  });

  it('hold keys for no longer than code that tries again then can wait', async () => {
    await testLocks.hold('order:42');
    const { retryAfterMs } = (await locks.tryRun('order:42', () => 'ran')) as {
      retryAfterMs: number;
    };
    expect(retryAfterMs).toBeGreaterThan(24 * 60 * 60 * 1_000);
    expect(retryAfterMs).toBeLessThan(2 ** 31);
  });

  it('hold no key if one of them is held already', async () => {
    await testLocks.hold('order:44');
    const lock = await locks.acquire('order:43');
    await expect(testLocks.hold('order:42', 'order:43')).rejects.toThrow('held already');
    await lock.release();
    expect(await orders.pay('42')).toBe('paid 42');
    await expect(orders.pay('44')).rejects.toThrow(LockNotAcquiredError);
  });

  it('hold a key through an outage, of which somebody else knows nothing', async () => {
    testLocks.fail();
    await testLocks.hold('order:42');
    await testLocks.free('order:42');
    await testLocks.hold('order:43');
    testLocks.recover();
    expect(await orders.pay('42')).toBe('paid 42');
    await expect(orders.pay('43')).rejects.toThrow(LockNotAcquiredError);
  });
});

describe('after the shutdown of the service', () => {
  it.each<[string, (closed: TestLocks) => Promise<void> | void]>([
    ['hold', (closed) => closed.hold('order:42')],
    ['free', (closed) => closed.free()],
    ['lose', (closed) => closed.lose('order:42')],
    ['beginWork', (closed) => closed.beginWork('order:42')],
    ['finishWork', (closed) => closed.finishWork('order:42')],
    ['exhaustWork', (closed) => closed.exhaustWork('order:42')],
    [
      'fail',
      (closed) => {
        closed.fail();
      },
    ],
    ['reset', (closed) => closed.reset()],
  ])('%s says that every application needs test locks of its own', async (_method, call) => {
    await locks.shutdown(0);
    await expect(async () => call(testLocks)).rejects.toThrow(
      'These test locks were closed by app.close() or shutdown(), and their LockService grants no more locks. ' +
        'Make new ones for each application, in beforeEach: createTestLocks(), or app.get(TestLocks) of LockTestingModule.',
    );
  });

  it('the history can be read', async () => {
    await orders.pay('42');
    await locks.shutdown(0);
    expect(testLocks.acquired).toEqual(['order:42']);
    expect(testLocks.held).toEqual([]);
  });
});

describe('lose', () => {
  it('takes a lock away while the work runs: the signal aborts, and the call fails when it ends', async () => {
    const lost = deferred<unknown>();
    const work = locks.run('order:42', async ({ signal }) => {
      signal.addEventListener('abort', () => {
        lost.resolve(signal.reason);
      });
      await testLocks.lose('order:42');
      return lost.promise;
    });
    await expect(work).rejects.toThrow(LockLostError);
    expect(await lost.promise).toMatchObject({ code: 'LOCK_LOST', reason: 'stolen' });
  });

  it('is somebody else holding the key from then on, until it is freed', async () => {
    const until = deferred();
    const paying = orders.pay('42', until);
    await acquired('order:42');
    await testLocks.lose('order:42');
    expect(await locks.inspect('order:42')).toMatchObject({ held: true });
    until.resolve();
    await expect(paying).rejects.toThrow(LockLostError);
    await expect(orders.pay('42')).rejects.toThrow(LockNotAcquiredError);
    await testLocks.free('order:42');
    expect(await orders.pay('42')).toBe('paid 42');
  });

  it('lets nobody who waits get in between', async () => {
    const lock = await locks.acquire('order:42');
    const waiting = locks.acquire('order:42', { wait: 100 });
    await testLocks.lose('order:42');
    await expect(waiting).rejects.toThrow(LockNotAcquiredError);
    expect(lock.isHeld).toBe(false);
  });

  it('takes one key of several, and with it the lock of all', async () => {
    const lock = await locks.acquire(['account:a', 'account:b']);
    await testLocks.lose('account:b');
    expect(lock.isHeld).toBe(false);
    expect(await locks.inspect('account:b')).toMatchObject({ held: true });
    await testLocks.free('account:b');
    await orders.transfer('a', 'b');
  });

  it('takes a lock from each of those who hold it together', async () => {
    const [one, two, three] = [await together(), await together(), await together()];
    await three.release();
    await testLocks.lose('catalogue');
    expect([one.isHeld, two.isHeld]).toEqual([false, false]);
  });

  it('says so when the code under test does not hold the key', async () => {
    await testLocks.hold('order:42');
    for (const key of ['order:42', 'order:43']) {
      await expect(testLocks.lose(key)).rejects.toThrow(
        `"${key}" is not held by the code under test, so it cannot lose it.`,
      );
    }
  });

  async function acquired(key: string): Promise<void> {
    while (!testLocks.held.includes(key)) await new Promise(setImmediate);
  }
});

describe('fail and recover', () => {
  it('make the store unavailable: nothing runs unlocked', async () => {
    testLocks.fail();
    await expect(orders.pay('42')).rejects.toThrow(LockStoreUnavailableError);
    await expect(locks.inspect('order:42')).rejects.toMatchObject({
      code: 'LOCK_STORE_UNAVAILABLE',
      detail: expect.stringContaining('Could not inspect "order:42"'),
    });
    await expect(locks.forceRelease('order:42')).rejects.toThrow(LockStoreUnavailableError);
    expect(orders.paid).toEqual([]);
    testLocks.recover();
    expect(await orders.pay('42')).toBe('paid 42');
  });

  it('can concern single keys', async () => {
    testLocks.fail('order:42');
    await expect(orders.pay('42')).rejects.toThrow(LockStoreUnavailableError);
    expect(await orders.pay('43')).toBe('paid 43');
    testLocks.fail('order:43');
    expect(await orders.pay('42')).toBe('paid 42');
  });

  it('concern a lock of several keys, of which one fails', async () => {
    testLocks.fail('account:b');
    await expect(orders.transfer('a', 'b')).rejects.toThrow(LockStoreUnavailableError);
    await orders.transfer('a', 'c');
    expect(testLocks.acquired).toEqual(['account:a,account:c']);
  });

  it('are what a health check finds', async () => {
    testLocks.fail();
    expect(await locks.health()).toMatchObject({ hasQuorum: false });
    testLocks.recover();
    expect(await locks.health()).toMatchObject({ hasQuorum: true });
  });

  it('let a lock end that cannot be renewed meanwhile', async () => {
    const lock = await locks.acquire('order:42', { ttl: '1500ms' });
    testLocks.fail();
    await new Promise<void>((resolve) => {
      lock.signal.addEventListener('abort', () => {
        resolve();
      });
    });
    expect(lock.signal.reason).toMatchObject({ reason: 'store-unavailable' });
  });
});

describe('history, acquired and held', () => {
  it('tell what happened, in order', async () => {
    await orders.pay('42');
    await testLocks.hold('order:43');
    await orders.refund('43');
    const lock = await locks.acquire('order:44');
    await testLocks.lose('order:44');
    expect(testLocks.history).toEqual([
      expect.objectContaining({
        event: 'acquired',
        keys: ['order:42'],
        waitedMs: expect.any(Number),
      }),
      expect.objectContaining({
        event: 'released',
        keys: ['order:42'],
        heldMs: expect.any(Number),
      }),
      expect.objectContaining({ event: 'refused', keys: ['order:43'] }),
      expect.objectContaining({ event: 'acquired', fencingToken: lock.fencingToken }),
      expect.objectContaining({ event: 'lost', keys: ['order:44'], reason: 'stolen' }),
    ]);
    expect(testLocks.acquired).toEqual(['order:42', 'order:44']);
  });

  it('held: what the code under test has not given back', async () => {
    expect(testLocks.held).toEqual([]);
    const first = await locks.acquire(['account:b', 'account:a']);
    const second = await locks.acquire('order:42');
    await testLocks.hold('order:43');
    expect(testLocks.held).toEqual(['account:a,account:b', 'order:42']);
    await testLocks.lose('order:42');
    await second.release();
    expect(testLocks.held).toEqual(['account:a,account:b']);
    await first.release();
    expect(testLocks.held).toEqual([]);
  });

  it.each([{ mode: 'shared' }, { limit: 2 }] as const)(
    'held: a key as long as one of those who have it together has it, once: %p',
    async (how) => {
      const [one, two] = [await together(how), await together(how)];
      expect(testLocks.held).toEqual(['catalogue']);
      await one.release();
      expect(testLocks.held).toEqual(['catalogue']);
      await testLocks.reset();
      await two.extend();
      await two.release();
      expect(testLocks.held).toEqual([]);
    },
  );

  it.each([{}, { mode: 'shared' }] as const)(
    'held: nothing that was released while the store did not reply: %p',
    async (how) => {
      const [one, two] = [await locks.acquire('a', how), await locks.acquire('b', how)];
      testLocks.fail();
      await expect(one.release()).rejects.toThrow(LockStoreUnavailableError);
      await expect(two.detach()).rejects.toThrow(LockStoreUnavailableError);
      expect(testLocks.held).toEqual([]);
    },
  );

  it('are as they were when they were read', async () => {
    const before = testLocks.history;
    await orders.pay('42');
    expect(before).toEqual([]);
  });
});

describe('reset', () => {
  it('forgets the history, ends outages, and frees what somebody else held', async () => {
    const lock = await locks.acquire('order:41');
    await testLocks.lose('order:41');
    await lock.release();
    await testLocks.hold('order:42');
    testLocks.fail();
    await testLocks.reset();
    expect(testLocks.history).toEqual([]);
    expect(await orders.pay('41')).toBe('paid 41');
    expect(await orders.pay('42')).toBe('paid 42');
    await testLocks.reset();
    expect(testLocks.acquired).toEqual([]);
  });

  it('frees what stayed taken beside a lock that was held, once that is released', async () => {
    const how = { mode: 'shared', ttl: '1m' } as const;
    const kept = await locks.acquire('catalogue', { ...how, minHold: '1m' });
    const held = await locks.acquire('catalogue', how);
    await kept.release();
    await testLocks.reset();
    expect(await held.release()).toBe(true);
    expect(await locks.tryAcquire('catalogue')).toBeNull();
    await testLocks.reset();
    expect(await locks.tryAcquire('catalogue')).not.toBeNull();
  });

  it('frees what stays taken after a lock, and no lock that is held', async () => {
    const held = await locks.acquire('held');
    await locks.run('job', { ttl: '1m', minHold: '1m' }, () => undefined);
    await locks.run('window', { release: 'on-expiry' }, () => undefined);
    for (const key of ['job', 'window', 'held']) expect(await locks.tryAcquire(key)).toBeNull();
    await testLocks.reset();
    expect(await locks.tryAcquire('job')).not.toBeNull();
    expect(await locks.tryAcquire('window')).not.toBeNull();
    expect(await locks.tryAcquire('held')).toBeNull();
    expect(await held.release()).toBe(true);
  });
});
