import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  LockDeadlockError,
  LockLostError,
  LockNotAcquiredError,
  LockService,
  WithLock,
} from 'nestjs-holdfast';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { detailOf } from '../support/detail.js';
import { deferred } from '../support/eventually.js';
import { watchRejections } from '../support/scripted-service.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';
import { storeOption } from '../../lib/options/location.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

let clock: VirtualRuntime;
let locks: LockService;
let store: MemoryLockStore;
let log: string[];

beforeEach(() => {
  clock = new VirtualRuntime();
  store = new MemoryLockStore(clock);
  locks = new LockService({ store: storeOption(store), ttl: '1m' }, { runtime: clock });
  log = [];
});

/** Takes an outer lock, and when the test lets it go on, an inner one. */
function nestedCall(outer: string, inner: string, service = locks, wait = 10_000) {
  const mayGoOn = deferred();
  const done = service.run(outer, async () => {
    await mayGoOn.promise;
    await service.run(inner, { wait }, () => {
      log.push(`${outer} got ${inner}`);
    });
  });
  const outcome = done.then(
    () => 'done' as const,
    (error: unknown) => error,
  );
  return {
    outcome,
    async goOn() {
      mayGoOn.resolve();
      await settled();
    },
  };
}

describe('calls that wait for each other inside their sections', () => {
  it('are told at once: the one that closes the circle; the other one gets its lock', async () => {
    const [first, second] = [nestedCall('a', 'b'), nestedCall('b', 'a')];
    await settled();
    await first.goOn();
    await second.goOn();

    const error = await second.outcome;
    expect(error).toBeInstanceOf(LockDeadlockError);
    expect(error).toMatchObject({ keys: ['a'], circle: ['a', 'b'], code: 'LOCK_DEADLOCK' });
    expect(detailOf(error)).toBe(
      'Lock "a" was not waited for, because that would never end: "a" is held by a call which waits for "b", held by this call. ' +
        'Take all of the keys in one call, or in the same order everywhere.',
    );
    expect(clock.now().monotonicMs).toBe(0);
    expect(await first.outcome).toBe('done');
    expect(log).toEqual(['a got b']);
  });

  it('may be three', async () => {
    const calls = [nestedCall('a', 'b'), nestedCall('b', 'c'), nestedCall('c', 'a')] as const;
    await settled();
    for (const call of calls) await call.goOn();

    const error = await calls[2].outcome;
    expect(error).toMatchObject({ keys: ['a'], circle: ['a', 'b', 'c'] });
    expect(detailOf(error)).toContain(
      '"a" is held by a call which waits for "b", held by another one, which waits for "c", held by this call.',
    );
    expect(await Promise.all([calls[0].outcome, calls[1].outcome])).toEqual(['done', 'done']);
    expect(log).toEqual(['b got c', 'a got b']);
  });

  it('may hold the keys further out, and ask for several', async () => {
    const first = nestedCall('a', 'b');
    const mayGoOn = deferred();
    const second = locks.run('b', () =>
      locks.run('x', async () => {
        await mayGoOn.promise;
        await locks.run(['a', 'y'], { wait: '1s' }, () => undefined);
      }),
    );
    await settled();
    await first.goOn();
    mayGoOn.resolve();
    await expect(second).rejects.toMatchObject({ circle: ['a', 'b'], keys: ['a', 'y'] });
    expect(await first.outcome).toBe('done');
  });

  it('may be decorated methods', async () => {
    class Accounts {
      @WithLock('account:<0>', { wait: '10s' })
      async move(_from: string, to: string, gate: Promise<void>): Promise<void> {
        await gate;
        await this.deposit(to);
      }

      @WithLock('account:<to>', { wait: '10s' })
      async deposit(to: string): Promise<void> {
        log.push(`deposited on ${to}`);
      }
    }
    const accounts = locks.bind(new Accounts());
    const gate = deferred();
    const moves = Promise.allSettled([
      accounts.move('1', '2', gate.promise),
      accounts.move('2', '1', gate.promise),
    ]);
    await settled();
    gate.resolve();
    const results = await moves;
    expect(results).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: { circle: ['account:1', 'account:2'] } },
    ]);
    expect(log).toEqual(['deposited on 2']);
  });

  it('may be branches of one section', async () => {
    const [mayGoOn, outcomes] = [deferred(), [] as unknown[]];
    const branch = (outer: string, inner: string): Promise<unknown> =>
      locks.run(outer, async () => {
        await mayGoOn.promise;
        return locks.run(inner, { wait: '1s' }, () => 'done').catch((error: unknown) => error);
      });
    const running = locks.run('x', async () => {
      outcomes.push(...(await Promise.all([branch('a', 'b'), branch('b', 'a')])));
    });
    await settled();
    mayGoOn.resolve();
    await running;
    expect(outcomes).toEqual(['done', expect.any(LockDeadlockError)]);
  });

  it('may use two services', async () => {
    const jobs = new LockService(
      { store: storeOption(new MemoryLockStore(clock)) },
      { name: 'jobs', runtime: clock },
    );
    const [mayGoOn, first] = [deferred(), deferred()];
    const a = locks.run('key', async () => {
      await mayGoOn.promise;
      await jobs.run('key', () => undefined);
      first.resolve();
    });
    const b = jobs.run('key', async () => {
      await mayGoOn.promise;
      await locks.run('key', () => undefined);
    });
    await settled();
    mayGoOn.resolve();
    await expect(b).rejects.toBeInstanceOf(LockDeadlockError);
    await Promise.all([a, first.promise]);
  });
});

