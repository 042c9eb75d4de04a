import { describe, expect, it, jest } from '@jest/globals';
import { LockService, type Lock } from 'nestjs-holdfast';
import type { ExtendOutcome } from '../../lib/store/lock-store.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { detailOf } from '../support/detail.js';
import { deferred } from '../support/eventually.js';
import { scriptedService } from '../support/scripted-service.js';
import { heldFor } from '../support/scripted-store.js';
import { settled, type VirtualRuntime } from '../support/virtual-runtime.js';
import { storeOption } from '../../lib/options/location.js';

interface Kept {
  readonly clock: VirtualRuntime;
  readonly lock: Lock;
}

describe('a lock with minHold', () => {
  it('is kept for what is left of it, whenever the process began', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '10s' });
    const kept: (number | undefined)[] = [];
    store.release = async (_lease, _lastToken?: number, keepMs?: number) => {
      kept.push(keepMs);
      return { status: 'released' };
    };
    await clock.advance(7_000);
    const lock = await locks.acquire('key', { minHold: '5s' });
    await clock.advance(1_000);
    await lock.release();
    expect(kept).toEqual([4_000]);
  });

  it.each<[string, (service: Kept) => Promise<unknown>]>([
    ['released', ({ lock }) => lock.release()],
    ['lost', ({ clock }) => clock.advance(1_500)],
  ])('that is %s waits for its renewal, which would keep it taken for longer', async (_, end) => {
    const { clock, store, locks } = scriptedService({ ttl: '10s' });
    const asked: string[] = [];
    const renewal = deferred<ExtendOutcome>();
    store.extend = async () => {
      asked.push('renewal');
      const outcome = await renewal.promise;
      asked.push('renewed');
      return [outcome];
    };
    store.release = async (_lease, _lastToken?: number, keepMs?: number) => {
      asked.push(`release, kept for ${String(keepMs)}`);
      return { status: 'released' };
    };
    const lock = await locks.acquire('key', { minHold: '9s', maxHold: '5s' });
    await clock.advance(3_500);
    const ending = end({ clock, lock });
    await clock.advance(500);
    expect(asked).toEqual(['renewal']);
    renewal.resolve({ status: 'extended' });
    await clock.advance(0);
    await ending;
    const { monotonicMs } = clock.now();
    expect(asked).toEqual([
      'renewal',
      'renewed',
      `release, kept for ${String(9_000 - monotonicMs)}`,
    ]);
  });

  it('that is released by force is removed at once, although its renewal is on its way', async () => {
    const store = new MemoryLockStore();
    const locks = new LockService({ store: storeOption(store) });
    const renewal = deferred<ExtendOutcome[]>();
    jest.spyOn(store, 'extend').mockReturnValue(renewal.promise);
    const release = jest.spyOn(store, 'release');
    const lock = await locks.acquire('key', { minHold: '9s' });
    const extending = lock.extend();
    extending.catch(() => undefined);
    await settled();
    expect(await locks.forceRelease('key', { reason: 'stuck' })).toBe(true);
    expect(release).toHaveBeenCalledWith(expect.anything(), undefined, 0);
    renewal.resolve([{ status: 'extended' }]);
    await expect(extending).rejects.toMatchObject({ reason: 'force-released' });
    await locks.shutdown(0);
  });

  it('that is detached does not wait for its renewal, which renews another token', async () => {
    const { store, locks } = scriptedService({ ttl: '10s' });
    const renewal = deferred<ExtendOutcome>();
    store.onExtend = () => renewal.promise;
    const lock = await locks.acquire('key', { minHold: '5s' });
    const extending = lock.extend();
    extending.catch(() => undefined);
    await settled();
    await lock.detach();
    expect(store.transferred).toHaveLength(1);
    renewal.resolve({ status: 'extended' });
    await expect(extending).rejects.toThrow();
  });

  it('says of a TTL that is too short for it why it is refused', async () => {
    const { locks } = scriptedService({ ttl: '10s' });
    const lock = await locks.acquire('key', { minHold: '5s' });
    await expect(lock.extend('4s')).rejects.toThrow(
      'extend(4000) is shorter than the lock\'s "minHold", 5000 ms: a process that dies leaves the lock for its TTL, and that must cover it.',
    );
  });
});

describe('a refusal', () => {
  /** What a refusal says when the store does not know who holds the key. */
  async function refusalOf(locks: ReturnType<typeof scriptedService>['locks'], mode?: 'shared') {
    const error: unknown = await locks
      .acquire('key', { wait: 0, ...(mode && { mode }) })
      .catch((thrown: unknown) => thrown);
    return detailOf(error);
  }

  it('does not take a lock for the holder that was given back', async () => {
    const { store, locks } = scriptedService();
    await (await locks.acquire('key')).release();
    store.onAcquire = () => heldFor(60_000);
    expect(await refusalOf(locks)).toContain('held by another owner');
  });

  it('knows a reader of this process that is left when another has gone', async () => {
    const { store, locks } = scriptedService();
    const [first, second] = [
      await locks.acquire('key', { mode: 'shared' }),
      await locks.acquire('key', { mode: 'shared' }),
    ];
    store.onAcquire = () => heldFor(60_000);
    await first.release();
    expect(await refusalOf(locks)).toContain('in this same process');
    await second.release();
    expect(await refusalOf(locks)).toContain('held by another owner');
  });
});
