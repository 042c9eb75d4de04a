import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockNotAcquiredError } from 'nestjs-holdfast';
import { createTestLocks } from 'nestjs-holdfast/testing';

describe('fake timers of jest', () => {
  let test: ReturnType<typeof createTestLocks>;

  beforeEach(() => {
    jest.useFakeTimers();
    test = createTestLocks({ ttl: '30s', wait: '10s' });
  });

  afterEach(async () => {
    await test.locks.shutdown(0);
    expect(jest.getTimerCount()).toBe(0);
    jest.useRealTimers();
  });

  it('end a wait', async () => {
    const { locks, testLocks } = test;
    await testLocks.hold('order:42');
    const refused = expect(locks.acquire('order:42')).rejects.toThrow(LockNotAcquiredError);
    await jest.advanceTimersByTimeAsync(10_050);
    await refused;
  });

  it('free no key that another owner holds, however long', async () => {
    const { locks, testLocks } = test;
    await testLocks.hold('held');
    await locks.acquire('lost');
    await testLocks.lose('lost');
    await testLocks.beginWork('begun');
    await jest.advanceTimersByTimeAsync(400 * 24 * 60 * 60 * 1_000);
    for (const key of ['held', 'lost', 'begun'])
      expect(await locks.inspect(key)).toMatchObject({ held: true });
    await testLocks.free('held', 'lost', 'begun');
    expect(await locks.tryRun('held', () => 'ran')).toMatchObject({ value: 'ran' });
  });

  it('let a lease end, or be renewed', async () => {
    const { locks } = test;
    const short = await locks.acquire('short', { autoExtend: false });
    const long = await locks.acquire('long');
    await jest.advanceTimersByTimeAsync(60_000);
    expect([short.isHeld, long.isHeld]).toEqual([false, true]);
    expect(await locks.inspect('short')).toMatchObject({ held: false });
    expect(await long.release()).toBe(true);
  });

  it('pass a lock on to the next caller', async () => {
    const { locks } = test;
    const order: number[] = [];
    const work = async (caller: number): Promise<void> =>
      locks.run('order:42', async () => {
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        order.push(caller);
      });
    const all = Promise.all([1, 2, 3].map(work));
    await jest.advanceTimersByTimeAsync(3_050);
    await all;
    expect(order).toEqual([1, 2, 3]);
  });

  it('end the stand-by of work that somebody else does', async () => {
    const { locks, testLocks } = test;
    await testLocks.beginWork('mail');
    const standBy = locks.runOnce('mail', { wait: '5s' }, () => undefined);
    await jest.advanceTimersByTimeAsync(5_050);
    expect(await standBy).toEqual({ outcome: 'busy', attempts: 1 });
  });
});
