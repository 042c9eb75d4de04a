import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockConfigurationError } from 'nestjs-holdfast';
import { HOLD } from '../../lib/observe/channels.js';
import type { HoldContext } from '../../lib/observe/contexts.js';
import { watch } from '../../lib/observe/feed.js';
import { scriptedService } from '../support/scripted-service.js';

describe('guarded()', () => {
  const set = ['set', 'a', 1];
  it.each<[unknown, string]>([
    [undefined, 'undefined'],
    [[], 'a value of type object'],
    [['set a 1'], '"set a 1" as command 1'],
    [[set, ['', 'a']], 'a value of type object as command 2'],
    [[set, ['set', 'a', {}]], 'command 2 with a value of type object in it'],
    [[['set', 'a', NaN]], 'command 1 with NaN in it'],
    [[['set', undefined, 1]], 'command 1 with undefined in it'],
    [
      [['sadd', ...Array.from({ length: 4_000 }, String)]],
      'command 1 with 4001 parts, and 4000 are the most',
    ],
    [Array.from({ length: 16_667 }, () => set), 'more than 50000 parts in all'],
  ])('says which of its commands is none, and why (%#)', async (commands, received) => {
    const { locks } = scriptedService();
    const lock = await locks.acquire('key');
    const writing = lock.guarded(commands as never);
    await expect(writing).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(writing).rejects.toThrow(
      `takes a list of commands of Redis, each a list of texts and numbers, received ${received}. Write`,
    );
    expect(lock.isHeld).toBe(true);
  });
});

describe('the trace of a section', () => {
  let holds: HoldContext[];
  let stop: () => void;
  beforeEach(() => {
    holds = [];
    stop = watch(HOLD, { start: (hold) => holds.push(hold), asyncEnd: () => undefined });
  });
  afterEach(() => {
    stop();
  });

  const failure = new Error('of the work');
  const fail = (): never => {
    throw failure;
  };

  it('has the error that its work threw', async () => {
    const { locks } = scriptedService();
    await expect(locks.run('key', fail)).rejects.toBe(failure);
    expect(holds).toMatchObject([{ outcome: 'released', error: failure }]);
  });

  it('has the error of a nested section only if the work did not live with it', async () => {
    const { locks } = scriptedService();
    await locks.run('key', () => locks.run('key', fail).catch(() => undefined));
    await expect(locks.run('key', () => locks.run('key', fail))).rejects.toBe(failure);
    expect(holds.map(({ error }) => error)).toEqual([undefined, failure]);
  });

  it('has no error that the work threw after it had released the lock', async () => {
    const { locks } = scriptedService();
    const failing = locks.run('key', async (lock) => {
      await lock.release();
      fail();
    });
    await expect(failing).rejects.toBe(failure);
    expect(holds).toMatchObject([{ outcome: 'released' }]);
    expect(holds[0]).not.toHaveProperty('error');
  });
});
