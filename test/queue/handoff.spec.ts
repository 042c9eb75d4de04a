import { afterAll, describe, expect, it } from '@jest/globals';
import {
  LockLostError,
  LockServiceClosedError,
  type Lock,
  type LockEvents,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import type { ExtendOutcome, Granted, WriteOutcome } from '../../lib/store/lock-store.js';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { heldFor, OUTAGE, silence } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';
import { share } from '../support/soak.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

/** A service over a store with one lock, whose fencing tokens are readings of its clock, and notes who was granted it. */
function turnsService(
  options: Omit<LockModuleOptions, 'redis' | 'store'> = {},
  grant: Partial<Granted> = {},
) {
  const scripted = scriptedService({ handoff: { tenure: '10s' }, wait: '1m', ...options });
  const { store } = scripted;
  /** First fencing token of each lease. */
  const leases: number[] = [];
  /** The fencing tokens that releases wrote back. */
  const writtenBack: (number | undefined)[] = [];
  let holder: string | undefined;
  store.onAcquire = ({ token }) => {
    if (holder !== undefined && holder !== token) return heldFor(60_000);
    holder = token;
    const fencingToken = (leases.length + 1) * 10_000;
    leases.push(fencingToken);
    return { status: 'granted', fencingToken, isFromClock: true, othersWait: false, ...grant };
  };
  const release = store.release.bind(store);
  store.release = (lease, lastToken?: number) => {
    if (lease.token === holder) {
      holder = undefined;
      writtenBack.push(lastToken);
    }
    return release(lease);
  };
  const acquired: LockEvents['acquired'][] = [];
  scripted.locks.on('acquired', (event) => acquired.push(event));
  return { ...scripted, leases, writtenBack, acquired };
}

type Service = ReturnType<typeof turnsService>;

/** Lets callers stand in line behind a holder, one after the other. */
async function holderAndLine(service: Service, count: number) {
  const holder = await service.locks.acquire('key');
  const waiting: Promise<Lock>[] = Array.from({ length: count }, () =>
    service.locks.acquire('key'),
  );
  await settled();
  // As long as it takes at least: the clock is past the token of the next turn.
  service.clock.block(count / 500);
  return { holder, waiting };
}

/** Everybody holds for so long, the holder first. Resolves with the fencing tokens, in the order of the turns. */
async function takeTurns(service: Service, count: number, holdMs = 0): Promise<number[]> {
  const { holder, waiting } = await holderAndLine(service, count - 1);
  const tokens: number[] = [];
  for (const acquiring of [holder, ...waiting]) {
    const lock = await acquiring;
    tokens.push(lock.fencingToken);
    service.clock.block(holdMs);
    await lock.release();
  }
  return tokens;
}

/** How many turns each lease had. */
function turnsPerLease(tokens: readonly number[]): number[] {
  const counts = new Map<number, number>();
  for (const token of tokens) {
    const lease = Math.floor(token / 10_000);
    counts.set(lease, (counts.get(lease) ?? 0) + 1);
  }
  return [...counts.values()];
}

/** Whether the next in line was granted a lease of its own, by the store. */
async function comesFromTheStore(service: Service, waiting: Promise<Lock>): Promise<void> {
  const before = service.leases.length;
  const lock = await waiting;
  expect(service.leases).toHaveLength(before + 1);
  expect(lock.fencingToken).toBe(service.leases.at(-1));
  await lock.release();
}

describe('callers of one process', () => {
  it.each([{ mode: 'shared' }, { limit: 2 }] as const)(
    'never take turns under a lease that others may have, too: %j',
    async (options) => {
      const service = turnsService();
      const holder = await service.locks.acquire('key', options);
      const waiting = service.locks.acquire('key');
      await settled();
      expect(await holder.release()).toBe(true);
      service.store.reportReleased('key');
      await comesFromTheStore(service, waiting);
    },
  );

  it('take no turns as readers, whatever fencing token they have', async () => {
    const service = turnsService();
    const holder = await service.locks.acquire('key', { mode: 'shared' });
    const waiting = service.locks.acquire('key', { mode: 'shared' });
    await settled();
    expect(await holder.release()).toBe(true);
    service.store.reportReleased('key');
    await comesFromTheStore(service, waiting);
  });

  it('HF-8 take turns under a limited lock with the fencing token of all who hold it', async () => {
    const { store, locks } = turnsService();
    store.onAcquire = () => ({ status: 'granted', fencingToken: 5 });
    const holder = await locks.acquire('key', { limit: 2 });
    store.onAcquire = () => heldFor(60_000);
    const waiting = locks.acquire('key', { limit: 2 });
    await settled();
    expect(await holder.release()).toBe(true);
    const next = await waiting;
    expect(next.fencingToken).toBe(5);
    await next.release();
    expect(store.released).toHaveLength(1);
  });

  it('take turns under one lease, first in, first out, and ask the store for nothing in between', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 5);
    const { store, leases, writtenBack } = service;
    const asked = store.acquired.length;
    const order: number[] = [];
    const turns = waiting.map(async (acquiring, index) => {
      const lock = await acquiring;
      order.push(index);
      expect(lock.isHeld).toBe(true);
      expect(lock.fencingToken).toBe(holder.fencingToken + 1 + index);
      await settled();
      expect(await lock.release()).toBe(true);
    });
    expect(await holder.release()).toBe(true);
    await Promise.all(turns);
    expect(order).toEqual([0, 1, 2, 3, 4]);
    expect(store.acquired).toHaveLength(asked);
    expect(leases).toHaveLength(1);
    // Given back once, with the last fencing token that was used.
    expect(writtenBack).toEqual([holder.fencingToken + 5]);
    expect(service.lost).toEqual([]);
    expect(service.clock.timers).toBe(0);
  });

  it('have each a lock of its own: one that was given back stays so', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 1);
    await holder.release();
    const next = (await waiting[0]) as Lock;
    expect(next).not.toBe(holder);
    expect(holder.isHeld).toBe(false);
    expect(holder.remainingMs).toBe(0);
    expect(holder.signal.aborted).toBe(false);
    expect(() => {
      holder.assertHeld();
    }).toThrow(LockLostError);
    await expect(holder.extend()).rejects.toMatchObject({ reason: 'released' });
    expect(await holder.release()).toBe(true); // as it was, and nobody else's lock is touched
    expect(next.isHeld).toBe(true);
    expect(service.store.released).toEqual([]);
    await next.release();
    expect(service.store.released).toHaveLength(1);
  });

  it('are reported one by one: acquired and released, each with its fencing token', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 2);
    for (const acquiring of [holder, ...waiting]) {
      const lock = await acquiring;
      await service.clock.advance(50);
      await lock.release();
    }
    const keys = ['key'];
    const tokens = [0, 1, 2].map((turn) => holder.fencingToken + turn);
    expect(service.acquired).toEqual(
      tokens.map((fencingToken, turn) => ({
        keys,
        mode: 'exclusive',
        fencingToken,
        waitedMs: turn * 50,
      })),
    );
    expect(service.released).toEqual(
      tokens.map((fencingToken) => ({ keys, mode: 'exclusive', fencingToken, heldMs: 50 })),
    );
    expect(service.leases).toHaveLength(1);
  });

  it('who hold the lock at the same time would be seen: nobody overlaps', async () => {
    const service = turnsService({ handoff: { turns: 3, tenure: 20 } }, { othersWait: true });
    let holders = 0;
    const work = async (): Promise<void> => {
      const lock = await service.locks.acquire('key');
      holders += 1;
      expect(holders).toBe(1);
      await settled();
      holders -= 1;
      service.clock.block(1);
      await lock.release();
    };
    await Promise.all(Array.from({ length: 50 }, work));
    expect(service.clock.timers).toBe(0);
  });
});

