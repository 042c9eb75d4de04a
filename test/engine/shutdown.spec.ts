import { describe, expect, it } from '@jest/globals';
import { LockServiceClosedError } from '../../lib/errors.js';
import type { Lock } from '../../lib/lease/lock.js';
import { deferred } from '../support/eventually.js';
import { heldFor, silence } from '../support/scripted-store.js';
import { scriptedEngine } from './scripted-engine.js';

type Engine = ReturnType<typeof scriptedEngine>;

/** Begins a shutdown, and says when it was over, in ms from then. */
function shutDown({ locks, clock, store }: Engine, timeoutMs?: number) {
  const since = clock.now().monotonicMs;
  const closed: number[] = [];
  store.close = async () => {
    closed.push(clock.now().monotonicMs - since);
  };
  let tookMs: number | undefined;
  void locks.shutdown(timeoutMs).then(() => {
    tookMs = clock.now().monotonicMs - since;
  });
  return {
    closed,
    async after(ms: number): Promise<number | undefined> {
      await clock.advance(since + ms - clock.now().monotonicMs);
      return tookMs;
    },
  };
}

async function acquireAll(locks: Engine['locks'], keys: readonly string[]): Promise<Lock[]> {
  return Promise.all(keys.map((key) => locks.acquire(key)));
}

