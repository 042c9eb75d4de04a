import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { LockConfigurationError, LockLostError, LockStoreUnavailableError } from 'nestjs-holdfast';
import { inspect } from 'node:util';
import type { LockLostReason } from '../../lib/errors.js';
import type { ExtendOutcome, ReleaseOutcome } from '../../lib/store/lock-store.js';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { OUTAGE, silence } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';

const DAY_MS = 24 * 60 * 60 * 1_000;

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

const reasonOf = (signal: AbortSignal): LockLostReason | undefined =>
  (signal.reason as LockLostError | undefined)?.reason;

describe('a lease that is held', () => {
  it('is renewed at about a third of its TTL for as long as it is held', async () => {
    const { clock, store, locks, lost } = scriptedService({ ttl: 30_000 });
    const lock = await locks.acquire('key');
    await clock.advance(8_900);
    expect(store.extended).toHaveLength(0);
    await clock.advance(1_200);
    expect(store.extended).toHaveLength(1);
    expect(lock.remainingMs).toBeGreaterThan(28_500);
    await clock.advance(10 * 60_000);
    expect(store.extended.length).toBeGreaterThanOrEqual(60);
    expect(store.extended.length).toBeLessThanOrEqual(68);
    expect(lock.isHeld).toBe(true);
    expect(lock.signal.aborted).toBe(false);
    expect(lost).toEqual([]);
  });

  it('can be logged, and shows no owner token', async () => {
    const { store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    const token = store.acquired[0]?.token ?? '';
    expect(token).not.toBe('');
    for (const text of [JSON.stringify(lock), inspect(lock, { depth: 10 })])
      expect(text).not.toContain(token);
    await lock.release();
  });

  it('counts its validity from the sending of the request, less drift and 2 ms', async () => {
    const { clock, store, locks } = scriptedService({ ttl: 1_000, clockDrift: 0.01 });
    const answer = deferred<{ status: 'granted'; fencingToken: number }>();
    store.onAcquire = () => answer.promise;
    const acquiring = locks.acquire('key');
    await clock.advance(300);
    answer.resolve({ status: 'granted', fencingToken: 7 });
    const lock = await acquiring;
    expect(lock.fencingToken).toBe(7);
    expect(lock.remainingMs).toBeCloseTo(1_000 - 10 - 2 - 300);
  });

  it('is renewed at once when the answer to the request came so late that a third of the TTL is over', async () => {
    const { clock, store, locks, lost } = scriptedService({ ttl: 1_000 });
    const answer = deferred<{ status: 'granted'; fencingToken: number }>();
    store.onAcquire = () => answer.promise;
    const acquiring = locks.acquire('key');
    await clock.advance(800);
    answer.resolve({ status: 'granted', fencingToken: 7 });
    const lock = await acquiring;
    await clock.advance(1);
    expect(store.extended).toHaveLength(1);
    expect(lock.remainingMs).toBeGreaterThan(900);
    await clock.advance(10_000);
    expect(lost).toEqual([]);
  });

  it('is renewed at once when the answer to a renewal came so late', async () => {
    const { clock, store, locks, lost } = scriptedService({ ttl: 1_000 });
    const lock = await locks.acquire('key');
    const answer = deferred<ExtendOutcome>();
    store.onExtend = () => answer.promise;
    const extending = lock.extend();
    await clock.advance(900);
    store.onExtend = () => ({ status: 'extended' });
    answer.resolve({ status: 'extended' });
    await extending;
    await clock.advance(1);
    expect(store.extended).toHaveLength(2);
    expect(lock.remainingMs).toBeGreaterThan(900);
    await clock.advance(10_000);
    expect(lost).toEqual([]);
  });

  it('TR-12 sees at most four renewals in any TTL, however short, whether they succeed, fail or alternate', async () => {
    const scenarios: ((call: number) => ExtendOutcome)[] = [
      () => ({ status: 'extended' }),
      () => OUTAGE,
      (call) => (call % 2 === 0 ? OUTAGE : { status: 'extended' }),
      (call) => (call % 3 === 0 ? { status: 'extended' } : OUTAGE),
    ];
    for (const ttl of [50, 55, 60, 65, 70, 75, 80, 90, 100, 150, 333, 500, 1_250, 30_000]) {
      for (const scenario of scenarios) {
        const { clock, store, locks } = scriptedService({ ttl });
        const sentAt: number[] = [];
        store.onExtend = () => {
          sentAt.push(clock.now().monotonicMs);
          return scenario(sentAt.length - 1);
        };
        await clock.advance(Math.random() * 5);
        const lock = await locks.acquire('key');
        await clock.advance(ttl * 6);
        expect(sentAt.length).toBeGreaterThan(0);
        const most = Math.max(
          ...sentAt.map((from) => sentAt.filter((at) => at >= from && at < from + ttl).length),
        );
        expect(`${ttl}: ${Math.max(most, 4)}`).toBe(`${ttl}: 4`);
        await lock.release();
      }
    }
  });

  it('is renewed together with all others that are due', async () => {
    const { clock, store, locks } = scriptedService({ ttl: 150 });
    const keys = Array.from({ length: 100 }, (_, index) => `key:${index}`);
    await Promise.all(keys.map((key) => locks.acquire(key)));
    // At this TTL the jitter stays within two slots of the scheduler.
    await clock.advance(60);
    expect(store.extended.length).toBeLessThanOrEqual(2);
    expect(store.extended.flat()).toHaveLength(100);
    expect(clock.timers).toBe(1);
  });

  it('is renewed by its own answer, while one that was sent with it has none', async () => {
    const { clock, store, locks, lost } = scriptedService({ ttl: 150 });
    store.onExtend = ({ keys: [key] }) => (key === 'silent' ? silence() : { status: 'extended' });
    const [lock] = await Promise.all([locks.acquire('key'), locks.acquire('silent')]);
    await clock.advance(300);
    // At this TTL the jitter stays within two slots of the scheduler.
    expect(store.extended.map((batch) => batch.length)).toContain(2);
    expect(lost).toMatchObject([{ keys: ['silent'], reason: 'store-unavailable' }]);
    expect(lock.isHeld).toBe(true);
    await lock.extend();
    expect(await lock.release()).toBe(true);
  });

  it('is not renewed with autoExtend: false, and ends at its deadline', async () => {
    const { clock, store, locks, lost } = scriptedService();
    const lock = await locks.acquire('key', { autoExtend: false });
    const { signal } = lock;
    await clock.advance(990);
    expect(lock.isHeld).toBe(true);
    await clock.advance(10);
    expect(store.extended).toEqual([]);
    expect(reasonOf(signal)).toBe('expired');
    expect(lost).toEqual([
      { keys: ['key'], mode: 'exclusive', fencingToken: 1, reason: 'expired' },
    ]);
  });

  it('ends when maxHold is over, and is given back then', async () => {
    const { clock, store, locks, lost } = scriptedService();
    const lock = await locks.acquire('key', { maxHold: 5_000 });
    await clock.advance(4_990);
    expect(lock.isHeld).toBe(true);
    await clock.advance(10);
    expect(lost).toMatchObject([{ reason: 'max-hold' }]);
    expect(store.released).toHaveLength(1);
    expect(() => lock.assertHeld()).toThrow(
      expect.objectContaining({ reason: 'max-hold', code: 'LOCK_LOST' }),
    );
  });

  it('TR-10 holds for years without a timer of Node’s that overflows', async () => {
    const { clock, store, locks } = scriptedService();
    const ttl = 90 * DAY_MS;
    const lock = await locks.acquire('key', { ttl, maxHold: 1_000 * DAY_MS });
    await clock.advance(365 * DAY_MS);
    expect(lock.isHeld).toBe(true);
    expect(store.extended.length).toBeLessThanOrEqual(15);
    await lock.release();
    expect(clock.timers).toBe(0);
  });
});

describe('a lease in jeopardy', () => {
  it('TR-18 is held again when a retry succeeds before the deadline', async () => {
    const { clock, store, locks, lost } = scriptedService();
    let calls = 0;
    store.onExtend = () => ((calls += 1) <= 2 ? OUTAGE : { status: 'extended' });
    const lock = await locks.acquire('key');
    await clock.advance(600);
    expect(calls).toBe(2);
    expect(lock.isHeld).toBe(true);
    await clock.advance(10_000);
    expect(lock.isHeld).toBe(true);
    expect(lost).toEqual([]);
  });

  it('is reported once, and again only after it was held', async () => {
    const { clock, store, locks } = scriptedService();
    const reports: number[] = [];
    locks.on('jeopardy', () => reports.push(store.extended.length));
    const answers: ExtendOutcome[] = [OUTAGE, OUTAGE, { status: 'extended' }, OUTAGE, OUTAGE];
    store.onExtend = () => answers.shift() ?? { status: 'extended' };
    const lock = await locks.acquire('key');
    await clock.advance(3_000);
    expect(reports).toEqual([1, 4]);
    expect(lock.isHeld).toBe(true);
  });

  it('TR-11 is lost at its deadline, and the signal aborts then, when every renewal fails', async () => {
    const { clock, store, locks, lost } = scriptedService();
    store.onExtend = () => OUTAGE;
    const lock = await locks.acquire('key');
    const { signal } = lock;
    await clock.advance(990);
    expect(signal.aborted).toBe(false);
    await clock.advance(8);
    expect(reasonOf(signal)).toBe('store-unavailable');
    expect(lost).toMatchObject([{ reason: 'store-unavailable' }]);
  });

  it('TR-11 is lost at its deadline when the store is silent', async () => {
    const { clock, store, locks } = scriptedService();
    store.onExtend = () => silence();
    const { signal } = await locks.acquire('key');
    await clock.advance(990);
    expect(signal.aborted).toBe(false);
    await clock.advance(8);
    expect(reasonOf(signal)).toBe('store-unavailable');
  });

  it('is not revived by the answer to a renewal that comes after the deadline', async () => {
    const { clock, store, locks, lost } = scriptedService();
    const answer = deferred<ExtendOutcome>();
    store.onExtend = () => answer.promise;
    const lock = await locks.acquire('key');
    await clock.advance(400);
    expect(store.extended).toHaveLength(1);
    clock.block(700); // the deadline passes while no timer can run
    answer.resolve({ status: 'extended' });
    await settled();
    expect(lock.isHeld).toBe(false);
    expect(lock.remainingMs).toBe(0);
    expect(lost).toMatchObject([{ reason: 'store-unavailable' }]);
  });

  it('has at most one renewal on its way', async () => {
    const { clock, store, locks } = scriptedService();
    store.onExtend = () => silence();
    await locks.acquire('key');
    await clock.advance(3_000);
    expect(store.extended).toHaveLength(1);
  });
});

describe('a lease that is lost', () => {
  it.each(['stolen', 'released-elsewhere'] as const)(
    'says why: the store answers %s',
    async (reason) => {
      const { clock, store, locks, lost } = scriptedService();
      const lock = await locks.acquire('key');
      const { signal } = lock;
      store.onExtend = () => ({ status: 'lost', reason });
      await clock.advance(400);
      expect(reasonOf(signal)).toBe(reason);
      expect(lost).toEqual([{ keys: ['key'], mode: 'exclusive', fencingToken: 1, reason }]);
      expect(lock.isHeld).toBe(false);
      expect(() => lock.assertHeld()).toThrow(expect.objectContaining({ reason }));
      expect(await lock.release()).toBe(false);
      // Nothing of ours is there any more.
      expect(store.released).toEqual([]);
    },
  );

  it('TR-17 says so by signal, event and error, and to a signal that is asked for only afterwards', async () => {
    const { clock, store, locks, lost } = scriptedService();
    store.onExtend = () => OUTAGE;
    const lock = await locks.acquire('key');
    await clock.advance(1_000);
    expect(lost).toHaveLength(1);
    expect(lock.signal.aborted).toBe(true);
    expect(lock.signal.reason).toBeInstanceOf(LockLostError);
    expect(() => lock.assertHeld()).toThrow(LockLostError);
    await expect(lock.extend()).rejects.toThrow(LockLostError);
    expect(await lock.release()).toBe(false);
  });

  it('TR-15 is released without delay: the answer is false, once and again', async () => {
    const { clock, store, locks, lost } = scriptedService();
    store.onRelease = () => silence();
    const lock = await locks.acquire('key', { autoExtend: false });
    clock.block(1_500);
    expect(await lock.release()).toBe(false);
    expect(await lock.release()).toBe(false);
    expect(lost).toMatchObject([{ reason: 'expired' }]);
  });

  it('frees the other keys of the lease', async () => {
    const { clock, store, locks } = scriptedService();
    store.onExtend = () => ({ status: 'lost', reason: 'stolen' });
    await locks.acquire(['b', 'a']);
    await clock.advance(400);
    expect(store.released).toMatchObject([{ keys: ['a', 'b'] }]);
  });

  it('is removed from the store: again and again, until it says so', async () => {
    const { clock, store, locks } = scriptedService();
    store.onExtend = () => OUTAGE;
    await locks.acquire('key');
    let answers = 0;
    store.onRelease = () => ((answers += 1) <= 3 ? OUTAGE : { status: 'released' });
    await clock.advance(10_000);
    expect(store.released).toHaveLength(4);
    expect(clock.timers).toBe(0);
  });

  it('is removed from the store until the TTL has passed, and not for ever', async () => {
    const { clock, store, locks } = scriptedService();
    store.onExtend = () => OUTAGE;
    store.onRelease = () => OUTAGE;
    await locks.acquire('key');
    await clock.advance(60_000);
    expect(store.released.length).toBeGreaterThanOrEqual(4);
    expect(store.released.length).toBeLessThanOrEqual(6);
    expect(clock.timers).toBe(0);
  });

  it('leaves no timer, and gets no renewal any more', async () => {
    const { clock, store, locks } = scriptedService();
    await locks.acquire('key');
    store.onExtend = () => ({ status: 'lost', reason: 'stolen' });
    await clock.advance(60_000);
    expect(store.extended).toHaveLength(1);
    expect(clock.timers).toBe(0);
  });
});

describe('clocks', () => {
  it('a lease ends after the machine was suspended, although no timer has fired', async () => {
    const { clock, locks } = scriptedService();
    const lock = await locks.acquire('key');
    clock.suspend(5_000);
    expect(lock.isHeld).toBe(false);
    expect(() => lock.assertHeld()).toThrow(LockLostError);
    expect(lock.remainingMs).toBe(0);
  });

  it('end a lease that is not renewed a third of its TTL after the machine was suspended, at the latest', async () => {
    const { clock, locks, lost } = scriptedService({ ttl: 30_000 });
    const { signal } = await locks.acquire('key', { autoExtend: false });
    await clock.advance(1_000);
    clock.suspend(60_000);
    await clock.advance(10_000);
    expect(reasonOf(signal)).toBe('expired');
    expect(lost).toHaveLength(1);
  });

  it('end a lease whose renewal is on its way as soon, after the machine was suspended', async () => {
    const { clock, store, locks, lost } = scriptedService({ ttl: 30_000 });
    store.onExtend = silence;
    const { signal } = await locks.acquire('key');
    await clock.advance(11_000);
    clock.suspend(60_000);
    await clock.advance(10_000);
    expect(reasonOf(signal)).toBe('store-unavailable');
    expect(lost).toHaveLength(1);
  });

  it('a lease ends after the event loop was blocked, and no renewal revives it', async () => {
    const { clock, store, locks, lost } = scriptedService();
    const lock = await locks.acquire('key');
    clock.block(1_500);
    expect(lock.isHeld).toBe(false);
    await clock.advance(1_000);
    expect(store.extended).toEqual([]);
    expect(lost).toMatchObject([{ reason: 'expired' }]);
  });

  it('a lease is not prolonged when the wall clock is set back', async () => {
    const { clock, store, locks } = scriptedService();
    store.onExtend = () => OUTAGE;
    const lock = await locks.acquire('key');
    clock.setBack(DAY_MS);
    await clock.advance(1_000);
    expect(lock.isHeld).toBe(false);
  });

  it('no lock is handed out whose validity was over when the reply arrived', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = async () => {
      clock.block(2_000);
      return { status: 'granted', fencingToken: 1 };
    };
    await expect(locks.tryAcquire('key')).rejects.toThrow(LockStoreUnavailableError);
    expect(store.released).toHaveLength(1);
  });

  it('TR-20 do not hand out a lock that ended between its grant and its caller', async () => {
    const { clock, store, locks } = scriptedService();
    locks.on('acquired', () => {
      clock.block(2_000);
    });
    await expect(locks.acquire('key')).rejects.toThrow(LockLostError);
    await clock.advance(0);
    expect(store.released).toHaveLength(1);
  });
});