/** For callers who hold the lock for a millisecond. */
const THREE = { turns: 3, tenure: '10s' } as const;

describe('a tenure ends', () => {
  it('after so many turns while others wait', async () => {
    const service = turnsService({ handoff: THREE }, { othersWait: true });
    expect(turnsPerLease(await takeTurns(service, 7, 1))).toEqual([3, 3, 1]);
  });

  it('after 16 turns or 2 ms by default, whichever comes later', async () => {
    const service = turnsService({ handoff: {} }, { othersWait: true });
    expect(turnsPerLease(await takeTurns(service, 20, 0.125))).toEqual([16, 4]);
    const quick = turnsService({ handoff: {} }, { othersWait: true });
    // Turns that begin after 0 to 1.9 ms.
    expect(turnsPerLease(await takeTurns(quick, 25, 0.1))).toEqual([20, 5]);
  });

  it('after the time that turns do not count in, but no later than its end', async () => {
    const one = turnsService({ handoff: { turns: 1, tenure: 6 } }, { othersWait: true });
    expect(turnsPerLease(await takeTurns(one, 3, 0.5))).toEqual([1, 1, 1]);
    const two = turnsService({ handoff: { turns: 2, tenure: 6 } }, { othersWait: true });
    expect(turnsPerLease(await takeTurns(two, 9, 0.5))).toEqual([4, 4, 1]);
    const short = turnsService({ handoff: { turns: 2, tenure: 1 } }, { othersWait: true });
    expect(turnsPerLease(await takeTurns(short, 5, 0.5))).toEqual([2, 2, 1]);
  });

  it('after so many turns where nobody knows whether others wait', async () => {
    const service = turnsService({ handoff: THREE }, { othersWait: undefined });
    expect(turnsPerLease(await takeTurns(service, 4, 1))).toEqual([3, 1]);
  });

  it('after so many turns where the process had to wait for another one, which may be in line again by now', async () => {
    const service = turnsService({ handoff: THREE });
    const { store, clock } = service;
    const grant = store.onAcquire;
    let looks = 0;
    store.onAcquire = (request) => {
      looks += 1;
      return looks < 3 ? { ...heldFor(10), holder: 'holdfast:of-another-process' } : grant(request);
    };
    const waiting = Array.from({ length: 8 }, () => service.locks.acquire('key'));
    await clock.advance(100);
    const tokens: number[] = [];
    for (const acquiring of waiting) {
      const lock = await acquiring;
      tokens.push(lock.fencingToken);
      clock.block(1);
      await lock.release();
    }
    // It was met before the first lease only.
    expect(turnsPerLease(tokens)).toEqual([3, 5]);
  });

  it('not after that many while nobody else waits', async () => {
    const service = turnsService({ handoff: THREE });
    expect(turnsPerLease(await takeTurns(service, 40, 1))).toEqual([40]);
  });

  it('not after that many when the holder before was of this process, and the store says so', async () => {
    const service = turnsService({ handoff: { turns: 2, tenure: '10s' } });
    const { store } = service;
    const answer = store.onAcquire;
    store.onAcquire = async (request) => {
      const outcome = await answer(request);
      return outcome.status === 'held' ? { ...outcome, holder: store.acquired[0]?.token } : outcome;
    };
    const holder = await service.locks.acquire('key', { ttl: 2_000 });
    const waiting = Array.from({ length: 6 }, () => service.locks.acquire('key'));
    await settled();
    await holder.release();
    for (const acquiring of waiting) {
      const lock = await acquiring;
      service.clock.block(0.01);
      await lock.release();
    }
    expect(service.leases).toHaveLength(2);
  });

  it('after so long, whoever waits', async () => {
    const service = turnsService({ handoff: { tenure: 20 } });
    // Turns that begin after 0, 8 and 16 ms.
    expect(turnsPerLease(await takeTurns(service, 7, 8))).toEqual([3, 3, 1]);
  });

  it('after 20 ms by default', async () => {
    const service = turnsService({ handoff: {} });
    expect(turnsPerLease(await takeTurns(service, 4, 19))).toEqual([2, 2]);
    expect(turnsPerLease(await takeTurns(service, 2, 20))).toEqual([1, 1]);
  });

  it('with the last fencing token that the clock is sure to be past at the next grant', async () => {
    const service = turnsService();
    const tokens: number[] = [];
    const turns = Array.from({ length: 9 }, () => service.locks.acquire('key'));
    for (const acquiring of turns) {
      const lock = await acquiring;
      tokens.push(lock.fencingToken);
      // The first turn of each lease lasts 7 us, which are enough for the tokens of three more.
      if (lock.fencingToken % 10_000 === 0) service.clock.block(0.007);
      await lock.release();
    }
    expect(turnsPerLease(tokens)).toEqual([4, 4, 1]);
    expect(service.writtenBack).toEqual([10_003, 20_003, 30_000]);
    expect([...tokens].sort((a, b) => a - b)).toEqual(tokens);
  });

  it.each<[string, LockModuleOptions['handoff'], Partial<Granted>]>([
    ['handoff: false', false, {}],
    ['handoff: { turns: 1 } while others wait', { turns: 1, tenure: '10s' }, { othersWait: true }],
    ['a token that is no reading of the clock', { tenure: '10s' }, { isFromClock: false }],
    ['a store that says nothing of its tokens', { tenure: '10s' }, { isFromClock: undefined }],
  ])('with every release: %s', async (_what, handoff, grant) => {
    const service = turnsService({ handoff: handoff ?? false }, grant);
    expect(turnsPerLease(await takeTurns(service, 4, 1))).toEqual([1, 1, 1, 1]);
    expect(service.writtenBack).toEqual(service.leases);
  });
});

