import { describe, expect, it } from '@jest/globals';
import { RecentMap } from '../../lib/collections/recent-map.js';
import { EarlierKeys, type EarlierDependencies } from '../../lib/queue/earlier-keys.js';
import type { Held, LeaseRequest, Unavailable } from '../../lib/store/lock-store.js';
import { heldFor, OUTAGE } from '../support/scripted-store.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const TTL_MS = 10_000;

/** A call for the keys a, b and c, over a store that holds keys for it as it asks. */
function callForThree() {
  const clock = new VirtualRuntime();
  const slow = new RecentMap<string, true>(9);
  const givenUp: LeaseRequest[] = [];
  const others: { outage?: Unavailable; wantsInside?: readonly [key: string, busy: string] } = {};
  const dependencies = {
    scheduler: { runtime: clock },
    slow,
    requests: {
      giveUp: async (lease: LeaseRequest) => {
        givenUp.push(lease);
        return others.outage;
      },
    },
    isWantedInside(keys: readonly string[], busy: string) {
      const [key = '', around] = others.wantsInside ?? [];
      return keys.includes(key) && busy === around;
    },
  } as unknown as EarlierDependencies;
  const call = new EarlierKeys(['a', 'b', 'c'], dependencies);
  /** The store refuses the next request at this key. */
  const refusedAt = (key: string, said: Partial<Held> = {}) => {
    const keeps = call.keepsFor(TTL_MS);
    call.meets(key);
    const held: Held = { ...heldFor(60_000, key), heldForMs: 0, kept: keeps !== undefined };
    return call.refused({ ...held, ...said }, keeps, 'token');
  };
  return { clock, slow, givenUp, others, call, refusedAt };
}

describe('a call for several keys', () => {
  it('asks for the key at which it was refused first, then for the others in their order', async () => {
    const { call, refusedAt } = callForThree();
    expect(call.asked).toEqual(['a', 'b', 'c']);
    await refusedAt('b');
    expect(call.asked).toEqual(['b', 'a', 'c']);
    await refusedAt('c');
    expect(call.asked).toEqual(['c', 'a', 'b']);
    call.meets('of another call');
    expect(call.asked).toEqual(['c', 'a', 'b']);
    call.granted();
    expect(call.asked).toEqual(['a', 'b', 'c']);
  });

  it('asks to hold the keys before the next busy one for 100 ms, and a second if it dies, or a shorter TTL', async () => {
    const { call, refusedAt } = callForThree();
    expect(call.keepsFor(TTL_MS)).toEqual({ limitMs: 100, ttlMs: 1_100, before: 0 });
    await refusedAt('c');
    expect(call.keepsFor(TTL_MS)).toEqual({ limitMs: 100, ttlMs: 1_100, before: 2 });
    expect(call.keepsFor(500)).toEqual({ limitMs: 100, ttlMs: 500, before: 2 });
  });

  it('holds the keys before the busy one for 100 ms, and then waits for that one alone', async () => {
    const { clock, call, givenUp, refusedAt } = callForThree();
    expect(call.leftMs).toBe(Infinity);
    await refusedAt('c');
    clock.block(99);
    expect(call.leftMs).toBe(1);
    await refusedAt('c');
    expect(givenUp).toEqual([]);
    clock.block(50);
    expect(call.leftMs).toBe(0);
    expect(call.keepsFor(TTL_MS)).toBeUndefined();
    await refusedAt('c');
    expect(givenUp).toEqual([{ keys: ['a', 'b'], token: 'token', ttlMs: 1_100 }]);
    expect(call.leftMs).toBe(Infinity);
  });

  it('has no more time for keys because another one is busy meanwhile', async () => {
    const { clock, call, givenUp, refusedAt } = callForThree();
    await refusedAt('b');
    clock.block(60);
    await refusedAt('c');
    expect(call.leftMs).toBe(40);
    clock.block(40);
    await refusedAt('c');
    expect(givenUp).toMatchObject([{ keys: ['a', 'b'] }]);
  });

  it('has twice the time after it has waited for a key alone, up to a second, until it is granted all', async () => {
    const { clock, call, refusedAt } = callForThree();
    const limits: (number | undefined)[] = [];
    for (const key of ['b', 'c', 'b', 'c', 'b', 'c']) {
      await refusedAt(key);
      limits.push(call.leftMs);
      clock.block(call.leftMs);
      await refusedAt(key);
    }
    expect(limits).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    call.granted();
    await refusedAt('b');
    expect(call.leftMs).toBe(100);
  });

  it('holds nothing at its first key, or where the store has kept nothing', async () => {
    const { call, givenUp, refusedAt } = callForThree();
    await refusedAt('a');
    expect(call.leftMs).toBe(Infinity);
    await refusedAt('b', { kept: false });
    expect(call.leftMs).toBe(Infinity);
    expect(givenUp).toEqual([]);
  });

  it('holds nothing that it has not asked for', async () => {
    const { call } = callForThree();
    await call.refused({ ...heldFor(60_000, 'b'), kept: true }, undefined, 'token');
    expect(call.leftMs).toBe(Infinity);
  });

  it('does not yield keys that it comes to hold later', async () => {
    const { call, givenUp, refusedAt } = callForThree();
    await refusedAt('b');
    call.yield();
    await refusedAt('c');
    await refusedAt('b');
    expect({ left: call.leftMs, givenUp }).toEqual({ left: 200, givenUp: [] });
  });

  it('gives back what it holds when it is to yield, at its next look', async () => {
    const { call, givenUp, refusedAt } = callForThree();
    await refusedAt('b');
    call.yield();
    expect(call.leftMs).toBe(0);
    await refusedAt('b');
    expect(givenUp).toMatchObject([{ keys: ['a'] }]);
    await refusedAt('c');
    expect(call.leftMs).toBeGreaterThan(0);
  });

  it('hears of the outage that keeps it from giving keys back', async () => {
    const { call, others, refusedAt } = callForThree();
    others.outage = OUTAGE;
    await refusedAt('b');
    call.yield();
    expect(await refusedAt('b')).toBe(OUTAGE);
  });

  it('gives keys back at once that a section around the busy one waits for', async () => {
    const { givenUp, others, refusedAt } = callForThree();
    others.wantsInside = ['a', 'c'];
    await refusedAt('b');
    expect(givenUp).toEqual([]);
    await refusedAt('c');
    expect(givenUp).toMatchObject([{ keys: ['a', 'b'] }]);
  });
});

