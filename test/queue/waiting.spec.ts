import { afterAll, describe, expect, it } from '@jest/globals';
import {
  LockNotAcquiredError,
  LockServiceClosedError,
  LockService,
  LockStoreUnavailableError,
  type Lock,
} from 'nestjs-holdfast';
import type { AcquireOutcome, LeaseRequest, LinePlace } from '../../lib/store/lock-store.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { detailed } from '../support/detail.js';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { FORBIDDEN, heldFor, OUTAGE, silence } from '../support/scripted-store.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';
import { storeOption } from '../../lib/options/location.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

/** A service whose store works, in virtual time. */
function memoryService() {
  const clock = new VirtualRuntime();
  const store = new MemoryLockStore(clock);
  const locks = new LockService({ store: storeOption(store), ttl: 1_000 }, { runtime: clock });
  const other = new LockService({ store: storeOption(store), ttl: 1_000 }, { runtime: clock });
  return { clock, locks, other };
}

/** Notes in `order` who gets the lock and when it is given back. */
async function holdBriefly(name: string, acquiring: Promise<Lock>, order: string[]): Promise<void> {
  const lock = await acquiring;
  order.push(name);
  await settled();
  await lock.release();
}

describe('callers who wait in one process', () => {
  it('have one request in the store, however many they are', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '1m' });
    store.onAcquire = () => heldFor(60_000);
    const callers = Array.from({ length: 1_000 }, () => locks.acquire('key', { wait: 30_000 }));
    const outcomes = Promise.allSettled(callers);
    await clock.advance(4_900);
    // The first look, and one in line once the ear is open.
    expect(store.acquired.map(({ line }) => line !== undefined)).toEqual([false, true]);
    expect(store.listened).toBe(1);
    expect(clock.timers).toBe(1);
    await clock.advance(35_100);
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_NOT_ACQUIRED' } });
    }
    expect(store.left).toEqual(['key']);
    expect(clock.timers).toBe(0);
  });

  it('look again at the end of the lease that they were told of, and at most three times a TTL', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '3s' });
    store.onAcquire = () => heldFor(1_000);
    const waiting = locks.acquire('key', { wait: 9_500 });
    const refusal = expect(waiting).rejects.toThrow(LockNotAcquiredError);
    await clock.advance(9_000);
    expect(store.acquired.length).toBeLessThanOrEqual(2 + 9);
    await clock.advance(1_000);
    await refusal;
  });

  it('look every 500 ms where releases cannot be reported, and seldom ask whether they can by now', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => heldFor(60_000);
    store.onListen = () => 'polling';
    const waiting = locks.acquire('key', { wait: 20_000 }).catch(() => undefined);
    await clock.advance(19_000);
    expect(store.acquired.length).toBeGreaterThan(30);
    expect(store.acquired.length).toBeLessThan(45);
    expect(store.acquired.some(({ line }) => line !== undefined)).toBe(false);
    expect(store.listened).toBeLessThanOrEqual(4);
    store.onListen = () => 'listening';
    await clock.advance(2_000);
    await waiting;
  });

  it('hear of releases again once that is possible', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '1m' });
    store.onAcquire = () => heldFor(60_000);
    store.onListen = () => 'polling';
    const waiting = locks.acquire('key', { wait: 60_000 });
    await clock.advance(1_000);
    store.onListen = () => 'listening';
    await clock.advance(10_000);
    const looks = store.acquired.length;
    await clock.advance(4_000);
    expect(store.acquired.length - looks).toBeLessThan(2);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1 });
    store.reportReleased('key');
    await (await waiting).release();
  });

  it('get the lock first in, first out', async () => {
    const { clock, locks } = memoryService();
    const order: string[] = [];
    const holder = await locks.acquire('key');
    const turns = Array.from({ length: 50 }, (_, index) =>
      holdBriefly(String(index), locks.acquire('key'), order),
    );
    await settled();
    await holder.release();
    await Promise.all(turns);
    expect(order).toEqual(Array.from({ length: 50 }, (_, index) => String(index)));
    expect(clock.timers).toBe(0);
  });

  it('each get the TTL that they asked for', async () => {
    const { clock, store, locks } = scriptedService();
    const first = await locks.acquire('key', { ttl: 500, wait: 5_000 });
    const next = locks.acquire('key', { ttl: 700, wait: 5_000 });
    const last = locks.acquire('key', { ttl: 900, wait: 5_000 });
    await clock.advance(1);
    for (const waiting of [next, last]) await (await waiting).release();
    await first.release();
    expect(store.acquired.map(({ ttlMs }) => ttlMs)).toEqual([500, 700, 900]);
  });

  it('are served at once by a release in the same process, without the store’s report', async () => {
    const { clock, store, locks } = scriptedService();
    const free = new Set(['key']);
    store.onAcquire = () =>
      free.delete('key') ? { status: 'granted', fencingToken: 1 } : heldFor(60_000);
    store.onRelease = () => {
      free.add('key');
      return { status: 'released' };
    };
    const holder = await locks.acquire('key');
    const waiting = locks.acquire('key');
    await clock.advance(10);
    await holder.release();
    await (await waiting).release();
    expect(clock.now().monotonicMs).toBe(10);
  });

  it('HF-3 look every 5 s, or three times a TTL where that is shorter, however long the lease of the holder is', async () => {
    for (const [ttl, atLeast, atMost] of [
      ['1h', 12, 14],
      ['3s', 55, 64],
    ] as const) {
      const { clock, store, locks } = scriptedService({ ttl });
      store.onAcquire = () => heldFor(3_600_000);
      const refusal = expect(locks.acquire('key', { wait: '61s' })).rejects.toThrow();
      await clock.advance(60_500);
      expect(store.acquired.length).toBeGreaterThanOrEqual(atLeast);
      expect(store.acquired.length).toBeLessThanOrEqual(atMost);
      await clock.advance(2_000);
      await refusal;
    }
  });

  it('wait for a holder in the same process without asking the store', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '3s' });
    let holders = 0;
    store.onAcquire = () =>
      (holders += 1) === 1 ? { status: 'granted', fencingToken: 1 } : heldFor(1_000);
    const [first, second] = [locks.acquire('key'), locks.acquire('key')];
    const holder = await first;
    await clock.advance(900);
    expect(store.acquired).toHaveLength(1);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 2 });
    await holder.release();
    await (await second).release();
  });

  it('for different sets of keys that overlap are woken by each release of a common key', async () => {
    const { clock, locks, other } = memoryService();
    const order: string[] = [];
    const holder = await other.acquire(['a', 'b', 'c']);
    const turns = [
      holdBriefly('a', locks.acquire('a'), order),
      holdBriefly('ab', locks.acquire(['a', 'b']), order),
      holdBriefly('bc', locks.acquire(['c', 'b']), order),
      holdBriefly('c', locks.acquire('c'), order),
    ];
    await clock.advance(100);
    expect(order).toEqual([]);
    await holder.release();
    await Promise.all(turns);
    expect(order.sort()).toEqual(['a', 'ab', 'bc', 'c']);
    expect(clock.now().monotonicMs).toBe(100);
    expect(clock.timers).toBe(0);
  });
});

