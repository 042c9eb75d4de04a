import { describe, expect, it } from '@jest/globals';
import type { AcquireOutcome, AcquireRequest, Held } from '../../lib/store/lock-store.js';

import { scriptedService } from '../support/scripted-service.js';
import { OUTAGE, heldFor } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';

const KEYS = ['a', 'b', 'c'];
const UNSENT = { ...OUTAGE, sent: false } as const;

/** The keys that are busy, with how long each has been held; every other one is granted, with a token of its own. */
function stage(busy: ReadonlyMap<string, number> = new Map()) {
  const service = scriptedService({ ttl: '30s', wait: '10m' });
  const { store } = service;
  const held = new Map(busy);
  const refusal = (key: string, line: AcquireRequest['line']): Held => ({
    ...heldFor(60_000, key),
    heldForMs: held.get(key) ?? 0,
    ...(line !== undefined && { ticket: 7 }),
  });
  const grant = ({ key, line }: AcquireRequest): AcquireOutcome =>
    held.has(key)
      ? refusal(key, line)
      : { status: 'granted', fencingToken: 10 + KEYS.indexOf(key), othersWait: false };
  store.onAcquire = grant;
  /** The keys in the order in which they were asked for. */
  const asked = (): readonly string[] => store.acquired.map(({ key }) => key);
  const released = (): readonly string[] => store.released.map(({ key }) => key);
  return { ...service, held, grant, asked, released };
}

describe('a call for several keys', () => {
  it('takes all of them at once where the store can', async () => {
    const { store, locks, asked } = stage();
    store.onAcquireTogether = () => ({ status: 'granted', fencingToken: 5, isPlain: true });
    const lock = await locks.acquire(KEYS);
    expect(lock.fencingToken).toBe(5);
    expect([asked(), store.extended]).toEqual([[], []]);
    await lock.release();
    expect(store.released).toMatchObject(KEYS.map((key) => ({ key, isPlain: true })));
  });

  it('takes them one by one otherwise, briefly, and all for its TTL under the largest token', async () => {
    const { store, locks, asked } = stage();
    const lock = await locks.acquire(['c', 'a', 'b']);
    expect(asked()).toEqual(KEYS);
    expect(new Set(store.acquired.map(({ ttlMs }) => ttlMs))).toEqual(new Set([2_000]));
    const renewal = { ttlMs: 30_000, fencingToken: 12, token: store.acquired[0]?.token };
    expect(store.extended).toMatchObject([KEYS.map((key) => ({ ...renewal, key }))]);
    expect(lock.fencingToken).toBe(12);
    await lock.release();
  });

  it('has no lock if one of them was lost meanwhile, and cleans up', async () => {
    const { store, locks, released } = stage();
    store.onExtend = ({ key }) =>
      key === 'a' ? { status: 'lost', reason: 'stolen' } : { status: 'extended' };
    await expect(locks.tryAcquire(KEYS)).rejects.toMatchObject({ code: 'LOCK_STORE_UNAVAILABLE' });
    expect([...released()].sort()).toEqual(KEYS);
  });
});

describe('a call for several keys that does not wait', () => {
  it('is refused at once where the store knows that one is held', async () => {
    const { store, locks, asked } = stage();
    store.onAcquireTogether = () => heldFor(700, 'b');
    expect(await locks.tryAcquire(KEYS)).toBeNull();
    expect(asked()).toEqual([]);
  });

  it('returns what it has when one of them is held', async () => {
    const { locks, asked, released } = stage(new Map([['c', 10]]));
    expect(await locks.tryAcquire(KEYS)).toBeNull();
    expect([asked(), released()]).toEqual([KEYS, ['a', 'b']]);
  });

  it('asks first for a key that did not reply before, so that it holds no other one meanwhile', async () => {
    const { store, locks, grant, asked } = stage();
    store.onAcquire = (request) => (request.key === 'c' ? OUTAGE : grant(request));
    await expect(locks.tryAcquire(KEYS)).rejects.toThrow();
    const before = asked().length;
    await expect(locks.tryAcquire(KEYS)).rejects.toThrow();
    expect(asked().slice(before)).toEqual(['c']);
    store.onAcquire = grant;
    await (await locks.tryAcquire(KEYS))?.release();
    expect(asked().slice(before + 1)).toEqual(['c', 'a', 'b']);
  });

  it.each([
    ['the first request', 'a', []],
    ['the second request', 'b', ['a']],
  ])('cleans up what was sent before when %s never left the process', async (_, at, left) => {
    const { store, locks, grant, released } = stage();
    store.onAcquire = (request) => (request.key === at ? UNSENT : grant(request));
    await expect(locks.tryAcquire(KEYS)).rejects.toThrow();
    expect(released()).toEqual(left);
  });

  it.each([
    ['the renewal', []],
    ['a release', ['c']],
  ])('cleans up all that it has when %s gets no reply', async (what, busy) => {
    const { store, locks, released, clock } = stage(new Map(busy.map((key) => [key, 10])));
    if (what === 'the renewal') store.onExtend = () => UNSENT;
    store.onRelease = () => (store.released.length > 2 ? { status: 'released' } : OUTAGE);
    await expect(locks.tryAcquire(KEYS)).rejects.toThrow();
    await clock.advance(1_000);
    const had = KEYS.filter((key) => !busy.includes(key));
    for (const key of had) expect(released()).toContain(key);
    expect(released().filter((key) => !had.includes(key))).toEqual([]);
  });
});