describe('a lease is not passed on', () => {
  it('to a caller who asked for another TTL', async () => {
    const service = turnsService();
    const holder = await service.locks.acquire('key');
    const other = service.locks.acquire('key', { ttl: 2_000 });
    await settled();
    await holder.release();
    await comesFromTheStore(service, other);
    expect(service.store.acquired.at(-1)?.ttlMs).toBe(2_000);
  });

  it('over the head of such a caller to one behind', async () => {
    const service = turnsService();
    const order: string[] = [];
    const holder = await service.locks.acquire('key');
    const turns = [service.locks.acquire('key', { ttl: 2_000 }), service.locks.acquire('key')].map(
      async (acquiring, index) => {
        const lock = await acquiring;
        order.push(String(index));
        await lock.release();
      },
    );
    await settled();
    await holder.release();
    await Promise.all(turns);
    expect(order).toEqual(['0', '1']);
  });

  it.each([
    ['the next', true, false],
    ['the holder', false, true],
    ['both', false, false],
  ])('when it is not to be renewed for %s', async (_who, autoExtend, nextAutoExtend) => {
    const service = turnsService();
    const holder = await service.locks.acquire('key', { autoExtend });
    const next = service.locks.acquire('key', { autoExtend: nextAutoExtend });
    await settled();
    await holder.release();
    await comesFromTheStore(service, next);
  });

  it('with a TTL that the holder gave it by hand', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 1);
    await holder.extend(5_000);
    await holder.release();
    await comesFromTheStore(service, waiting[0] as Promise<Lock>);
  });

  it('with a longer TTL that is on its way to the store', async () => {
    const service = turnsService();
    const answer = deferred<ExtendOutcome>();
    service.store.onExtend = () => answer.promise;
    const { holder, waiting } = await holderAndLine(service, 1);
    const extending = expect(holder.extend(60_000)).rejects.toMatchObject({ reason: 'released' });
    await holder.release();
    await comesFromTheStore(service, waiting[0] as Promise<Lock>);
    answer.resolve({ status: 'extended' });
    await extending;
  });

  it.each<[string, WriteOutcome | undefined, boolean]>([
    ['are on their way', undefined, false],
    ['had no answer', OUTAGE, false],
    ['were never sent', { ...OUTAGE, sent: false }, true],
    ['failed', { status: 'failed', index: 0, message: 'WRONGTYPE' }, true],
    ['were carried out', { status: 'written', replies: ['OK'] }, true],
  ])(
    'under which the commands of its holder may come late: they %s',
    async (_, outcome, passes) => {
      const service = turnsService();
      const { holder, waiting } = await holderAndLine(service, 1);
      const answer = deferred<WriteOutcome>();
      service.store.onWrite = () => outcome ?? answer.promise;
      const writing = holder.guarded([['set', 'balance', 'A']]).catch(() => undefined);
      if (outcome !== undefined) await writing;
      await holder.release();
      if (passes) await (await waiting[0])?.release();
      else await comesFromTheStore(service, waiting[0] as Promise<Lock>);
      expect(service.leases).toHaveLength(passes ? 1 : 2);
      answer.resolve({ status: 'lost', reason: 'released-elsewhere' });
      await writing;
    },
  );

  it('when its last renewal failed', async () => {
    const service = turnsService();
    service.store.onExtend = () => OUTAGE;
    const { holder, waiting } = await holderAndLine(service, 1);
    await service.clock.advance(350);
    expect(service.store.extended).toHaveLength(1);
    expect(holder.isHeld).toBe(true);
    await holder.release();
    await comesFromTheStore(service, waiting[0] as Promise<Lock>);
  });

  it('but is again when a later renewal worked', async () => {
    const service = turnsService();
    service.store.onExtend = () => OUTAGE;
    const { holder, waiting } = await holderAndLine(service, 1);
    await service.clock.advance(350);
    service.store.onExtend = () => ({ status: 'extended' });
    await service.clock.advance(300);
    await holder.release();
    await (await waiting[0])?.release();
    expect(service.leases).toHaveLength(1);
  });

  it('when less than half of its validity is left', async () => {
    for (const [heldMs, leases] of [
      [450, 1],
      [550, 2],
    ] as const) {
      const service = turnsService();
      service.store.onExtend = () => silence<ExtendOutcome>();
      const { holder, waiting } = await holderAndLine(service, 1);
      await service.clock.advance(heldMs);
      await holder.release();
      await (await waiting[0])?.release();
      expect(service.leases).toHaveLength(leases);
    }
  });

  it('when it is lost', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 1);
    service.store.onExtend = () => ({ status: 'lost', reason: 'stolen' });
    await expect(holder.extend()).rejects.toThrow(LockLostError);
    expect(await holder.release()).toBe(false);
    expect(service.lost).toHaveLength(1);
    expect(service.leases).toHaveLength(1);
    // Somebody else has it: the next is called when that one is done.
    await service.store.release({ keys: ['key'], token: service.store.acquired[0]?.token ?? '' });
    service.store.reportReleased('key');
    await comesFromTheStore(service, waiting[0] as Promise<Lock>);
  });

  it('when it is over, and the event loop was blocked until then', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 1);
    service.clock.block(1_000);
    expect(await holder.release()).toBe(false);
    await comesFromTheStore(service, waiting[0] as Promise<Lock>);
  });

  it('when exactly half of its validity is left', async () => {
    const service = turnsService();
    service.store.onExtend = () => silence<ExtendOutcome>();
    const { holder, waiting } = await holderAndLine(service, 1);
    await service.clock.advance(499);
    await holder.release();
    await comesFromTheStore(service, waiting[0] as Promise<Lock>);
  });

  it('once nobody may wait any more', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 2);
    const outcomes = Promise.allSettled(waiting);
    service.locks.refuseWaiting();
    expect(await holder.release()).toBe(true);
    for (const outcome of await outcomes)
      expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(LockServiceClosedError);
    expect(service.writtenBack).toEqual([10_000]);
    await service.locks.shutdown();
    expect(service.clock.timers).toBe(0);
  });

  it('after a shutdown: the turn that is being taken is the last', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 2);
    const [next, last] = waiting as [Promise<Lock>, Promise<Lock>];
    await holder.release();
    const lock = await next;
    const sentAway = expect(last).rejects.toThrow(LockServiceClosedError);
    let isDown = false;
    const down = service.locks.shutdown().then(() => (isDown = true));
    await sentAway;
    await settled();
    expect(isDown).toBe(false);
    expect(lock.isHeld).toBe(true);
    expect(await lock.release()).toBe(true);
    await down;
    expect(service.writtenBack).toEqual([10_001]);
    expect(service.clock.timers).toBe(0);
  });
});

