import { afterAll, describe, expect, it } from '@jest/globals';
import { scriptedService, watchRejections } from '../support/scripted-service.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

describe('hold counts', () => {
  it('count the sections that stand in each other', async () => {
    const { locks } = scriptedService();
    const seen: (readonly [depth: number, count: number])[] = [];
    const look = (depth: number): void => void seen.push([depth, locks.holdCount('key')]);
    await locks.run('key', async (outer) => {
      look(outer.depth);
      await locks.run('key', async (inner) => {
        look(inner.depth);
        await locks.run('key', (innermost) => {
          look(innermost.depth);
        });
      });
      look(outer.depth);
    });
    expect(seen).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
      [1, 1],
    ]);
    expect(locks.holdCount('key')).toBe(0);
  });

  it('are for each lease and each service: a nested section holds all keys of the outer one', async () => {
    const { locks } = scriptedService();
    const other = scriptedService().locks;
    await locks.run(['a', 'b'], async () => {
      await locks.run('a', () => {
        expect([locks.holdCount('a'), locks.holdCount('b'), other.holdCount('a')]).toEqual([
          2, 2, 0,
        ]);
      });
      await locks.run('c', ({ depth }) => {
        expect([depth, locks.holdCount('c')]).toEqual([1, 1]);
      });
    });
  });

  it('are 0 when the lock was lost, or given back by the work itself', async () => {
    const { locks } = scriptedService();
    const working = locks.run('key', () => {
      locks.lose('key');
      expect(locks.holdCount('key')).toBe(0);
    });
    await expect(working).rejects.toMatchObject({ name: 'LockLostError' });
    await locks.run('key', async (lock) => {
      await lock.release();
      expect(locks.holdCount('key')).toBe(0);
    });
  });

  it('do not count a lock of acquire(), which is 1 deep', async () => {
    const { locks } = scriptedService();
    const lock = await locks.acquire('key');
    expect([lock.depth, locks.holdCount('key')]).toEqual([1, 0]);
    await lock.release();
  });
});