describe('a shutdown', () => {
  it('is over at once where nothing is held', async () => {
    const engine = scriptedEngine();
    const shutdown = shutDown(engine);
    expect(await shutdown.after(0)).toBe(0);
    expect(shutdown.closed).toEqual([0]);
    expect(engine.warnings).toEqual([]);
    expect(engine.clock.timers).toBe(0);
  });

  it('grants nothing any more', async () => {
    const engine = scriptedEngine();
    await shutDown(engine).after(0);
    for (const call of [engine.locks.acquire('key'), engine.locks.tryAcquire('key')])
      await expect(call).rejects.toBeInstanceOf(LockServiceClosedError);
    expect(engine.store.acquired).toEqual([]);
  });

  it('waits for holders, for a second without a word', async () => {
    const engine = scriptedEngine();
    const [lock] = await acquireAll(engine.locks, ['key']);
    const shutdown = shutDown(engine, 5_000);
    expect(await shutdown.after(990)).toBeUndefined();
    await lock?.release();
    expect(await shutdown.after(991)).toBe(990);
    expect(engine.warnings).toEqual([]);
  });

  it('says after a second what it waits for, and ends as soon as that is given back', async () => {
    const engine = scriptedEngine();
    const [lock] = await acquireAll(engine.locks, ['key']);
    await engine.clock.advance(500);
    const shutdown = shutDown(engine, 5_000);
    await shutdown.after(999);
    expect(engine.warnings).toEqual([]);
    await shutdown.after(1_000);
    expect(engine.warnings).toEqual([
      expect.stringMatching(
        /^The shutdown waits up to 4000 ms more for 1 lock not released yet: "key" \(held for 1500 ms, acquired at .*shutdown\.spec\.[jt]s:\d+:\d+\)\)\. A lock of acquire\(\) is held until it is released: do it in a finally block, or use run\(\) or "await using"\.$/,
      ),
    ]);
    expect(await shutdown.after(3_000)).toBeUndefined();
    await lock?.release();
    expect(await shutdown.after(3_001)).toBe(3_000);
    expect(lock?.signal.aborted).toBe(false);
    expect(engine.warnings).toHaveLength(1);
  });

  it('ends what is held when its time is up: holders lose it, and it is given back', async () => {
    const engine = scriptedEngine();
    const [lock] = await acquireAll(engine.locks, ['key']);
    const shutdown = shutDown(engine, 3_000);
    await shutdown.after(2_999);
    expect(lock?.signal.aborted).toBe(false);
    expect(await shutdown.after(3_000)).toBe(3_000);
    expect(lock?.signal.reason).toMatchObject({ reason: 'shutdown' });
    expect(engine.store.released).toMatchObject([{ key: 'key' }]);
    expect(engine.clock.timers).toBe(0);
  });

  it('without time ends it at once, and names five at the most', async () => {
    const engine = scriptedEngine();
    await acquireAll(engine.locks, ['a', 'b', 'c', 'd', 'e', 'f', 'g']);
    expect(await shutDown(engine, 0).after(1)).toBe(0);
    const [warning] = engine.warnings;
    expect(warning).toMatch(/^The shutdown ends 7 locks not released yet: "a" \(held for 0 ms/);
    expect(warning).toMatch(/; "e" \([^"]*\); and 2 more\. A lock/);
    expect(warning).not.toMatch(/"f"/);
  });

  it('names all of five', async () => {
    const engine = scriptedEngine();
    await acquireAll(engine.locks, ['a', 'b', 'c', 'd', 'e']);
    await shutDown(engine, 0).after(1);
    expect(engine.warnings[0]).toMatch(/5 locks .*"e" \([^"]*\)\. A lock/);
    expect(engine.warnings[0]).not.toMatch(/more/);
  });

  it('takes the time that the service has, when it is given none', async () => {
    const engine = scriptedEngine({ shutdownTimeout: 2_000 });
    expect(engine.locks.shutdownTimeoutMs).toBe(2_000);
    await acquireAll(engine.locks, ['key']);
    const shutdown = shutDown(engine);
    expect(await shutdown.after(1_999)).toBeUndefined();
    expect(await shutdown.after(2_001)).toBe(2_000);
  });

  it('waits a second more for a store that does not answer', async () => {
    const engine = scriptedEngine();
    await acquireAll(engine.locks, ['key']);
    engine.store.onRelease = () => silence();
    const shutdown = shutDown(engine, 500);
    expect(await shutdown.after(1_499)).toBeUndefined();
    expect(await shutdown.after(1_501)).toBe(1_500);
    expect(shutdown.closed).toEqual([1_500]);
    expect(engine.clock.timers).toBe(0);
  });

  it.each([
    [8, 4_800],
    [40, 10_000],
  ])(
    'waits longer for one that answers: for %i locks to give back %i ms',
    async (count, expectedMs) => {
      const engine = scriptedEngine({ ttl: '1m' });
      const { clock, store } = engine;
      await acquireAll(
        engine.locks,
        Array.from({ length: count }, (_, index) => `key:${index}`),
      );
      let asked = 0;
      store.onRelease = () => {
        asked += 1;
        return new Promise((resolve) => {
          clock.setTimer(() => {
            resolve({ status: 'released' });
          }, 600 * asked);
        });
      };
      const shutdown = shutDown(engine, 0);
      expect(await shutdown.after(expectedMs - 10)).toBeUndefined();
      expect(await shutdown.after(expectedMs + 10)).toBe(expectedMs);
    },
  );

  it('does not wait for one that has stopped answering', async () => {
    const engine = scriptedEngine({ ttl: '1m' });
    await acquireAll(engine.locks, ['a', 'b', 'c']);
    const answers = [(): unknown => ({ status: 'released' })];
    engine.store.onRelease = () => (answers.shift()?.() ?? silence()) as Promise<never>;
    const shutdown = shutDown(engine, 0);
    expect(await shutdown.after(990)).toBeUndefined();
    expect(await shutdown.after(2_010)).toBeLessThanOrEqual(2_000);
  });

  it('says nothing of where a lock was acquired when that is not known', async () => {
    const engine = scriptedEngine();
    const many = Array.from({ length: 50 }, (_, index) => `key:${index}`);
    for (const lock of await acquireAll(engine.locks, many)) await lock.release();
    await acquireAll(engine.locks, ['one more']);
    await shutDown(engine, 0).after(1);
    expect(engine.warnings[0]).toContain('"one more" (held for 0 ms). A lock of acquire()');
  });

  it('says nothing of work that has ended, and waits for its release', async () => {
    const engine = scriptedEngine();
    const [lock] = await acquireAll(engine.locks, ['key']);
    const answer = deferred<{ status: 'released' }>();
    engine.store.onRelease = () => answer.promise;
    const released = lock?.release();
    const shutdown = shutDown(engine, 5_000);
    expect(await shutdown.after(1_500)).toBeUndefined();
    expect(engine.warnings).toEqual([]);
    answer.resolve({ status: 'released' });
    expect(await shutdown.after(1_501)).toBe(1_500);
    expect(await released).toBe(true);
  });

  it('gives a silent store no more time where holders took some of it', async () => {
    const engine = scriptedEngine();
    const [first] = await acquireAll(engine.locks, ['key', 'other']);
    engine.store.onRelease = () => silence();
    const shutdown = shutDown(engine, 2_000);
    await shutdown.after(100);
    void first?.release().catch(() => undefined);
    expect(await shutdown.after(2_999)).toBeUndefined();
    expect(await shutdown.after(3_001)).toBe(3_000);
  });

  it('sends those away who wait, also before it begins', async () => {
    const engine = scriptedEngine();
    engine.store.onAcquire = () => heldFor(10_000);
    const waiting = engine.locks.acquire('key').catch((error: unknown) => error);
    await engine.clock.advance(10);
    engine.locks.refuseWaiting();
    expect(await waiting).toBeInstanceOf(LockServiceClosedError);
    engine.store.onAcquire = () => ({ status: 'granted', fencingToken: 1 });
    const lock = await engine.locks.tryAcquire('key');
    expect(lock).not.toBeNull();
    await lock?.release();
  });

  it('waits for an acquire that is on its way, and gives back what it gets', async () => {
    const engine = scriptedEngine();
    const answer = deferred<undefined>();
    engine.store.onAcquire = async () => {
      await answer.promise;
      return { status: 'granted', fencingToken: 1 };
    };
    const acquiring = engine.locks.acquire('key').catch((error: unknown) => error);
    await engine.clock.advance(1);
    const shutdown = shutDown(engine, 500);
    expect(await shutdown.after(100)).toBeUndefined();
    answer.resolve(undefined);
    expect(await shutdown.after(1_600)).toBeLessThanOrEqual(1_500);
    expect(await acquiring).toBeInstanceOf(Error);
    expect(engine.store.released).toMatchObject([{ key: 'key' }]);
  });
});