describe('release', () => {
  it('gives the lock back once, and answers the same again', async () => {
    const { clock, store, locks, released } = scriptedService();
    const lock = await locks.acquire('key');
    const { signal } = lock;
    await clock.advance(100);
    expect(await Promise.all([lock.release(), lock.release()])).toEqual([true, true]);
    expect(await lock.release()).toBe(true);
    expect(store.released).toHaveLength(1);
    expect(released).toEqual([{ keys: ['key'], mode: 'exclusive', fencingToken: 1, heldMs: 100 }]);
    expect(lock.isHeld).toBe(false);
    expect(signal.aborted).toBe(false);
    expect(() => lock.assertHeld()).toThrow(expect.objectContaining({ reason: 'released' }));
    expect(clock.timers).toBe(0);
  });

  it('TR-13 cancels the renewal that is due', async () => {
    const { clock, store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    await clock.advance(280);
    await lock.release();
    await clock.advance(10_000);
    expect(store.extended).toEqual([]);
  });

  it('TR-13 cancels a renewal that has come up and is about to be sent', async () => {
    const { clock, store, locks, lost } = scriptedService();
    jest.spyOn(clock, 'random').mockReturnValue(0); // no jitter
    const lock = await locks.acquire('key');
    // Comes up together with the renewal of the other, and right after it.
    await locks.acquire('short', { maxHold: 307 });
    locks.on('lost', () => void lock.release());
    await clock.advance(10_000);
    expect(lost).toMatchObject([{ keys: ['short'], reason: 'max-hold' }]);
    expect(store.released.map(({ keys }) => keys[0])).toEqual(['short', 'key']);
    expect(store.extended).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it.each<ExtendOutcome>([{ status: 'extended' }, OUTAGE, { status: 'lost', reason: 'stolen' }])(
    'TR-13 is final while a renewal is on its way that is answered %j later',
    async (outcome) => {
      const { clock, store, locks, lost } = scriptedService();
      const answer = deferred<ExtendOutcome>();
      store.onExtend = () => answer.promise;
      const lock = await locks.acquire('key');
      const { signal } = lock;
      await clock.advance(400);
      expect(store.extended).toHaveLength(1);
      expect(await lock.release()).toBe(true);
      answer.resolve(outcome);
      await clock.advance(10_000);
      expect(store.extended).toHaveLength(1);
      expect(signal.aborted).toBe(false);
      expect(lost).toEqual([]);
      expect(clock.timers).toBe(0);
    },
  );

  it('is tried again at once when the answer was lost, and "not held" then means that it worked', async () => {
    const { store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    let calls = 0;
    store.onRelease = () => ((calls += 1) === 1 ? OUTAGE : { status: 'not-held' });
    expect(await lock.release()).toBe(true);
    expect(calls).toBe(2);
  });

  it('is not taken for done when the validity was over before the second answer', async () => {
    const { clock, store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    store.onRelease = () => {
      clock.block(600);
      return store.released.length === 1 ? OUTAGE : { status: 'not-held' };
    };
    expect(await lock.release()).toBe(false);
  });

  it('says that the store did not answer, and goes on in the background until the TTL is over', async () => {
    const { clock, store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    store.onRelease = () => OUTAGE;
    await expect(lock.release()).rejects.toThrow(LockStoreUnavailableError);
    const before = store.released.length;
    store.onRelease = () => ({ status: 'released' });
    await clock.advance(60);
    expect(store.released.length).toBe(before + 1);
    await clock.advance(60_000);
    expect(store.released.length).toBe(before + 1);
    expect(clock.timers).toBe(0);
  });

  it('a release returns false if the lock was deleted meanwhile, and the loss is reported', async () => {
    const { store, locks, lost, released } = scriptedService();
    const lock = await locks.acquire('key');
    const { signal } = lock;
    store.onRelease = () => ({ status: 'not-held' });
    expect(await lock.release()).toBe(false);
    expect(reasonOf(signal)).toBe('released-elsewhere');
    expect(lost).toMatchObject([{ reason: 'released-elsewhere' }]);
    expect(released).toEqual([]);
  });

  it('of a lock that an operator ends on its way back to the store is the loss that names the operator', async () => {
    const { store, locks, lost } = scriptedService();
    const lock = await locks.acquire('key');
    const [{ token } = { token: '' }] = store.acquired;
    const holders = [{ token, remainingMs: 900 }];
    store.admin.look = async ([key = '']) => [{ key, holders, line: [] }];
    const answer = deferred<ReleaseOutcome>();
    store.onRelease = () => (store.released.length === 1 ? answer.promise : { status: 'released' });
    const releasing = lock.release();
    const intervention = { by: 'ada', reason: 'stuck' };
    expect(await locks.forceRelease('key', intervention)).toBe(true);
    answer.resolve({ status: 'not-held' });
    expect(await releasing).toBe(false);
    expect(lost).toMatchObject([{ reason: 'force-released', intervention }]);
  });

  it('by `await using` hides neither what the block returns nor what it throws', async () => {
    const { store, locks } = scriptedService();
    store.onRelease = () => OUTAGE;
    const block = async (fail: boolean): Promise<string> => {
      const lock = await locks.acquire('key');
      try {
        if (fail) throw new Error('of the block');
        return 'value';
      } finally {
        await lock[Symbol.asyncDispose]();
      }
    };
    await expect(block(false)).resolves.toBe('value');
    await expect(block(true)).rejects.toThrow('of the block');
  });
});

describe('extend', () => {
  it('renews now, and makes its TTL the one in force', async () => {
    const { clock, store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    await lock.extend('10s');
    expect(lock.remainingMs).toBeCloseTo(9_998);
    expect(store.extended).toMatchObject([[{ keys: ['key'], ttlMs: 10_000 }]]);
    await clock.advance(2_900);
    expect(store.extended).toHaveLength(1);
    await clock.advance(600);
    expect(store.extended[1]).toMatchObject([{ ttlMs: 10_000 }]);
  });

  it('moves the deadline of a lease that is not renewed by itself', async () => {
    const { clock, locks } = scriptedService();
    const lock = await locks.acquire('key', { autoExtend: false });
    await clock.advance(900);
    await lock.extend();
    await clock.advance(900);
    expect(lock.isHeld).toBe(true);
    await clock.advance(100);
    expect(lock.isHeld).toBe(false);
  });

  it('says that the store did not answer, and the lock is held until its deadline', async () => {
    const { store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    store.onExtend = () => OUTAGE;
    await expect(lock.extend('10s')).rejects.toThrow(LockStoreUnavailableError);
    expect(lock.isHeld).toBe(true);
    expect(lock.remainingMs).toBeLessThanOrEqual(998);
  });

  it('relies on the shorter TTL from the sending on, because the store may have obeyed without an answer', async () => {
    const { clock, store, locks, lost } = scriptedService({ ttl: 30_000 });
    const lock = await locks.acquire('key');
    store.onExtend = () => OUTAGE;
    await expect(lock.extend(1_000)).rejects.toThrow(LockStoreUnavailableError);
    expect(lock.remainingMs).toBeCloseTo(998);
    await clock.advance(998);
    expect(lock.isHeld).toBe(false);
    expect(lost).toMatchObject([{ reason: 'store-unavailable' }]);
  });

  it.each([
    [600, 1_000],
    [500, 1_000],
    [499, 499],
  ])(
    'to %d ms that the store did not answer changes the TTL only if the lease may end sooner by it',
    async (ttl, inForce) => {
      const { clock, store, locks } = scriptedService();
      const lock = await locks.acquire('key', { ttl: 1_000, autoExtend: false });
      await clock.advance(500);
      store.onExtend = () => OUTAGE;
      await expect(lock.extend(ttl)).rejects.toThrow(LockStoreUnavailableError);
      store.onExtend = () => ({ status: 'extended' });
      await lock.extend();
      expect(store.extended.at(-1)).toMatchObject([{ ttlMs: inForce }]);
    },
  );

  it('to a longer TTL that was not answered is cleaned up after for as long as that', async () => {
    const { clock, store, locks, lost } = scriptedService();
    await locks.acquire('key').then((lock) => {
      store.onExtend = () => OUTAGE;
      store.onRelease = () => OUTAGE;
      return expect(lock.extend('1h')).rejects.toThrow(LockStoreUnavailableError);
    });
    await clock.advance(60_000);
    expect(lost).toHaveLength(1);
    store.onRelease = () => ({ status: 'released' });
    const before = store.released.length;
    await clock.advance(6_000);
    expect(store.released.length).toBe(before + 1);
    expect(clock.timers).toBe(0);
  });

  it('to a longer TTL that a confirmed one has followed is forgotten', async () => {
    const { clock, store, locks } = scriptedService();
    const lock = await locks.acquire('key', { autoExtend: false });
    store.onExtend = () => OUTAGE;
    await lock.extend('1h').catch(() => undefined);
    store.onExtend = () => ({ status: 'extended' });
    await lock.extend(1_000);
    store.onRelease = () => OUTAGE;
    await clock.advance(4_000);
    expect(lock.isHeld).toBe(false);
    expect(clock.timers).toBe(0);
  });

  it('waits for the renewal that is on its way, so that the last one sent is the one in force', async () => {
    const { clock, store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    const first = deferred<ExtendOutcome>();
    store.onExtend = ({ ttlMs }) => (ttlMs === 1_000 ? first.promise : { status: 'extended' });
    await clock.advance(400);
    const longer = lock.extend(60_000);
    const shorter = lock.extend(500);
    await settled();
    expect(store.extended).toHaveLength(1);
    first.resolve({ status: 'extended' });
    await Promise.all([longer, shorter]);
    expect(store.extended.map(([lease]) => lease?.ttlMs)).toEqual([1_000, 60_000, 500]);
    expect(lock.remainingMs).toBeCloseTo(498);
  });

  it('rejects when the lock is lost', async () => {
    const { store, locks, lost } = scriptedService();
    const lock = await locks.acquire('key');
    store.onExtend = () => ({ status: 'lost', reason: 'stolen' });
    await expect(lock.extend()).rejects.toThrow(expect.objectContaining({ reason: 'stolen' }));
    expect(lost).toHaveLength(1);
  });

  it('rejects after the deadline without asking the store', async () => {
    const { clock, store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    clock.block(2_000);
    await expect(lock.extend()).rejects.toThrow(expect.objectContaining({ reason: 'expired' }));
    expect(store.extended).toEqual([]);
  });

  it('refuses a TTL that is too short or no duration', async () => {
    const { locks } = scriptedService();
    const lock = await locks.acquire('key');
    await expect(lock.extend(10)).rejects.toThrow(LockConfigurationError);
    await expect(lock.extend('soon' as '1s')).rejects.toThrow(LockConfigurationError);
    expect(lock.isHeld).toBe(true);
  });
});

describe('shutdown', () => {
  it('waits for holders, and for what they still have to tell the store', async () => {
    const { clock, store, locks } = scriptedService();
    const lock = await locks.acquire('key');
    const answer = deferred<ReleaseOutcome>();
    store.onRelease = () => answer.promise;
    let ended = false;
    const shutdown = locks.shutdown().then(() => (ended = true));
    await clock.advance(5_000);
    expect(lock.isHeld).toBe(true);
    const release = lock.release();
    await settled();
    expect(ended).toBe(false);
    answer.resolve({ status: 'released' });
    await Promise.all([release, shutdown]);
    expect(clock.timers).toBe(0);
  });

  it('takes the locks of those away who are not done in time, tells them, and gives the locks back', async () => {
    const { clock, store, locks, lost } = scriptedService();
    const held = await Promise.all([locks.acquire('a'), locks.acquire('b')]);
    const signals = held.map(({ signal }) => signal);
    const shutdown = locks.shutdown(3_000);
    await clock.advance(2_990);
    expect(lost).toEqual([]);
    await clock.advance(10);
    await shutdown;
    expect(signals.map(reasonOf)).toEqual(['shutdown', 'shutdown']);
    expect(store.released.map(({ keys }) => keys[0]).sort()).toEqual(['a', 'b']);
    expect(clock.timers).toBe(0);
    await clock.advance(60_000);
    expect(held.map(({ isHeld }) => isHeld)).toEqual([false, false]);
  });

  it('gives back what is granted to it meanwhile, before it closes the store', async () => {
    const { store, locks } = scriptedService();
    const answer = deferred<{ status: 'granted'; fencingToken: number }>();
    store.onAcquire = () => answer.promise;
    const order: string[] = [];
    store.onRelease = () => {
      order.push('release');
      return { status: 'released' };
    };
    store.close = async () => void order.push('close');
    const acquiring = locks.tryAcquire('key');
    await settled();
    const shutdown = locks.shutdown();
    await settled();
    answer.resolve({ status: 'granted', fencingToken: 1 });
    await expect(acquiring).rejects.toMatchObject({ code: 'LOCK_SERVICE_CLOSED' });
    await shutdown;
    expect(order).toEqual(['release', 'close']);
  });

  it('waits for a holder whose grant comes at the very moment it begins', async () => {
    const { clock, store, locks } = scriptedService();
    let shutdown: Promise<unknown> | undefined;
    let ended = false;
    store.onAcquire = async () => {
      // The answer is here, its caller has not seen it yet.
      queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => queueMicrotask(begin))));
      return { status: 'granted', fencingToken: 1 };
    };
    const begin = (): void => {
      shutdown ??= locks.shutdown().then(() => (ended = true));
    };
    const lock = await locks.tryAcquire('key').catch(() => undefined);
    await clock.advance(1_000);
    expect(ended).toBe(lock === undefined);
    await lock?.release();
    await shutdown;
    expect(store.released).toHaveLength(1);
  });
});

describe('shutdown of a service whose store is silent', () => {
  it.each([
    ['acquire', 'a'],
    ['release', 'b'],
  ])('is over one second after its deadline, and tells holders at the deadline: %s', async (at) => {
    const { clock, store, locks, lost } = scriptedService({ ttl: '10m' });
    await locks.acquire('held');
    store.onAcquire = () => OUTAGE;
    store.onRelease = () => OUTAGE;
    for (let i = 0; i < 50; i += 1) await locks.tryAcquire(`key:${String(i)}`).catch(() => null);
    await clock.advance(2_000);
    if (at === 'acquire') {
      store.onAcquire = () => silence();
      void locks.tryAcquire('key').catch(() => null);
    }
    store.onRelease = () => silence();
    let isClosed = false;
    store.close = async () => void (isClosed = true);
    const shutdown = locks.shutdown(1_000);
    await clock.advance(1_000);
    expect(lost).toMatchObject([{ reason: 'shutdown' }]);
    expect(isClosed).toBe(false);
    await clock.advance(1_000);
    expect(isClosed).toBe(true);
    await shutdown;
    const sent = store.released.length;
    await clock.advance(600_000);
    expect(store.released.length).toBe(sent);
    expect(clock.timers).toBe(0);
  });

  it('sends one last round, and ends when that is answered', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '10m' });
    store.onAcquire = () => OUTAGE;
    store.onRelease = () => OUTAGE;
    for (let i = 0; i < 50; i += 1) await locks.tryAcquire(`key:${String(i)}`).catch(() => null);
    store.onRelease = () => ({ status: 'not-held' });
    await locks.shutdown(1_000);
    expect(store.released).toHaveLength(100);
    expect(clock.now().monotonicMs).toBe(0);
    expect(clock.timers).toBe(0);
  });
});

describe('listeners', () => {
  it('that throw disturb neither the lock nor each other', async () => {
    const { store, locks, released } = scriptedService();
    locks.on('acquired', () => {
      throw new Error('of the listener');
    });
    let told = 0;
    const stop = locks.on('acquired', () => (told += 1));
    const lock = await locks.acquire('key');
    expect(told).toBe(1);
    stop();
    await lock.release();
    await (await locks.acquire('key')).release();
    expect(told).toBe(1);
    expect(released).toHaveLength(2);
    expect(store.released).toHaveLength(2);
  });
});