describe('a release', () => {
  it('that is reported while a refused request is on its way lets the line look again at once', async () => {
    const { clock, store, locks } = scriptedService();
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = ({ line }) => (line ? answer.promise : heldFor(60_000));
    const waiting = locks.acquire('key');
    await clock.advance(10);
    expect(store.acquired).toHaveLength(2);
    store.reportReleased('key');
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1 });
    answer.resolve(heldFor(60_000));
    await settled();
    expect(store.acquired).toHaveLength(3);
    await (await waiting).release();
  });

  it('that happened before the ear was open is not missed: the line looks again right after', async () => {
    const { clock, store, locks } = scriptedService();
    const opened = deferred<'listening'>();
    store.onAcquire = () => heldFor(60_000);
    store.onListen = () => opened.promise;
    const waiting = locks.acquire('key');
    await clock.advance(10);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1 }); // released, and nobody told us
    opened.resolve('listening');
    await settled();
    await (await waiting).release();
    expect(clock.now().monotonicMs).toBe(10);
  });

  it('of another key wakes nobody', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => heldFor(60_000);
    const waiting = locks.acquire('key', { wait: 1_000 }).catch(() => undefined);
    await clock.advance(100);
    store.reportReleased('another');
    await clock.advance(100);
    expect(store.acquired).toHaveLength(2);
    await clock.advance(1_000);
    await waiting;
  });

  it('that may have been missed wakes everybody', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = ({ keys }) => heldFor(60_000, keys[0]);
    const waiting = ['a', 'b', 'c'].map((key) => locks.acquire(key));
    await clock.advance(100);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1 });
    store.reportReleased();
    await settled();
    for (const lock of await Promise.all(waiting)) await lock.release();
  });

  it('by loss wakes the line too', async () => {
    const { clock, store, locks } = scriptedService();
    await locks.acquire('key', { autoExtend: false });
    store.onAcquire = () => heldFor(60_000);
    const waiting = locks.acquire('key');
    await clock.advance(500);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 2 });
    await clock.advance(500);
    await (await waiting).release();
  });
});

