import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { LockLostError, LockService, type Lead } from 'nestjs-holdfast';
import type { AcquireOutcome, ExtendOutcome } from '../../lib/store/lock-store.js';
import { detailed } from '../support/detail.js';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { heldFor, OUTAGE, silence } from '../support/scripted-store.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

/** The validity of a lease of 1 s, without drift. */
const VALID_MS = 998;

function inMemory() {
  const clock = new VirtualRuntime();
  const options = { store: 'memory', ttl: 1_000, clockDrift: 0 } as const;
  return { clock, locks: new LockService(options, { runtime: clock }) };
}

describe('the deadline of a lease', () => {
  it('is the first moment at which it is held no more', async () => {
    const { clock, locks } = scriptedService();
    const lock = await locks.acquire('key');
    clock.block(VALID_MS - 1);
    expect(lock.isHeld).toBe(true);
    clock.block(1);
    expect(lock.isHeld).toBe(false);
    await expect(lock.extend()).rejects.toMatchObject({ reason: 'expired' });
  });

  it('TR-75 has passed for lock.signal, too, when no timer could run', async () => {
    const { clock, locks, lost } = scriptedService();
    const lock = await locks.acquire('key');
    const { signal } = lock;
    clock.block(VALID_MS - 1);
    expect(lock.signal.aborted).toBe(false);
    clock.block(1);
    expect(lock.signal.aborted).toBe(true);
    expect(lock.signal).toBe(signal);
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    await clock.advance(0);
    expect(lost).toMatchObject([{ reason: 'expired' }]);
  });

  it('TR-75 has passed for the signals of work that is done once, and of a leader', async () => {
    const { clock, locks } = inMemory();
    const { value } = await locks.runOnce('job', (attempt) => {
      const before = attempt.signal.aborted;
      clock.block(VALID_MS);
      return [before, attempt.signal.aborted];
    });
    const elected = deferred<Lead>();
    const leadership = locks.lead('reports', { onElected: elected.resolve });
    const lead = await elected.promise;
    const before = lead.signal.aborted;
    clock.block(VALID_MS);
    expect([value, [before, lead.signal.aborted]]).toEqual([
      [false, true],
      [false, true],
    ]);
    await leadership.stop();
    await locks.shutdown(0);
  });

  it('is too late for the answer to a renewal', async () => {
    const { clock, store, locks, lost } = scriptedService();
    const answer = deferred<ExtendOutcome>();
    store.onExtend = () => answer.promise;
    const lock = await locks.acquire('key');
    await clock.advance(400);
    clock.block(VALID_MS - 400);
    answer.resolve({ status: 'extended' });
    await settled();
    expect(lock.isHeld).toBe(false);
    expect(lost).toMatchObject([{ reason: 'store-unavailable' }]);
  });

  it('that passes after a renewal failed is an outage, also when no timer could run', async () => {
    const { clock, store, locks, lost } = scriptedService();
    store.onExtend = () => OUTAGE;
    const lock = await locks.acquire('key');
    await clock.advance(400);
    clock.block(VALID_MS - 400);
    expect(() => {
      lock.assertHeld();
    }).toThrow(expect.objectContaining({ reason: 'store-unavailable' }));
    expect(await lock.release()).toBe(false);
    expect(lost).toMatchObject([{ reason: 'store-unavailable' }]);
  });

  it('that an extend() finds to be over is reported as a loss at once', async () => {
    const { clock, locks, lost } = scriptedService();
    const lock = await locks.acquire('key');
    clock.block(2_000);
    await expect(lock.extend()).rejects.toThrow(LockLostError);
    expect(lost).toMatchObject([{ reason: 'expired' }]);
  });
});

describe('a lease that was lost', () => {
  it('is reported once, however often it is released, extended and asserted', async () => {
    const { clock, locks, lost } = scriptedService();
    const lock = await locks.acquire('key', { autoExtend: false });
    await clock.advance(1_000);
    expect(await lock.release()).toBe(false);
    await expect(lock.extend()).rejects.toThrow(LockLostError);
    expect(() => {
      lock.assertHeld();
    }).toThrow(LockLostError);
    expect(lost).toHaveLength(1);
  });
});