describe('a lease that was passed on', () => {
  it('is ended by a shutdown whose time is up', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 1);
    await holder.release();
    const lock = await waiting[0];
    const down = service.locks.shutdown(500);
    await service.clock.advance(501);
    await down;
    expect(lock?.isHeld).toBe(false);
    expect(service.lost).toEqual([
      { keys: ['key'], mode: 'exclusive', fencingToken: 10_001, reason: 'shutdown' },
    ]);
    expect(service.writtenBack).toHaveLength(1);
    expect(service.clock.timers).toBe(0);
  });

  it('is not taken for one that nobody has: a call to its token ends no turn', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 2);
    await holder.release();
    const lock = await waiting[0];
    const { token } = service.store.acquired[0] ?? { token: '' };
    service.store.reportReleased('key', { to: token, inMs: 0 });
    await settled();
    expect(service.store.left).toEqual([]);
    expect(await lock?.release()).toBe(true);
    await (await waiting[1])?.release();
    expect(service.leases).toHaveLength(1);
  });
});

describe('the renewal of a lease that is passed on', () => {
  /** A lease whose renewal is on its way while it is passed on, and the answer to it. */
  async function passedOnWhileRenewed() {
    const service = turnsService();
    const answer = deferred<ExtendOutcome>();
    service.store.onExtend = () => answer.promise;
    const { holder, waiting } = await holderAndLine(service, 2);
    const [next, last] = waiting as [Promise<Lock>, Promise<Lock>];
    await service.clock.advance(400);
    expect(service.store.extended).toHaveLength(1);
    await holder.release();
    return { service, answer, holder, lock: await next, last };
  }

  it('that was on its way moves the deadline of the new turn', async () => {
    const { service, answer, lock, last } = await passedOnWhileRenewed();
    expect(lock.remainingMs).toBeLessThanOrEqual(600);
    answer.resolve({ status: 'extended' });
    await settled();
    expect(lock.remainingMs).toBeGreaterThan(900);
    service.store.onExtend = () => ({ status: 'extended' });
    await service.clock.advance(5_000);
    expect(lock.isHeld).toBe(true);
    expect(service.store.extended.length).toBeGreaterThan(10);
    expect(service.store.extended.length).toBeLessThan(25);
    await lock.release();
    await (await last).release();
    expect(service.clock.timers).toBe(0);
  });

  it('is one at a time: the new turn sends none while that is on its way', async () => {
    const { service, answer, lock, last } = await passedOnWhileRenewed();
    await service.clock.advance(100);
    expect(service.store.extended).toHaveLength(1);
    answer.resolve({ status: 'extended' });
    await lock.release();
    await (await last).release();
  });

  it('that was on its way and fails leaves the deadline where it was', async () => {
    const { service, answer, lock, last } = await passedOnWhileRenewed();
    answer.resolve(OUTAGE);
    service.store.onExtend = () => OUTAGE;
    await service.clock.advance(550);
    expect(lock.isHeld).toBe(true);
    await service.clock.advance(60);
    expect(lock.isHeld).toBe(false);
    expect(service.lost).toEqual([
      {
        keys: ['key'],
        mode: 'exclusive',
        fencingToken: lock.fencingToken,
        reason: 'store-unavailable',
      },
    ]);
    expect((await last).fencingToken).toBe(20_000);
    await (await last).release();
  });

  it('that was on its way and finds the lock lost ends the new turn, and nothing is handed out after it', async () => {
    const { service, answer, holder, lock, last } = await passedOnWhileRenewed();
    const { signal } = lock;
    service.store.onAcquire = () => heldFor(60_000);
    answer.resolve({ status: 'lost', reason: 'stolen' });
    await settled();
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(signal.reason).toMatchObject({ reason: 'stolen', fencingToken: lock.fencingToken });
    expect(lock.isHeld).toBe(false);
    expect(holder.signal.aborted).toBe(false);
    expect(service.lost).toEqual([
      { keys: ['key'], mode: 'exclusive', fencingToken: lock.fencingToken, reason: 'stolen' },
    ]);
    let isHandedOut = false;
    void last.then(() => (isHandedOut = true));
    expect(await lock.release()).toBe(false);
    await service.clock.advance(1_000);
    expect(isHandedOut).toBe(false);
    service.store.onAcquire = () => ({ status: 'granted', fencingToken: 90_000 });
    service.store.reportReleased('key');
    expect((await last).fencingToken).toBe(90_000);
    await (await last).release();
  });

  it('that finds the lock lost while the next is about to get it hands out nothing', async () => {
    const service = turnsService();
    const answer = deferred<ExtendOutcome>();
    service.store.onExtend = () => answer.promise;
    const { holder, waiting } = await holderAndLine(service, 1);
    const refusal = expect(waiting[0]).rejects.toMatchObject({ reason: 'stolen' });
    await service.clock.advance(400);
    const released = holder.release(); // the next has its turn when the event loop comes round
    answer.resolve({ status: 'lost', reason: 'stolen' });
    await Promise.all([released, refusal]);
    expect(service.clock.timers).toBe(0);
  });

  it('goes on without a pause, also through turns that are all shorter than its interval', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 60);
    for (const acquiring of [holder, ...waiting]) {
      const lock = await acquiring;
      await service.clock.advance(100);
      expect(lock.isHeld).toBe(true);
      await lock.release();
    }
    expect(service.leases).toHaveLength(1);
    expect(service.lost).toEqual([]);
    // For 6 s, at a third of the TTL of one second.
    expect(service.store.extended.length).toBeGreaterThanOrEqual(17);
    expect(service.store.extended.length).toBeLessThanOrEqual(24);
    expect(service.clock.timers).toBe(0);
  });

  it('that the old holder waits for tells it that its lock was given back', async () => {
    const service = turnsService();
    const answer = deferred<ExtendOutcome>();
    service.store.onExtend = () => answer.promise;
    const { holder, waiting } = await holderAndLine(service, 1);
    await service.clock.advance(400);
    const extending = expect(holder.extend()).rejects.toMatchObject({ reason: 'released' });
    await holder.release();
    const lock = await waiting[0];
    answer.resolve({ status: 'extended' });
    await extending;
    expect(lock?.isHeld).toBe(true);
    await lock?.release();
  });

  it('that the old holder asked for by hand is the new turn’s', async () => {
    const service = turnsService();
    const answer = deferred<ExtendOutcome>();
    service.store.onExtend = () => answer.promise;
    const { holder, waiting } = await holderAndLine(service, 1);
    await service.clock.advance(200);
    const extending = expect(holder.extend()).rejects.toMatchObject({ reason: 'released' });
    await holder.release();
    const lock = await waiting[0];
    expect(lock?.remainingMs).toBeLessThan(800);
    answer.resolve({ status: 'extended' });
    await extending;
    expect(lock?.remainingMs).toBeGreaterThan(900);
    expect(await lock?.release()).toBe(true);
  });
});

