import { describe, expect, it, jest } from '@jest/globals';
import type { Lock, LockModuleOptions } from 'nestjs-holdfast';
import type { AcquireOutcome, Granted } from '../../lib/store/lock-store.js';
import { scriptedService } from '../support/scripted-service.js';
import { heldFor, OUTAGE } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';

/** A service that was granted a lock with these tokens; later requests are refused. */
function tenureOf(grant: Partial<Granted> = {}, options: LockModuleOptions['handoff'] = {}) {
  const scripted = scriptedService({ handoff: options ?? {}, wait: '1m' });
  const { store, locks, clock } = scripted;
  const grants: AcquireOutcome[] = [
    { status: 'granted', fencingToken: 10, isFromClock: true, othersWait: false, ...grant },
  ];
  store.onAcquire = () => grants.shift() ?? heldFor(60_000);
  /** The fencing tokens of those who get the lock, one after the other. */
  const takeTurns = async (callers: number, holdMs = 0): Promise<number[]> => {
    const tokens: number[] = [];
    const turns = Array.from({ length: callers }, async () => {
      const lock = await locks.acquire('key');
      tokens.push(lock.fencingToken);
      clock.block(holdMs);
      await lock.release();
    });
    for (const turn of turns) turn.catch(() => undefined);
    await settled();
    return tokens;
  };
  return { ...scripted, takeTurns };
}

/** The holder of a lock, and the next, who has it when the holder gives it back. */
async function holderAndNext({ locks }: ReturnType<typeof tenureOf>) {
  const holder = await locks.acquire('key');
  const next = locks.acquire('key');
  await settled();
  const passOn = async (): Promise<Lock> => {
    expect(await holder.release()).toBe(true);
    return next;
  };
  return { holder, passOn };
}

describe('turns under one lease', () => {
  it('have fencing tokens that grow by one', async () => {
    const { takeTurns } = tenureOf();
    expect(await takeTurns(10, 0.002)).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
  });

  it('number at most half of the us since the grant, which later grants have ahead of them', async () => {
    for (const [heldMs, turns] of [
      [0, 1],
      [0.001_9, 1],
      [0.002_1, 2],
      [0.003_9, 2],
      [0.004_1, 3],
      [0.009, 5],
    ] as const) {
      const { clock, locks, takeTurns } = tenureOf();
      const holder = await locks.acquire('key');
      const taking = takeTurns(10);
      await settled();
      clock.block(heldMs);
      await holder.release();
      await settled();
      expect([heldMs, 1 + (await taking).length]).toEqual([heldMs, turns]);
    }
  });

  it('raise the fence: each renewal and the release carry the last token that was used', async () => {
    const service = tenureOf({}, { tenure: '10s' });
    const { clock, store } = service;
    const lastTokens: (number | undefined)[] = [];
    store.release = async (_lease, lastToken?: number) => {
      lastTokens.push(lastToken);
      return { status: 'released' };
    };
    const { passOn } = await holderAndNext(service);
    await clock.advance(350);
    const lock = await passOn();
    await clock.advance(350);
    expect(store.extended).toMatchObject([[{ fencingToken: 10 }], [{ fencingToken: 11 }]]);
    await lock.release();
    expect(lastTokens).toEqual([11]);
  });

  it('are one alone where the fencing token is not known to be a reading of the clock', async () => {
    for (const isFromClock of [undefined, false]) {
      const { takeTurns } = tenureOf({ isFromClock });
      expect(await takeTurns(10, 1)).toEqual([10]);
    }
  });

  it('are counted where others wait, and where nobody knows', async () => {
    for (const othersWait of [true, undefined]) {
      const { takeTurns } = tenureOf({ othersWait }, { turns: 2 });
      expect(await takeTurns(10, 1)).toEqual([10, 11]);
    }
  });

  it('all have the fencing token of those who hold the key together', async () => {
    const { store, locks } = tenureOf({ isFromClock: false });
    const holder = await locks.acquire('key', { limit: 2 });
    const next = locks.acquire('key', { limit: 2 });
    await settled();
    await holder.release();
    expect((await next).fencingToken).toBe(10);
    expect(store.released).toEqual([]);
  });

  it('are none of a limiter, whose limit may have been lowered meanwhile: the store is asked', async () => {
    const { store, locks } = tenureOf();
    const limiter = locks.limiter('key', { limit: 2 });
    const holder = await limiter.acquire();
    limiter.acquire().catch(() => undefined);
    await settled();
    await holder.release();
    expect(store.released).toHaveLength(1);
  });

  it('end with a lease in jeopardy: it goes back to the store', async () => {
    const service = tenureOf({}, { tenure: '10s' });
    const { clock, store } = service;
    store.onExtend = () => OUTAGE;
    const { holder } = await holderAndNext(service);
    await clock.advance(350);
    expect(store.extended).toHaveLength(1);
    expect(await holder.release()).toBe(true);
    expect(store.released).toHaveLength(1);
  });
});

describe('a lease that was granted plainly', () => {
  it('is released plainly', async () => {
    const { store, takeTurns } = tenureOf({ isPlain: true });
    await takeTurns(1);
    expect(store.released).toMatchObject([{ isPlain: true }]);
  });

  it('is released as any other after one more turn, or if its keys stay taken', async () => {
    const turns = tenureOf({ isPlain: true });
    expect(await turns.takeTurns(2, 1)).toEqual([10, 11]);
    expect(turns.store.released).toMatchObject([{ isPlain: false }]);
    const { store, locks } = tenureOf({ isPlain: true });
    await (await locks.acquire('key', { minHold: 500 })).release();
    expect(store.released).toMatchObject([{ isPlain: false }]);
  });
});

describe('a turn that was given back', () => {
  it('is reported as a lock that was released, with the time that it was held for itself', async () => {
    const service = tenureOf({}, { tenure: '10s' });
    const { clock, released, store } = service;
    const { passOn } = await holderAndNext(service);
    await clock.advance(200);
    const lock = await passOn();
    await clock.advance(50);
    await lock.release();
    expect(released).toEqual([
      { keys: ['key'], mode: 'exclusive', fencingToken: 10, heldMs: 200 },
      { keys: ['key'], mode: 'exclusive', fencingToken: 11, heldMs: 50 },
    ]);
    expect(store.released).toHaveLength(1);
  });
});

describe('a turn', () => {
  it('is renewed when the lease is due, whenever it was passed on', async () => {
    const service = tenureOf({}, { tenure: '10s' });
    const { clock, store } = service;
    jest.spyOn(clock, 'random').mockReturnValue(0);
    const { passOn } = await holderAndNext(service);
    await clock.advance(250);
    await passOn();
    await clock.advance(50);
    expect(store.extended).toEqual([]);
    await clock.advance(10);
    expect(store.extended).toHaveLength(1);
  });
});

describe('how long a lock was held', () => {
  it('counts from the sending of its request', async () => {
    const { clock, store, locks, released } = scriptedService();
    store.onAcquire = () => {
      clock.block(300);
      return { status: 'granted', fencingToken: 1 };
    };
    const lock = await locks.acquire('key');
    await clock.advance(100);
    await lock.release();
    expect(released).toMatchObject([{ heldMs: 400 }]);
  });
});