describe('no circle is', () => {
  it('a call that does not wait', async () => {
    const [first, second] = [nestedCall('a', 'b'), nestedCall('b', 'a', locks, 0)];
    await settled();
    await first.goOn();
    await second.goOn();
    expect(await second.outcome).toBeInstanceOf(LockNotAcquiredError);
    expect(await first.outcome).toBe('done');
  });

  it('a tryRun', async () => {
    const first = nestedCall('a', 'b');
    const mayGoOn = deferred();
    const second = locks.run('b', async () => {
      await mayGoOn.promise;
      return locks.tryRun('a', () => undefined);
    });
    await settled();
    await first.goOn();
    mayGoOn.resolve();
    expect(await second).toMatchObject({ acquired: false });
    expect(await first.outcome).toBe('done');
  });

  it('a chain: whoever waits for it, and for however long', async () => {
    const holder = nestedCall('c', 'd');
    const chain = nestedCall('b', 'c');
    const others = [nestedCall('a', 'b', locks, 50), nestedCall('x', 'b'), nestedCall('y', 'b')];
    const plain = locks.run('b', { wait: '10s' }, () => 'plain');
    await settled();
    await chain.goOn();
    for (const other of others) await other.goOn();
    await clock.advance(100);
    expect(await others[0]?.outcome).toBeInstanceOf(LockNotAcquiredError);
    await holder.goOn();
    await clock.advance(100);
    expect(await plain).toBe('plain');
    expect(
      await Promise.all([holder, chain, ...others.slice(1)].map((call) => call.outcome)),
    ).toEqual(['done', 'done', 'done', 'done']);
  });

  it('a wait that is over', async () => {
    const mayEnd = deferred();
    const first = locks.run('a', async () => {
      const refused = await locks.run('b', { wait: 50 }, () => 'got b').catch(() => 'refused');
      await mayEnd.promise;
      return refused;
    });
    const second = nestedCall('b', 'a');
    await settled();
    await clock.advance(100);
    await second.goOn();
    mayEnd.resolve();
    expect(await first).toBe('refused');
    await clock.advance(100);
    expect(await second.outcome).toBe('done');
  });

  it('a lock that its section has lost, or given back', async () => {
    const loses = async (): Promise<unknown> => {
      await locks.forceRelease('a');
      return locks.lose('a');
    };
    const releases = async (): Promise<unknown> => locks.current()?.release();
    for (const end of [loses, releases]) {
      const [mayGoOn, second] = [deferred(), nestedCall('b', 'a')];
      const first = locks
        .run('a', async () => {
          await mayGoOn.promise;
          await end();
          await locks.run('b', () => undefined);
        })
        .catch((error: unknown) => error);
      await settled();
      mayGoOn.resolve();
      await settled();
      await second.goOn();
      await clock.advance(100);
      expect(await second.outcome).toBe('done');
      const outcome = await first;
      if (outcome !== undefined) expect(outcome).toBeInstanceOf(LockLostError);
    }
  });

  it('calls for the same keys side by side in one section, which take turns', async () => {
    const turns = await locks.run('a', () =>
      Promise.all(
        [1, 2, 3].map((turn) =>
          locks.run('a', { wait: '1s' }, () => locks.run(`b${String(turn)}`, () => turn)),
        ),
      ),
    );
    expect(turns).toEqual([1, 2, 3]);
  });

  it('readers who ask for what the other one reads', async () => {
    const shared = { mode: 'shared', wait: '10s' } as const;
    const elsewhere = new LockService({ store: storeOption(store) }, { runtime: clock });
    // A writer in line keeps both from joining for a while.
    const read = async (outer: string, inner: string): Promise<string> =>
      locks.run(outer, shared, async () => {
        await meet.arrive();
        return locks.run(inner, shared, () => inner);
      });
    const meet = barrier(2);
    const readers = [read('a', 'b'), read('b', 'a')];
    await settled();
    const writers = ['a', 'b'].map((key) => elsewhere.acquire(key, { wait: 200 }));
    const refusals = writers.map((writer) => writer.catch(() => 'refused'));
    await settled();
    meet.open();
    await clock.advance(1_000);
    expect(await Promise.all(refusals)).toEqual(['refused', 'refused']);
    expect(await Promise.all(readers)).toEqual(['b', 'a']);
    await elsewhere.shutdown(0);
  });
});

/** Where so many wait until it is opened. */
function barrier(count: number) {
  const all = deferred();
  let arrived = 0;
  return {
    arrive: () => {
      arrived += 1;
      return all.promise;
    },
    open: () => {
      expect(arrived).toBe(count);
      all.resolve();
    },
  };
}
