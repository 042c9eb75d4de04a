import { afterEach, describe, expect, it } from '@jest/globals';
import { LockEngine } from '../../lib/engine/lock-engine.js';
import type { AcquireOptions } from '../../lib/options/acquire-options.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { scriptedEngine } from './scripted-engine.js';
import { OUTAGE } from '../support/scripted-store.js';

const log = { warn: () => undefined, error: () => undefined };
const engines: LockEngine[] = [];

function limiterOf(limit: number) {
  const locks = new LockEngine(
    { store: 'memory', instance: false },
    { log, runtime: systemRuntime },
  );
  engines.push(locks);
  return locks.limiter('exports', { limit });
}

afterEach(() => Promise.all(engines.splice(0).map((locks) => locks.shutdown(0))));

describe('a limiter', () => {
  it('runs work in a place of its own, and gives back what the work returns', async () => {
    const limiter = limiterOf(2);
    const used = await limiter.run(() => limiter.usage());
    expect(used).toEqual({ limit: 2, inUse: 1, free: 1, waiting: 0 });
    expect(await limiter.usage()).toEqual({ limit: 2, inUse: 0, free: 2, waiting: 0 });
    expect((await limiter.run({ places: 2 }, () => limiter.usage())).inUse).toBe(2);
  });

  it('gives null where all places are taken and the call does not wait', async () => {
    const limiter = limiterOf(1);
    const held = await limiter.tryAcquire();
    expect(held?.isHeld).toBe(true);
    expect(await limiter.tryAcquire()).toBeNull();
    await held?.release();
    await (await limiter.tryAcquire())?.release();
  });

  it('lets a call that wants more places than there are wait until the limit is raised', async () => {
    const limiter = limiterOf(3);
    await limiter.setLimit(1);
    expect(await limiter.tryAcquire({ places: 3 })).toBeNull();
    const wide = limiter.acquire({ places: 3, wait: 60_000 });
    await limiter.setLimit(4);
    const lock = await wide;
    expect(await limiter.usage()).toEqual({ limit: 4, inUse: 3, free: 1, waiting: 0 });
    await lock.release();
    await limiter.setLimit(null);
    expect((await limiter.usage()).limit).toBe(3);
  });

  it.each(['acquire', 'tryAcquire'] as const)(
    'passes no place of %s on to a waiting call once the limit is too low for that',
    async (method) => {
      const limiter = limiterOf(2);
      const held = [await limiter[method](), await limiter[method]()];
      const controller = new AbortController();
      const options = { limit: 2, wait: 60_000, signal: controller.signal };
      const waiting = engines[0]?.acquire('exports', options).catch(() => 'left');
      await limiter.setLimit(1);
      await held.pop()?.release();
      expect(await limiter.usage()).toMatchObject({ limit: 1, inUse: 1 });
      controller.abort();
      expect(await waiting).toBe('left');
      await held.pop()?.release();
    },
  );

  it('names in the stack of an error where it was called', async () => {
    const { store, locks } = scriptedEngine();
    store.onAcquire = () => OUTAGE;
    const limiter = locks.limiter('exports', { limit: 4 });
    for (const call of [
      () => limiter.acquire({ wait: 0 }),
      () => limiter.tryAcquire(),
      () => limiter.run({ wait: 0 }, () => undefined),
    ]) {
      const error = (await call().catch((reason: unknown) => reason)) as Error;
      expect(error.stack).toMatch(/^\s+at .*limiter\.spec/m);
    }
  });

  it('refuses another limit and a mode in its calls', async () => {
    const limiter = limiterOf(4);
    for (const option of [{ limit: 2 }, { mode: 'shared' }])
      await expect(limiter.acquire(option as AcquireOptions)).rejects.toThrow(
        'The calls of a limiter take neither "limit" nor "mode": its limit is 4, or what setLimit() has set.',
      );
  });

  it('says that its limit may not have been set, in an outage', async () => {
    const { store, locks } = scriptedEngine();
    Object.assign(store, { setLimit: () => Promise.resolve(OUTAGE) });
    await expect(locks.limiter('exports', { limit: 4 }).setLimit(5)).rejects.toMatchObject({
      code: 'LOCK_STORE_UNAVAILABLE',
      keys: ['exports'],
      nodes: OUTAGE.nodes,
      detail: expect.stringContaining('Could not set the limit of "exports"'),
    });
    await locks.shutdown(0);
  });
});
