import { LockNotAcquiredError } from 'nestjs-holdfast';
import { createTestLocks } from 'nestjs-holdfast/testing';

describe('locks under fake timers', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('end a wait, and renew a lock that is held', async () => {
    const { locks, testLocks } = createTestLocks();
    const lock = await locks.acquire('order:1');
    await testLocks.hold('order:42');
    const refused = expect(
      locks.acquire('order:42', { wait: '2m' }),
    ).rejects.toThrow(LockNotAcquiredError);
    await jest.advanceTimersByTimeAsync(120_050);
    await refused;
    expect(lock.isHeld).toBe(true);
    expect(await lock.release()).toBe(true);
    await locks.shutdown(0);
  });
});
