import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockStoreUnavailableError } from 'nestjs-holdfast';
import { createTestLocks } from 'nestjs-holdfast/testing';

describe('runOnce on a test store', () => {
  let test: ReturnType<typeof createTestLocks>;

  beforeEach(() => {
    test = createTestLocks({ nodeTimeout: 300, ttl: 1_500 });
  });

  afterEach(() => test.locks.shutdown(0));

  it('cannot be marked while the store fails, and is tried again when it does not', async () => {
    const { locks, testLocks } = test;
    const failure = locks.runOnce('work', () => {
      testLocks.fail('work');
    });
    await expect(failure).rejects.toBeInstanceOf(LockStoreUnavailableError);
    testLocks.recover();
    expect(await locks.runOnce('work', { wait: '5s' }, ({ attempt }) => attempt)).toMatchObject({
      outcome: 'completed',
      value: 2,
    });
  });

  it('is taken over from one that loses its lock', async () => {
    const { locks, testLocks } = test;
    const result = await locks.runOnce('work', async () => {
      await testLocks.lose('work');
      await testLocks.free('work');
      expect((await locks.runOnce('other', () => 1)).outcome).toBe('completed');
    });
    expect(result.outcome).toBe('completed');
    expect(await locks.runOnce('work', () => 1)).toMatchObject({ outcome: 'done-elsewhere' });
  });

  it('is done by somebody else', async () => {
    const { locks, testLocks } = test;
    await testLocks.finishWork('work', { receipt: 'r1' });
    expect(await locks.runOnce('work', () => expect(true).toBe(false))).toEqual({
      outcome: 'done-elsewhere',
      attempts: 1,
      value: { receipt: 'r1' },
    });
    await testLocks.finishWork('other');
    expect(await locks.runOnce('other', () => 1)).toEqual({
      outcome: 'done-elsewhere',
      attempts: 1,
    });
  });

  it('is running elsewhere: who does not wait finds it busy, who stands by is told when it is done', async () => {
    const { locks, testLocks } = test;
    await testLocks.beginWork('work');
    expect(await locks.runOnce('work', { wait: 0 }, () => 1)).toEqual({
      outcome: 'busy',
      attempts: 1,
    });
    const standBy = locks.runOnce('work', { wait: '5s' }, () => 1);
    await testLocks.finishWork('work', 7);
    expect(await standBy).toEqual({ outcome: 'done-elsewhere', attempts: 1, value: 7 });
  });

  it('is taken over from somebody who died', async () => {
    const { locks, testLocks } = test;
    await testLocks.beginWork('work');
    const next = locks.runOnce('work', { wait: '5s' }, ({ attempt }) => attempt);
    await testLocks.free('work');
    expect(await next).toMatchObject({ outcome: 'completed', value: 2 });
  });

  it('was tried too often by others', async () => {
    const { locks, testLocks } = test;
    await testLocks.exhaustWork('work', 'no route to host');
    expect(await locks.runOnce('work', () => 1)).toEqual({
      outcome: 'exhausted',
      attempts: 1,
      lastError: 'no route to host',
    });
  });

  it('cannot be staged twice, nor over the head of who is at it, and is forgotten by reset()', async () => {
    const { locks, testLocks } = test;
    await testLocks.finishWork('work');
    await expect(testLocks.beginWork('work')).rejects.toThrow('"work" is over');
    await locks.runOnce('other', async () => {
      await expect(testLocks.finishWork('other')).rejects.toThrow('held already');
    });
    await testLocks.reset();
    expect(await locks.runOnce('work', () => 1)).toMatchObject({ outcome: 'completed' });
    expect(await locks.runOnce('other', () => 1)).toMatchObject({ outcome: 'completed' });
  });

  it('is not `acquired` by a stand-by that has nothing to do', async () => {
    const { locks, testLocks } = test;
    const work = { wait: '5s' } as const;
    await Promise.all([
      locks.runOnce('work', work, () => 1),
      locks.runOnce('work', work, () => 2),
      locks.runOnce('work', work, () => 3),
    ]);
    expect(testLocks.acquired).toEqual(['work']);
    expect(testLocks.history.filter(({ event }) => event === 'acquired')).toHaveLength(3);
    expect(testLocks.held).toEqual([]);
  });
});
