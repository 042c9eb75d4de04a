import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { LockServiceClosedError } from 'nestjs-holdfast';
import type { AcquireRequest, Held } from '../../lib/store/lock-store.js';
import { detailed, detailOf } from '../support/detail.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { heldFor } from '../support/scripted-store.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

/** Several asked at once, and none of them got enough votes. */
const CONTENDED: Held = { ...heldFor(60_000), contended: true };

/** A service whose votes are split; notes when it asks. Chance is always in the middle. */
function contendedService() {
  const scripted = scriptedService({ ttl: '1m' });
  const { clock, store } = scripted;
  jest.spyOn(clock, 'random').mockReturnValue(0.5);
  const askedAt: number[] = [];
  store.onAcquire = () => {
    askedAt.push(clock.now().monotonicMs);
    return CONTENDED;
  };
  return { ...scripted, askedAt };
}

describe('a caller who waits, where the first request is to name no place', () => {
  /** The requests of a caller that waits for 50 ms, after the service began to listen. */
  async function requestsOf(answer: Held): Promise<readonly AcquireRequest[]> {
    const { clock, store, locks } = contendedService();
    store.isPlainFirst = true;
    store.onAcquire = () => answer;
    for (const key of ['other', 'key']) {
      const waiting = locks.acquire(key, { wait: 50 }).catch(() => undefined);
      await clock.advance(100);
      await waiting;
    }
    return store.acquired.filter(({ keys }) => keys[0] === 'key');
  }

  it('asks again at once, and names its place then', async () => {
    const requests = await requestsOf(heldFor(60_000));
    expect(requests.map(({ line }) => line !== undefined)).toEqual([false, true]);
  });

  it('pauses first when the votes were split, and says so', async () => {
    const requests = await requestsOf(CONTENDED);
    expect(requests.map(({ line }) => line !== undefined).slice(0, 2)).toEqual([false, true]);
    expect(requests.map(({ splits }) => splits ?? 0).slice(0, 3)).toEqual([0, 1, 2]);
  });
});

describe('a caller who does not wait, when votes were split', () => {
  it('asks four times, after pauses that grow, and states how many tries were split before', async () => {
    const { clock, store, locks, askedAt } = contendedService();
    const trying = locks.tryAcquire('key');
    await clock.advance(1_000);
    expect(await trying).toBeNull();
    expect(askedAt).toEqual([0, 10, 30, 70]);
    expect(store.acquired.map(({ splits }) => splits ?? 0)).toEqual([0, 1, 2, 3]);
    expect(clock.timers).toBe(0);
  });

  it('has the lock when a later try gets it', async () => {
    const { clock, store, locks } = contendedService();
    store.onAcquire = () =>
      store.acquired.length < 3 ? CONTENDED : { status: 'granted', fencingToken: 5 };
    const trying = locks.tryAcquire('key');
    await clock.advance(1_000);
    const lock = await trying;
    expect(lock?.fencingToken).toBe(5);
    expect(store.acquired).toHaveLength(3);
    await lock?.release();
  });

  it('asks no more when somebody turns out to hold the lock', async () => {
    const { clock, store, locks } = contendedService();
    store.onAcquire = () => (store.acquired.length < 2 ? CONTENDED : heldFor(8_000));
    const trying = locks.tryRun('key', () => 'ran');
    await clock.advance(1_000);
    expect(await trying).toEqual({ acquired: false, retryAfterMs: 8_000 });
    expect(store.acquired).toHaveLength(2);
  });

  it('asks no more when its signal has aborted meanwhile, and gets its reason', async () => {
    const { clock, store, locks } = contendedService();
    const controller = new AbortController();
    const trying = locks.tryAcquire('key', { signal: controller.signal });
    const outcome = expect(trying).rejects.toThrow('the client has gone');
    await clock.advance(1);
    controller.abort(new Error('the client has gone'));
    await clock.advance(1_000);
    await outcome;
    expect(store.acquired).toHaveLength(1);
  });

  it('asks no more when the service was closed meanwhile, and gets that', async () => {
    const { clock, store, locks } = contendedService();
    const outcome = expect(locks.tryAcquire('key')).rejects.toThrow(LockServiceClosedError);
    await clock.advance(1);
    const down = locks.shutdown(0);
    await clock.advance(1_000);
    await Promise.all([outcome, down]);
    expect(store.acquired).toHaveLength(1);
  });
});