describe('a caller who goes', () => {
  it('before it began gets the reason of its signal, and nothing is asked for', async () => {
    const { store, locks } = scriptedService();
    const reason = new Error('changed my mind');
    const signal = AbortSignal.abort(reason);
    await expect(locks.acquire('key', { signal })).rejects.toBe(reason);
    await expect(locks.tryAcquire('key', { signal })).rejects.toBe(reason);
    expect(store.acquired).toEqual([]);
  });

  it('while it waits gets the reason at once, and leaves the store’s line', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => heldFor(60_000);
    const controller = new AbortController();
    const waiting = locks.acquire('key', { signal: controller.signal });
    await clock.advance(100);
    const reason = new Error('changed my mind');
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await settled();
    expect(store.left).toEqual(['key']);
    expect(clock.timers).toBe(0);
  });

  it('while its request is on its way passes the lock on to the next in line', async () => {
    const { clock, store, locks } = scriptedService();
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = () => answer.promise;
    const controller = new AbortController();
    const gone = locks.acquire('key', { signal: controller.signal });
    const next = locks.acquire('key');
    await clock.advance(10);
    controller.abort(new Error('gone'));
    await expect(gone).rejects.toThrow('gone');
    store.onAcquire = () => ({ status: 'granted', fencingToken: 2 });
    answer.resolve({ status: 'granted', fencingToken: 1 });
    const lock = await next;
    expect(lock.fencingToken).toBe(1);
    expect(store.acquired).toHaveLength(1);
    expect(store.released).toEqual([]);
    await lock.release();
    expect(clock.timers).toBe(0);
  });

  it('without waiting, while its request is on its way, leaves nothing in the store', async () => {
    const { store, locks } = scriptedService();
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = () => answer.promise;
    const controller = new AbortController();
    const acquiring = locks.tryAcquire('key', { signal: controller.signal });
    await settled();
    controller.abort(new Error('gone'));
    answer.resolve({ status: 'granted', fencingToken: 1 });
    await expect(acquiring).rejects.toThrow('gone');
    expect(store.released).toHaveLength(1);
  });

  it('after the grant keeps the lock: the signal ends the wait and nothing else', async () => {
    const { locks } = scriptedService();
    const controller = new AbortController();
    const lock = await locks.acquire('key', { signal: controller.signal });
    controller.abort();
    expect(lock.isHeld).toBe(true);
    expect(lock.signal.aborted).toBe(false);
    await lock.release();
  });

  it('as soon as another one is reported as waiting is not reported itself', async () => {
    const { clock, store, locks, refused } = scriptedService();
    store.onAcquire = () => heldFor(60_000);
    const controller = new AbortController();
    const waits: unknown[] = [];
    locks.on('waiting', ({ because }) => {
      waits.push(because);
      controller.abort(new Error('gone'));
    });
    const stays = locks.acquire('key', { wait: 50 }).catch(() => undefined);
    const gone = locks.acquire('key', { wait: 50, signal: controller.signal });
    await expect(gone).rejects.toThrow('gone');
    await clock.advance(100);
    await stays;
    expect(waits).toEqual(['held']);
    expect(refused).toHaveLength(1);
  });

  it('leaves its place to those behind', async () => {
    const { clock, locks, other } = memoryService();
    const order: string[] = [];
    const holder = await other.acquire('key');
    const controller = new AbortController();
    const gone = locks.acquire('key', { signal: controller.signal });
    const late = locks.acquire('key', { wait: 200 });
    const stays = holdBriefly('stays', locks.acquire('key'), order);
    const outcomes = Promise.allSettled([gone, late]);
    await clock.advance(100);
    controller.abort();
    await clock.advance(200);
    await holder.release();
    await stays;
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(order).toEqual(['stays']);
  });

  it('leaves the line of its own keys only', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = ({ keys }) => heldFor(60_000, keys.at(-1));
    const brief = locks.acquire('b', { wait: 500 }).catch(() => undefined);
    const long = locks.acquire(['a', 'b'], { wait: 5_000 }).catch(() => undefined);
    await clock.advance(1_000);
    await brief;
    expect(store.left).toEqual(['b']);
    await clock.advance(5_000);
    await long;
    // Nodes of a store may have refused it at different keys: it leaves the line at each.
    expect(store.left).toEqual(['b', 'a', 'b']);
  });

  it('can be followed by another in the same moment, who is served', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => heldFor(60_000);
    const controller = new AbortController();
    const gone = locks.acquire('key', { signal: controller.signal }).catch(() => undefined);
    await clock.advance(100);
    controller.abort();
    const next = locks.acquire('key');
    await gone;
    await settled();
    const afterwards = locks.acquire('key');
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1 });
    store.reportReleased('key');
    await (await next).release();
    await (await afterwards).release();
    expect(clock.timers).toBe(0);
  });
});