describe('a call for several keys that waits', () => {
  it('holds the keys before the busy one for 100 ms, then waits for that one alone', async () => {
    const { clock, locks, asked, released } = stage(new Map([['c', 10]]));
    const waiting = locks.acquire(KEYS).catch(() => undefined);
    await clock.advance(90);
    // The first attempt is made before messages are received. It can stand in no line, so it holds nothing.
    expect(asked()).toEqual([...KEYS, 'c', 'a', 'b']);
    expect([...released()].sort()).toEqual(['a', 'b']);
    await clock.advance(100);
    expect([...released().slice(2)].sort()).toEqual(['a', 'b']);
    const before = asked().length;
    await clock.advance(10_000);
    expect(new Set(asked().slice(before))).toEqual(new Set(['c']));
    locks.refuseWaiting();
    await waiting;
  });

  it.each([
    ['has been held for longer', 150],
    ['was held for longer lately', 0],
  ])('holds nothing where the busy key %s', async (what, heldForMs) => {
    const { clock, locks, held, released, asked } = stage(new Map([['c', 150]]));
    const first = locks.acquire(KEYS).catch(() => undefined);
    await settled();
    expect([...released()].sort()).toEqual(['a', 'b']);
    if (what === 'was held for longer lately') {
      held.set('c', heldForMs);
      const before = asked().length;
      const second = locks.acquire(['a', 'c']).catch(() => undefined);
      await settled();
      expect(asked().slice(before)).toEqual(['c']);
      locks.refuseWaiting();
      await second;
    }
    locks.refuseWaiting();
    await Promise.all([first, clock.advance(10)]);
  });

  it('asks for the others when it has the busy one, and returns that one if an earlier one is busy', async () => {
    const { store, locks, held, released, asked } = stage(new Map([['b', 150]]));
    const waiting = locks.acquire(KEYS);
    await settled();
    const before = asked().length;
    held.delete('b');
    held.set('a', 10);
    const { token = '' } = store.acquired.at(-1) ?? {};
    const given = released().length;
    store.reportReleased('b', { to: token, inMs: 0 });
    await settled();
    expect(asked().slice(before)).toEqual(['b', 'a']);
    expect(released().slice(given)).toEqual(['b']);
    held.clear();
    store.reportReleased('a', { to: token, inMs: 0 });
    await settled();
    expect(asked().slice(before)).toEqual(['b', 'a', 'a', 'b', 'c']);
    await (await waiting).release();
  });

  it('comes to another line as the last, and back to its own with its ticket', async () => {
    const { store, clock, locks, grant, held } = stage(new Map([['b', 150]]));
    const waiting = locks.acquire(KEYS).catch(() => undefined);
    await settled();
    const ticketsAt = (key: string): readonly unknown[] =>
      store.acquired
        .filter((each) => each.key === key && each.line)
        .map(({ line }) => line?.ticket);
    expect(ticketsAt('b').at(-1)).toBeUndefined();
    store.onAcquire = () => OUTAGE;
    store.reportReleased();
    await settled();
    store.onAcquire = grant;
    await clock.advance(200);
    expect(ticketsAt('b').at(-1)).toBe(7);
    held.delete('b');
    held.set('c', 150);
    store.reportReleased();
    await settled();
    expect(ticketsAt('c').at(-1)).toBeUndefined();
    locks.refuseWaiting();
    await waiting;
  });

  it('leaves the line in which it stands, and no other one', async () => {
    const { store, locks } = stage(new Map([['b', 150]]));
    const waiting = locks.acquire(KEYS).catch(() => undefined);
    await settled();
    locks.refuseWaiting();
    await waiting;
    await settled();
    expect(store.left).toEqual(['b']);
  });
});