describe('a call that waits for b and holds a', () => {
  const heldAround =
    (...keys: readonly string[]) =>
    (key: string): boolean =>
      keys.includes(key);

  it.each([
    { wanted: ['a'], around: ['b'], blocks: true },
    { wanted: ['z', 'a'], around: ['y', 'b'], blocks: true },
    { wanted: ['a'], around: ['c'], blocks: false },
    { wanted: ['c', 'z'], around: ['b'], blocks: false },
  ])('blocks one for $wanted in a section that holds $around: $blocks', async (sample) => {
    const { call, refusedAt } = callForThree();
    await refusedAt('b');
    expect(call.blocks(sample.wanted, heldAround(...sample.around))).toBe(sample.blocks);
  });

  it('blocks no call before it holds a, nor after', async () => {
    const { call, refusedAt } = callForThree();
    const always = (): boolean => true;
    expect(call.blocks(['a'], always)).toBe(false);
    await refusedAt('b');
    call.forget();
    expect(call.blocks(['a'], always)).toBe(false);
    await refusedAt('b', { kept: false });
    expect(call.blocks(['a'], always)).toBe(false);
  });
});

describe('a key that has been held for as long as a call may hold others', () => {
  it.each([
    { heldForMs: 99, givesBack: false },
    { heldForMs: 100, givesBack: true },
  ])('is not waited for with other keys: $heldForMs ms', async ({ heldForMs, givesBack }) => {
    const { call, givenUp, refusedAt } = callForThree();
    await refusedAt('b', { heldForMs });
    expect(givenUp).toHaveLength(givesBack ? 1 : 0);
    expect(call.leftMs).toBe(givesBack ? Infinity : 100);
  });

  it('is not waited for with other keys by later calls, whose holder has just begun', async () => {
    const { call, slow, givenUp, refusedAt } = callForThree();
    slow.set('b', true);
    await refusedAt('b', { heldForMs: 1 });
    expect(givenUp).toMatchObject([{ keys: ['a'] }]);
    expect(call.leftMs).toBe(Infinity);
  });

  it.each([
    { waitedMs: 99, isSlow: false },
    { waitedMs: 100, isSlow: true },
  ])('counts as slow after a call had it in $waitedMs ms: $isSlow', async (sample) => {
    for (const next of ['granted', 'refused at another key'] as const) {
      const { clock, call, slow, refusedAt } = callForThree();
      clock.block(1_000);
      await refusedAt('b', { heldForMs: 500 });
      expect(slow.has('b')).toBe(true);
      clock.block(sample.waitedMs);
      if (next === 'granted') call.granted();
      else await refusedAt('c');
      expect(slow.has('b')).toBe(sample.isSlow);
    }
  });
});