describe('a wait that is over', () => {
  it('says for how long it was, and when the holder’s lease ends', async () => {
    const { clock, store, locks, refused } = scriptedService();
    store.onAcquire = () => heldFor(8_000);
    const waiting = locks.acquire('key', { wait: 2_000 });
    const refusal = expect(waiting).rejects.toMatchObject({
      code: 'LOCK_NOT_ACQUIRED',
      retryAfterMs: 8_000,
    });
    await clock.advance(3_000);
    await refusal;
    expect(refused).toHaveLength(1);
    expect(refused[0]?.waitedMs).toBeGreaterThanOrEqual(2_000);
    expect(refused[0]?.waitedMs).toBeLessThanOrEqual(2_010);
  });

  it('says when the holder’s lease ends also to those who came later, or stood behind', async () => {
    const { clock, store, locks } = scriptedService();
    const holder = locks.acquire('key');
    const behind = locks.acquire('key', { wait: 100 });
    const refusals = [behind].map((waiting) =>
      expect(waiting).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED', retryAfterMs: 1_000 }),
    );
    await (await holder).extend();
    await clock.advance(50);
    const late = locks.acquire('key', { wait: 100 });
    refusals.push(
      expect(late).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED', retryAfterMs: 1_000 }),
    );
    await clock.advance(200);
    await Promise.all(refusals);
    expect(store.acquired).toHaveLength(1);
  });

  it('before the store has answered at all waits for that answer: it may be a grant', async () => {
    const { clock, store, locks } = scriptedService();
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = () => answer.promise;
    const waiting = locks.acquire('key', { wait: 50 });
    await clock.advance(100);
    answer.resolve({ status: 'granted', fencingToken: 1 });
    await (await waiting).release();
    expect(clock.timers).toBe(0);
  });

  it('TR-51 before the store has answered at all is called an outage when it is one', async () => {
    const { clock, store, locks, refused } = scriptedService();
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = () => answer.promise;
    const outcomes = Promise.allSettled([
      locks.acquire('key', { wait: 300 }),
      locks.acquire('key', { wait: 300 }),
    ]);
    await clock.advance(1_000);
    answer.resolve(OUTAGE);
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ reason: { code: 'LOCK_STORE_UNAVAILABLE' } });
    expect(refused).toEqual([]);
    expect(clock.timers).toBe(0);
  });
});