describe('a release', () => {
  it('that the store did not answer is sent again as it was', async () => {
    const { store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    store.onRelease = () => (store.released.length === 1 ? OUTAGE : { status: 'released' });
    expect(await lock.release()).toBe(true);
    expect(store.released).toHaveLength(2);
    expect(store.released[1]).toEqual(store.released[0]);
  });

  it('that never left the process is left to the clean-up: it was waited for already', async () => {
    const { store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    store.onRelease = () => ({ ...OUTAGE, sent: false });
    await expect(lock.release()).rejects.toThrow(detailed('Could not release "key"'));
    // The release, and the first round of the clean-up.
    expect(store.released).toHaveLength(2);
  });

  it('is not tried again once the lease is over: it is left to the clean-up', async () => {
    const { clock, store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    store.onRelease = () => {
      clock.block(VALID_MS);
      return OUTAGE;
    };
    await expect(lock.release()).rejects.toThrow(detailed('not available'));
    expect(store.released).toHaveLength(2);
  });

  it('whose second answer comes at the very deadline may have been somebody else’s deed', async () => {
    const { clock, store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    store.onRelease = () => {
      clock.block(VALID_MS / 2);
      return store.released.length === 1 ? OUTAGE : { status: 'not-held' };
    };
    expect(await lock.release()).toBe(false);
  });

  it('that the clean-up carries out later lets the next in line have the lock', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '1m' });
    const lock = await locks.acquire('key');
    store.onAcquire = () => heldFor(60_000);
    const next = locks.acquire('key', { ttl: '2m' });
    await clock.advance(100);
    store.onRelease = () => OUTAGE;
    await expect(lock.release()).rejects.toThrow(detailed('not available'));
    await clock.advance(10);
    store.onRelease = () => {
      store.onAcquire = () => ({ status: 'granted', fencingToken: 2 });
      return { status: 'released' };
    };
    await clock.advance(200);
    expect((await next).fencingToken).toBe(2);
  });

  it('is what `await using` ends with, and waits for', async () => {
    const { store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    await lock[Symbol.asyncDispose]();
    expect(store.released).toHaveLength(1);
    expect(lock.isHeld).toBe(false);
  });
});

describe('a renewal that has come up', () => {
  it('is not sent beside one that was asked for by hand in the same moment', async () => {
    const { clock, store, locks } = scriptedService();
    jest.spyOn(clock, 'random').mockReturnValue(0);
    const lock = await locks.acquire('key');
    // Comes up together with the renewal of the other, and right after it.
    await locks.acquire('short', { maxHold: 307 });
    locks.on('lost', () => void lock.extend());
    await clock.advance(320);
    expect(store.extended).toHaveLength(1);
    expect(store.extended[0]).toMatchObject([{ key: 'key' }]);
  });
});

describe('a lease whose maxHold is over in a moment', () => {
  it('ends in place of a renewal that comes up', async () => {
    const { clock, store, locks, lost } = scriptedService();
    jest.spyOn(clock, 'random').mockReturnValue(0); // the renewal comes up after 305 ms
    await locks.acquire('key', { maxHold: 310 });
    await clock.advance(310);
    expect(store.extended).toEqual([]);
    expect(lost).toMatchObject([{ reason: 'max-hold' }]);
  });
});

describe('after a shutdown', () => {
  it('nothing is sent any more, whatever the answer to a request was that came too late', async () => {
    const { clock, store, locks } = scriptedService();
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = () => answer.promise;
    const acquiring = expect(locks.tryAcquire('key')).rejects.toThrow(detailed('not available'));
    await settled();
    const down = locks.shutdown(0);
    await clock.advance(1_000);
    await down;
    answer.resolve(OUTAGE);
    await acquiring;
    await clock.advance(10_000);
    expect(store.released).toEqual([]);
  });

  it('that waited for a silent store no longer than it may, its lock is not given back twice', async () => {
    const { clock, store, locks } = scriptedService();
    await locks.acquire('key');
    store.onRelease = () => silence();
    const down = locks.shutdown(0);
    await clock.advance(1_000);
    await down;
    await clock.advance(60_000);
    expect(store.released).toHaveLength(1);
    expect(clock.timers).toBe(0);
  });
});

describe('a key that nobody holds here', () => {
  it('cannot be lost', async () => {
    const { locks, lost } = scriptedService();
    const lock = await locks.acquire('key');
    expect(locks.lose('another')).toBe(false);
    expect(lost).toEqual([]);
    expect(locks.lose('key')).toBe(true);
    expect(lock.isHeld).toBe(false);
    expect(lost).toMatchObject([{ reason: 'stolen' }]);
    expect(locks.lose('key')).toBe(false);
  });
});

describe('a shutdown', () => {
  it('goes on for as long as the store confirms what is given back, if slowly', async () => {
    const { clock, store, locks } = scriptedService();
    for (const key of ['a', 'b', 'c']) await locks.acquire(key);
    const answers: { resolve(answer: { status: 'released' }): void }[] = [];
    store.onRelease = () => {
      const answer = deferred<{ status: 'released' }>();
      answers.push(answer);
      return answer.promise;
    };
    let isOver = false;
    const down = locks.shutdown(0).then(() => (isOver = true));
    for (const seconds of [1, 2, 3]) {
      await clock.advance(900);
      expect(`${seconds}: ${String(isOver)}`).toBe(`${seconds}: false`);
      answers[seconds - 1]?.resolve({ status: 'released' });
      await clock.advance(100);
    }
    await down;
    expect(clock.now().monotonicMs).toBe(3_000);
  });
});