describe('a line, when votes were split', () => {
  it('asks again after random pauses that grow, and states how many tries were split before', async () => {
    const { clock, store, locks, askedAt } = contendedService();
    const waiting = locks.acquire('key', { wait: '1m' }).catch(() => undefined);
    await clock.advance(1_000);
    // The first look opens the ear; from the second on it stands in line.
    expect(store.acquired.slice(0, 5).map(({ splits }) => splits ?? 0)).toEqual([0, 0, 1, 2, 3]);
    const pauses = askedAt.slice(2, 9).map((at, index) => at - (askedAt[index + 1] ?? 0));
    // Half of 20, 40, 80, 160, and of 250 at the most, and a little.
    expect(pauses).toEqual([20, 30, 50, 90, 135, 135, 135]);
    locks.refuseWaiting();
    await waiting;
  });

  it('is not woken by a release: those who asked at once would do so again', async () => {
    const { clock, store, locks, askedAt } = contendedService();
    const waiting = locks.acquire('key', { wait: '1m' }).catch(() => undefined);
    await clock.advance(200);
    const before = askedAt.length;
    store.reportReleased('key');
    await clock.advance(5);
    expect(askedAt).toHaveLength(before);
    locks.refuseWaiting();
    await waiting;
  });

  it('sleeps as ever once somebody holds the lock, and begins with short pauses the next time', async () => {
    const { clock, store, locks, askedAt } = contendedService();
    const waiting = locks.acquire('key', { wait: '1m' }).catch(() => undefined);
    await clock.advance(400);
    store.onAcquire = () => heldFor(60_000);
    await clock.advance(1_000);
    const asked = store.acquired.length;
    store.onAcquire = () => {
      askedAt.push(clock.now().monotonicMs);
      return CONTENDED;
    };
    askedAt.length = 0;
    store.reportReleased('key');
    await clock.advance(60);
    expect(store.acquired[asked]?.splits).toBe(0);
    expect(askedAt.slice(0, 2)).toEqual([1_400, 1_420]);
    locks.refuseWaiting();
    await waiting;
  });
});

describe('a caller who does not wait', () => {
  it('and is granted the lock while the service is closed gets the closing', async () => {
    const { store, locks } = scriptedService();
    let down: Promise<void> | undefined;
    store.onAcquire = () => {
      down = locks.shutdown(0);
      return { status: 'granted', fencingToken: 1 };
    };
    await expect(locks.tryAcquire('key')).rejects.toThrow(LockServiceClosedError);
    await down;
    expect(store.released).toHaveLength(1);
  });

  it('gets nothing from a service that is closed, also when its callers are sent away after that', async () => {
    const { store, locks } = scriptedService();
    await locks.shutdown();
    locks.refuseWaiting();
    await expect(locks.tryAcquire('key')).rejects.toThrow(LockServiceClosedError);
    expect(store.acquired).toEqual([]);
  });
});

describe('a refusal', () => {
  /** What a refusal says when one of this process holds the key, and the store says that this one does. */
  async function refusal(
    mode: 'exclusive' | 'shared',
    holderOf: (ownToken: string) => string | undefined,
  ): Promise<string> {
    const { clock, store, locks } = scriptedService();
    const lock = await locks.acquire('key', { mode });
    await clock.advance(30);
    const holder = holderOf(store.acquired[0]?.token ?? '');
    store.onAcquire = () => ({ ...heldFor(60_000), holder });
    const error: unknown = await locks.acquire('key', { wait: 0, mode }).catch((e: unknown) => e);
    await lock.release();
    return detailOf(error);
  }

  const HERE = /held for 30 ms in this same process, acquired at .*contended\.spec/;

  it('names the place of the holder that is of this process', async () => {
    expect(await refusal('exclusive', (own) => own)).toMatch(HERE);
    expect(await refusal('exclusive', () => undefined)).toMatch(HERE);
  });

  it('does not name the holder of this process that has lost the key without knowing it', async () => {
    const other = 'holdfast:of-another-process';
    expect(await refusal('exclusive', () => other)).toContain('held by another owner');
  });

  it('names a reader of this process also when the store names one of another', async () => {
    expect(await refusal('shared', () => 'holdfast:of-another-process:shared')).toMatch(HERE);
  });

  it('names no place that is not known', async () => {
    const { store, locks } = scriptedService();
    const grant = store.onAcquire;
    for (let more = 0; more < 60; more += 1) await locks.acquire(`key:${more}`);
    store.onAcquire = (request) =>
      request.keys[0] === 'key:59' ? heldFor(60_000, 'key:59') : grant(request);
    await expect(locks.acquire('key:59', { wait: 0 })).rejects.toThrow(
      detailed(/held for 0 ms in this same process, and/),
    );
  });

  it('of a caller behind one of the same process says so, though the store was not asked', async () => {
    const { clock, locks } = scriptedService();
    const first = locks.acquire('key');
    const behind = locks.acquire('key', { wait: 100 });
    const refused = expect(behind).rejects.toThrow(detailed('in this same process'));
    await clock.advance(200);
    await refused;
    await (await first).release();
  });
});