describe('an outage', () => {
  it('while waiting is sat out with growing pauses, which its own clean-ups do not cut short', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => OUTAGE;
    const waiting = locks.acquire('key', { wait: 60_000 });
    await clock.advance(10_000);
    expect(store.acquired.length).toBeGreaterThanOrEqual(10);
    expect(store.acquired.length).toBeLessThanOrEqual(16);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1 });
    await clock.advance(1_100);
    await (await waiting).release();
  });

  it('that lasts until the wait is over is reported as such', async () => {
    const { clock, store, locks, refused } = scriptedService();
    store.onAcquire = () => OUTAGE;
    const waiting = locks.acquire('key', { wait: 3_000 });
    const refusal = expect(waiting).rejects.toMatchObject({
      code: 'LOCK_STORE_UNAVAILABLE',
      nodes: OUTAGE.nodes,
    });
    await clock.advance(2_900);
    const late = locks.acquire('key', { wait: 50 });
    const lateRefusal = expect(late).rejects.toThrow(LockStoreUnavailableError);
    await clock.advance(200);
    await Promise.all([refusal, lateRefusal]);
    expect(refused).toEqual([]);
  });

  it('leaves the place that a request without an answer may be given later', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => heldFor(60_000);
    await expect(locks.acquire('key', { wait: 0 })).rejects.toThrow(LockNotAcquiredError);
    const left: unknown[] = [];
    store.leave = async ({ token }: LeaseRequest, line?: LinePlace) => {
      left.push({ token, line });
    };
    // The first look subscribes, the second stands in line.
    store.onAcquire = ({ line }) =>
      line !== undefined && left.length === 0 ? OUTAGE : heldFor(60_000);
    const waiting = expect(locks.acquire('key', { wait: 5_000 })).rejects.toThrow(detailed('held'));
    await clock.advance(1_000);
    const [asked] = store.acquired.filter(({ line }) => line !== undefined);
    expect(left).toEqual([{ token: asked?.token, line: asked?.line }]);
    await clock.advance(5_000);
    await waiting;
  });

  it('that passes into a refusal is not reported as an outage', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => (store.acquired.length < 3 ? OUTAGE : heldFor(60_000));
    const waiting = locks.acquire('key', { wait: 3_000 });
    const refusal = expect(waiting).rejects.toThrow(LockNotAcquiredError);
    await clock.advance(3_100);
    await refusal;
  });

  it('that waiting cannot end is reported at once, to everybody', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => FORBIDDEN;
    const callers = [locks.acquire('key'), locks.acquire('key'), locks.tryAcquire('key')];
    for (const outcome of await Promise.allSettled(callers))
      expect(outcome).toMatchObject({ reason: { code: 'LOCK_STORE_UNAVAILABLE' } });
    expect(clock.now().monotonicMs).toBe(0);
  });

  it('leaves nothing behind: each attempt has a token of its own, and is cleaned up before the next', async () => {
    const { clock, store, locks } = scriptedService();
    const log: string[] = [];
    store.onAcquire = ({ token }) => {
      log.push(`acquire ${token}`);
      return log.length < 4 ? OUTAGE : { status: 'granted', fencingToken: 1 };
    };
    store.onRelease = ({ token }) => {
      log.push(`release ${token}`);
      return { status: 'not-held' };
    };
    const waiting = locks.acquire('key', { ttl: 50 });
    await clock.advance(1_000);
    const [first, second, third] = store.acquired.map(({ token }) => token);
    expect(new Set([first, second, third]).size).toBe(3);
    expect(log).toEqual([
      `acquire ${first}`,
      `release ${first}`,
      `acquire ${second}`,
      `release ${second}`,
      `acquire ${third}`,
    ]);
    await (await waiting).release();
  });

  it('of the reporting of releases does not keep anybody from the lock', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => heldFor(60_000);
    store.onListen = () => 'polling';
    const waiting = locks.acquire('key', { wait: 60_000 });
    await clock.advance(1_000);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1 });
    await clock.advance(600);
    await (await waiting).release();
  });
});