describe('a turn', () => {
  it('has a maxHold of its own, counted from its beginning', async () => {
    const service = turnsService();
    const holder = await service.locks.acquire('key', { maxHold: 300 });
    const waiting = service.locks.acquire('key', { maxHold: 300 });
    await service.clock.advance(200);
    await holder.release();
    const lock = await waiting;
    await service.clock.advance(250);
    expect(lock.isHeld).toBe(true);
    await service.clock.advance(60);
    expect(lock.isHeld).toBe(false);
    expect(service.leases).toHaveLength(1);
    expect(service.lost).toEqual([
      { keys: ['key'], mode: 'exclusive', fencingToken: 10_001, reason: 'max-hold' },
    ]);
  });

  it('of a caller without maxHold is not ended by the one before', async () => {
    const service = turnsService();
    const holder = await service.locks.acquire('key', { maxHold: 300 });
    const waiting = service.locks.acquire('key');
    await service.clock.advance(200);
    await holder.release();
    const lock = await waiting;
    await service.clock.advance(3_000);
    expect(lock.isHeld).toBe(true);
    expect(await lock.release()).toBe(true);
    expect(service.lost).toEqual([]);
  });
});

describe('the event loop', () => {
  it('goes on every 10 ms, however many callers take turns without any I/O', async () => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 100);
    let turns = 0;
    const chain = waiting.map(async (acquiring) => {
      const lock = await acquiring;
      turns += 1;
      service.clock.block(3);
      await lock.release();
    });
    const seen: number[] = [];
    const look = (): void => {
      seen.push(turns);
      if (turns < 100) setImmediate(look);
    };
    setImmediate(look);
    await holder.release();
    await Promise.all(chain);
    expect(service.leases).toHaveLength(1);
    const inARow = seen.map((count, index) => count - (seen[index - 1] ?? 0));
    expect(Math.max(...inARow)).toBeLessThanOrEqual(4);
    expect(Math.max(...inARow)).toBeGreaterThan(1);
  });

  it.each([
    [9, true],
    [10, false],
  ])('has the next wait for its turn after %d ms: at once is %s', async (heldMs, atOnce) => {
    const service = turnsService();
    const { holder, waiting } = await holderAndLine(service, 1);
    let isGranted = false;
    const next = waiting[0]?.then((lock) => {
      isGranted = true;
      return lock;
    });
    service.clock.block(heldMs);
    const released = holder.release();
    for (let turn = 0; turn < 100; turn += 1) await Promise.resolve();
    expect(isGranted).toBe(atOnce);
    await released;
    await (await next)?.release();
    expect(service.leases).toHaveLength(1);
  });

  /** A holder that has held for so long that the next has its turn only when the event loop comes round. */
  async function aboutToPassOn(count: number) {
    const service = turnsService();
    const controller = new AbortController();
    const holder = await service.locks.acquire('key');
    const gone = service.locks.acquire('key', { signal: controller.signal });
    const waiting: Promise<Lock>[] = Array.from({ length: count }, () =>
      service.locks.acquire('key'),
    );
    await settled();
    service.clock.block(11);
    const released = holder.release();
    return { service, controller, gone, waiting, released };
  }

  it('may take a caller away before its turn: the next has it, and the lock is not lost', async () => {
    const { service, controller, gone, waiting, released } = await aboutToPassOn(1);
    const reason = new Error('gone');
    controller.abort(reason);
    await expect(gone).rejects.toBe(reason);
    expect(await released).toBe(true);
    const lock = await waiting[0];
    expect(lock?.isHeld).toBe(true);
    // The turn that nobody took used up a fencing token.
    expect(lock?.fencingToken).toBe(10_002);
    expect(await lock?.release()).toBe(true);
    expect(service.leases).toHaveLength(1);
    expect(service.lost).toEqual([]);
    expect(service.clock.timers).toBe(0);
  });

  it('may take the last caller away before its turn: the lock goes back to the store', async () => {
    const { service, controller, gone, released } = await aboutToPassOn(0);
    controller.abort(new Error('gone'));
    await expect(gone).rejects.toThrow('gone');
    await released;
    await settled();
    await settled();
    expect(service.writtenBack).toEqual([10_001]);
    expect(service.lost).toEqual([]);
    expect(service.clock.timers).toBe(0);
  });
});

