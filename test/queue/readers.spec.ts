import { afterAll, describe, expect, it } from '@jest/globals';
import { LockService, type Lock } from 'nestjs-holdfast';
import type { AcquireOutcome } from '../../lib/store/lock-store.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { heldFor } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';
import { storeOption } from '../../lib/options/location.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

const SHARED = { mode: 'shared', wait: '1m', ttl: '1m' } as const;

describe('callers of one process who wait for a shared lock', () => {
  it('HF-9 have one place in line, however many they are', async () => {
    const { store, locks } = scriptedService();
    store.onAcquire = ({ line }) => ({ ...heldFor(60_000), ...(line && { ticket: 7 }) });
    const waiting = Array.from({ length: 1_000 }, () => locks.acquire('key', SHARED));
    const outcomes = Promise.allSettled(waiting);
    await settled();
    const places = store.acquired.flatMap(({ line, token }) => (line ? [token] : []));
    expect(new Set(places).size).toBe(1);
    expect(store.acquired.length).toBeLessThan(4);
    locks.refuseWaiting();
    await outcomes;
  });

  it('HF-12 are let in together, each with a lease of its own, and no more than 32 ask at once', async () => {
    const { store, locks } = scriptedService();
    store.onAcquire = ({ line }) => ({ ...heldFor(60_000), ...(line && { ticket: 7 }) });
    const waiting = Array.from({ length: 100 }, () => locks.acquire('key', SHARED));
    await settled();
    const asked = store.acquired.length;
    let open = 0;
    let mostOpen = 0;
    store.onAcquire = async () => {
      open += 1;
      mostOpen = Math.max(mostOpen, open);
      await settled();
      open -= 1;
      return { status: 'granted', fencingToken: 5 };
    };
    store.reportReleased('key', { to: store.acquired.at(-1)?.token ?? '', inMs: 0 });
    const held = await Promise.all(waiting);
    expect(mostOpen).toBe(32);
    const requests = store.acquired.slice(asked);
    expect(new Set(requests.map(({ token }) => token)).size).toBe(100);
    expect(requests.map(({ joins }) => joins)).toEqual([undefined, ...Array<number>(99).fill(5)]);
    await Promise.all(held.map((lock) => lock.release()));
  });

  it('stand in line anew when they come after that, behind a writer who waits', async () => {
    const store = new MemoryLockStore();
    const [locks, other] = [
      new LockService({ store: storeOption(store) }),
      new LockService({ store: storeOption(store) }),
    ];
    const order: string[] = [];
    const held: Lock[] = [];
    const read = (name: string): Promise<void> =>
      locks.acquire('key', SHARED).then((lock) => {
        order.push(name);
        held.push(lock);
      });
    const writer = await other.acquire('key');
    const early = [read('first'), read('second')];
    const later = other.acquire('key', { wait: '1m' }).then((lock) => {
      order.push('writer');
      return lock;
    });
    await settled();
    await writer.release();
    await Promise.all(early);
    const late = read('late');
    await settled();
    expect(order).toEqual(['first', 'second']);
    await Promise.all(held.splice(0).map((lock) => lock.release()));
    await (await later).release();
    await late;
    expect(order).toEqual(['first', 'second', 'writer', 'late']);
    await Promise.all(held.map((lock) => lock.release()));
  });

  it('keep their place when the others that they were let in with are gone before they have asked', async () => {
    const { store, locks } = scriptedService();
    store.onAcquire = ({ line }) => ({ ...heldFor(60_000), ...(line && { ticket: 7 }) });
    const [first, second] = [locks.acquire('key', SHARED), locks.acquire('key', SHARED)];
    await settled();
    store.onAcquire = ({ line, joins }) =>
      joins === undefined && line?.ticket === 7 && store.acquired.every((one) => one.joins !== 5)
        ? { status: 'granted', fencingToken: 5 }
        : { ...heldFor(60_000), ticket: line?.ticket };
    store.reportReleased('key', { to: store.acquired.at(-1)?.token ?? '', inMs: 0 });
    const held = await first;
    await settled();
    expect(store.acquired.at(-1)).toMatchObject({ line: { ticket: 7 }, joins: undefined });
    store.onAcquire = () => ({ status: 'granted', fencingToken: 6 });
    store.reportReleased('key', { to: store.acquired.at(-1)?.token ?? '', inMs: 0 });
    await (await second).release();
    await held.release();
  });
});

describe('a reader who is let in with others', () => {
  /** A reader who is granted the lock, and another whose request to join it is on its way. */
  async function joining() {
    const scripted = scriptedService();
    const { store, locks } = scripted;
    store.onAcquire = ({ line }) => ({ ...heldFor(60_000), ...(line && { ticket: 7 }) });
    const controller = new AbortController();
    const first = locks.acquire('key', SHARED);
    const second = locks.acquire('key', { ...SHARED, signal: controller.signal });
    await settled();
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = ({ joins }) =>
      joins === undefined ? { status: 'granted', fencingToken: 5 } : answer.promise;
    store.reportReleased('key', { to: store.acquired.at(-1)?.token ?? '', inMs: 0 });
    const held = await first;
    await settled();
    return { ...scripted, controller, held, second, answer };
  }

  it('and has gone meanwhile leaves no lease behind', async () => {
    const { clock, store, controller, held, second, answer } = await joining();
    controller.abort(new Error('gone'));
    await expect(second).rejects.toThrow('gone');
    answer.resolve({ status: 'granted', fencingToken: 5 });
    await settled();
    expect(store.released.map(({ token }) => token)).toEqual([store.acquired.at(-1)?.token]);
    await held.release();
    expect(clock.timers).toBe(0);
  });

  it('uses up the ticket of all: who comes meanwhile stands in line anew', async () => {
    const { store, locks, held, second, answer } = await joining();
    const late = locks.acquire('key', SHARED);
    await settled();
    store.onAcquire = ({ line }) => ({ ...heldFor(60_000), ...(line && { ticket: 8 }) });
    answer.resolve({ status: 'granted', fencingToken: 5 });
    await settled();
    expect(store.acquired.at(-1)).toMatchObject({ line: { ticket: undefined }, joins: undefined });
    store.onAcquire = () => ({ status: 'granted', fencingToken: 6 });
    store.reportReleased('key', { to: store.acquired.at(-1)?.token ?? '', inMs: 0 });
    for (const lock of [held, await second, await late]) await lock.release();
  });
});