describe('a shutdown', () => {
  it('sends those away who wait, and gives back what is granted to them meanwhile', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = ({ keys }) =>
      keys[0] === 'silent' ? silence<AcquireOutcome>() : heldFor(60_000, keys[0]);
    const waiting = [locks.acquire('a'), locks.acquire('a'), locks.acquire('b')];
    const outcomes = Promise.allSettled(waiting);
    await clock.advance(100);
    await locks.shutdown();
    for (const outcome of await outcomes)
      expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(LockServiceClosedError);
    expect(store.left.sort()).toEqual(['a', 'b']);
    expect(clock.timers).toBe(0);
    await expect(locks.acquire('a')).rejects.toThrow(LockServiceClosedError);
    await expect(locks.tryAcquire('a')).rejects.toThrow(LockServiceClosedError);
  });

  it('has left the store’s lines before it closes the store, those of the last moment too', async () => {
    const { clock, store, locks } = scriptedService();
    const order: string[] = [];
    store.onAcquire = () => heldFor(60_000);
    store.leave = async () => {
      await settled();
      order.push('left');
    };
    store.close = async () => void order.push('closed');
    const controller = new AbortController();
    const waiting = locks.acquire('key', { signal: controller.signal }).catch(() => undefined);
    await clock.advance(100);
    controller.abort();
    await waiting;
    await locks.shutdown();
    expect(order).toEqual(['left', 'closed']);
  });

  it('that only refuses to wait still lets those have a lock who do not', async () => {
    const { clock, store, locks } = scriptedService();
    locks.refuseWaiting();
    await (await locks.acquire('key')).release();
    store.onAcquire = () => heldFor(60_000);
    await expect(locks.acquire('key')).rejects.toThrow(LockNotAcquiredError);
    expect(await locks.tryAcquire('key')).toBeNull();
    expect(clock.timers).toBe(0);
  });
});

describe('a caller who does not wait', () => {
  it('TR-27 asks once', async () => {
    const { store, locks, refused } = scriptedService();
    store.onAcquire = () => heldFor(8_000);
    expect(await locks.tryAcquire('key')).toBeNull();
    expect(await locks.tryRun('key', () => 'ran')).toEqual({
      acquired: false,
      retryAfterMs: 8_000,
    });
    await expect(locks.acquire('key', { wait: 0 })).rejects.toMatchObject({ retryAfterMs: 8_000 });
    expect(store.acquired).toHaveLength(3);
    expect(store.listened).toBe(0);
    expect(refused).toHaveLength(3);
  });

  it('is told of an outage at once', async () => {
    const { clock, store, locks } = scriptedService();
    store.onAcquire = () => OUTAGE;
    await expect(locks.tryAcquire('key')).rejects.toThrow(LockStoreUnavailableError);
    expect(store.acquired).toHaveLength(1);
    expect(store.released).toHaveLength(1);
    await clock.advance(2_000);
    expect(clock.timers).toBe(0);
  });
});
