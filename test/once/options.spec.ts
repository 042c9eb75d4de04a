import { afterAll, describe, expect, it } from '@jest/globals';
import { LockConfigurationError, LockReentrancyError, LockService } from 'nestjs-holdfast';

const locks = new LockService({ store: 'memory' });

afterAll(() => locks.shutdown(0));

describe('runOnce', () => {
  it.each([
    ['mode', { mode: 'shared' }],
    ['limit', { limit: 2 }],
    ['minHold', { minHold: '1s' }],
    ['release', { release: 'on-expiry' }],
    ['atempts', { atempts: 2 }],
  ])('has no option %s, and says which it has', async (name, options) => {
    let ran = false;
    const running = locks.runOnce('work', options as object, () => {
      ran = true;
    });
    await expect(running).rejects.toThrow(
      new LockConfigurationError(
        `There is no option "${name}" of runOnce. The options are attempts, keepDone, keepValue, ttl, wait, signal, autoExtend, maxHold.`,
      ),
    );
    expect(ran).toBe(false);
    expect(await locks.inspect('work')).toEqual({ held: false });
  });

  it('inside a section that holds its key says so', async () => {
    const nested = locks.run('work', () => locks.runOnce('work', () => undefined));
    await expect(nested).rejects.toThrow(LockReentrancyError);
    await expect(nested).rejects.toThrow('as every runOnce is');
  });
});
