import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockStoreUnavailableError } from 'nestjs-holdfast';
import { createTestLocks } from 'nestjs-holdfast/testing';

describe('runOnce on a test store', () => {
  let test: ReturnType<typeof createTestLocks>;

  beforeEach(() => {
    test = createTestLocks({ nodeTimeout: 50, ttl: 100 });
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
});