describe('after the last turn', () => {
  it('no lease, no timer and nothing in the store is left of thousands of keys', async () => {
    const { store, clock, locks } = turnsService();
    let granted = 0;
    const holders = new Map<string, string>();
    store.acquire = async ({ keys: [key = ''], token }) => {
      if ((holders.get(key) ?? token) !== token) return heldFor(60_000, key);
      holders.set(key, token);
      granted += 1;
      const fencingToken = granted * 10_000;
      return { status: 'granted', fencingToken, isFromClock: true, othersWait: false };
    };
    store.release = async ({ keys: [key = ''], token }) => {
      return {
        status: holders.get(key) === token && holders.delete(key) ? 'released' : 'not-held',
      };
    };
    const KEYS = share(3_000, 100_000);
    const AT_ONCE = 1_000;
    for (let first = 0; first < KEYS; first += AT_ONCE) {
      await Promise.all(
        Array.from({ length: AT_ONCE }, async (_, index) => {
          const key = `order:${String(first + index)}`;
          const holder = await locks.acquire(key);
          const next = locks.acquire(key);
          await settled();
          clock.block(0.01);
          await holder.release();
          await (await next).release();
        }),
      );
    }
    await settled();
    expect(granted).toBe(KEYS);
    expect(holders.size).toBe(0);
    expect(clock.timers).toBe(0);
    // Waits for every lease that it still knows of.
    await locks.shutdown();
  }, 120_000);
});
