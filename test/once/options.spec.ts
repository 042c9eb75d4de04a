import { afterAll, describe, expect, it } from '@jest/globals';
import { LockConfigurationError, LockReentrancyError, LockService } from 'nestjs-holdfast';
import { LockingWorker } from 'nestjs-holdfast/worker';
import { detailed } from '../support/detail.js';

const locks = new LockService({ store: 'memory' });

afterAll(() => locks.shutdown(0));

const OF_ITS_LOCK = 'The lock of such work is exclusive, and free when the attempt is over.';

describe('runOnce', () => {
  it.each([
    ['mode', { mode: 'shared' }, OF_ITS_LOCK],
    ['limit', { limit: 2 }, OF_ITS_LOCK],
    ['minHold', { minHold: '1s' }, OF_ITS_LOCK],
    ['release', { release: 'on-expiry' }, OF_ITS_LOCK],
    ['atempts', { atempts: 2 }, 'Did you mean "attempts"?'],
  ])('has no option %s, and says which it has', async (name, options, hint) => {
    let ran = false;
    const running = locks.runOnce('work', options as object, () => {
      ran = true;
    });
    await expect(running).rejects.toThrow(
      new LockConfigurationError(
        `runOnce() has no option "${name}". ${hint} Its options are attempts, keepDone, keepValue, ttl, autoExtend, maxHold, wait, signal.`,
      ),
    );
    expect(ran).toBe(false);
    expect(await locks.inspect('work')).toEqual({ held: false });
  });

  it('checks its own number of attempts only, and with none left exhausts the work for all', async () => {
    const attempt = (attempts: number): Promise<unknown> =>
      locks.runOnce('numbers', { attempts }, (begun) => {
        throw new Error(`attempt ${String(begun.attempt)}`);
      });
    await expect(attempt(1)).rejects.toThrow('attempt 1');
    await expect(attempt(4)).rejects.toThrow('attempt 2');
    const exhausted = { outcome: 'exhausted', attempts: 2, lastError: 'attempt 2' };
    expect(await attempt(2)).toEqual(exhausted);
    expect(await attempt(4)).toEqual(exhausted);
  });

  it('inside a section that holds its key says so', async () => {
    const nested = locks.run('work', () => locks.runOnce('work', () => undefined));
    await expect(nested).rejects.toThrow(LockReentrancyError);
    await expect(nested).rejects.toThrow(detailed('runOnce always sets it'));
  });
});

describe('LockingWorker', () => {
  it.each([undefined, null, {}, { lockKey: 'work' }])('needs a service, not %j', (service) => {
    expect(() => new LockingWorker(service as unknown as LockService, { lockKey: 'work' })).toThrow(
      new LockConfigurationError(
        'LockingWorker needs a LockService as its first argument: new LockingWorker(locks, { lockKey, … }).',
      ),
    );
  });

  it.each([
    [
      { lockkey: 'import' },
      'LockingWorker has no option "lockkey". Did you mean "lockKey"? Its options are lockKey, lockTimeout, maxAttempts, keepDone.',
    ],
    [
      { lockKey: 'import', statusLevel: 2 },
      'LockingWorker has no option "statusLevel". The event "status" says everything. Its options are',
    ],
    [
      { lockKey: 'import', lockTimeout: 'soon' },
      'Option "lockTimeout" must be a duration of at least 50 ms, received "soon".',
    ],
    [
      { lockKey: 'import', maxAttempts: 0 },
      'Option "maxAttempts" must be a whole number from 1, received 0.',
    ],
  ])('refuses %j', (options, message) => {
    const make = (): unknown => new LockingWorker(locks, options as { lockKey: string });
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(message);
  });
});
