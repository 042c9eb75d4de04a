import { describe, expect, it } from '@jest/globals';
import { LockLostError, LockReturnKindError, LockStoreUnavailableError } from '../../lib/errors.js';
import { NonRetryableError } from '../../lib/once/attempt.js';
import type { BeginOutcome } from '../../lib/store/once-store.js';
import { deferred } from '../support/eventually.js';
import { heldFor, OUTAGE, silence } from '../support/scripted-store.js';
import { scriptedOnce } from './scripted-once.js';

const HOUR_MS = 3_600_000;

const noWork = (): never => {
  throw new Error('The work ran');
};

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('runOnce', () => {
  it('does the work under its lock, marks it done, and gives the lock back after that', async () => {
    const { store, once, locks } = scriptedOnce();
    const result = await locks.runOnce('work', ({ attempt, isLastAttempt, lock, signal }) => {
      expect({ attempt, isLastAttempt, keys: lock.keys }).toEqual({
        attempt: 1,
        isLastAttempt: false,
        keys: ['work'],
      });
      expect(signal.aborted).toBe(false);
      expect(locks.currentAttempt()?.attempt).toBe(1);
      expect(once.finished).toEqual([]);
      return 'value';
    });
    expect(result).toEqual({ outcome: 'completed', attempts: 1, value: 'value' });
    const token = store.acquired[0]?.token;
    const reference = { key: 'work', token, owner: expect.any(String), fencingToken: 1 };
    expect(once.begun).toEqual([
      { ...reference, attempts: 3, lifeMs: 3 * 1_000 + HOUR_MS, keepMs: HOUR_MS },
    ]);
    expect(once.finished).toEqual([
      { ...reference, attempt: 1, end: 'done', text: undefined, lifeMs: HOUR_MS },
    ]);
    expect(store.released).toHaveLength(1);
  });

  it('takes the options of the work and of its lock', async () => {
    const { store, once, locks } = scriptedOnce();
    const options = { attempts: 1, keepDone: '10m', keepValue: true, ttl: '2s' } as const;
    await locks.runOnce('work', options, ({ isLastAttempt }) => {
      expect(isLastAttempt).toBe(true);
      return { a: 1 };
    });
    expect(store.acquired).toMatchObject([{ ttlMs: 2_000 }]);
    expect(once.begun).toMatchObject([{ attempts: 1, lifeMs: 6_000 + 600_000, keepMs: 600_000 }]);
    expect(once.finished).toMatchObject([{ text: '{"a":1}', lifeMs: 600_000 }]);
  });

  it('warns of a value that cannot be kept, and marks the work all the same', async () => {
    const { once, locks, warnings } = scriptedOnce();
    const result = await locks.runOnce('work', { keepValue: true }, () => 'x'.repeat(5_000));
    expect(result.outcome).toBe('completed');
    expect(once.finished).toMatchObject([{ end: 'done', text: undefined }]);
    expect(warnings).toEqual([
      'The value of "work" is not kept for others ("keepValue"): as JSON it has 5002 bytes, more than 4096.',
    ]);
  });

  it('says nothing of a value that is not to be kept, or is', async () => {
    const { locks, warnings } = scriptedOnce();
    await locks.runOnce('work', () => 'x'.repeat(5_000));
    await locks.runOnce('work', { keepValue: true }, () => 'short');
    expect(warnings).toEqual([]);
  });

  it('does not do what was done, or failed too often', async () => {
    const { once, locks, store } = scriptedOnce();
    once.onBegin = () => ({ status: 'done', attempts: 2, value: '7' });
    expect(await locks.runOnce('work', noWork)).toEqual({
      outcome: 'done-elsewhere',
      attempts: 2,
      value: 7,
    });
    once.onBegin = () => ({ status: 'exhausted', attempts: 3, error: 'mine' });
    expect(await locks.runOnce('work', noWork)).toEqual({
      outcome: 'exhausted',
      attempts: 3,
      lastError: 'mine',
    });
    expect(once.finished).toEqual([]);
    expect(store.released).toHaveLength(2);
  });

  it('tells that it failed, with the text of the error, and throws that', async () => {
    const { once, locks, store } = scriptedOnce();
    const error = new Error('mine');
    expect(await failureOf(locks.runOnce('work', () => Promise.reject(error)))).toBe(error);
    const final = new NonRetryableError('for good');
    expect(await failureOf(locks.runOnce('work', () => Promise.reject(final)))).toBe(final);
    const lifeMs = 3_000 + HOUR_MS;
    expect(once.finished).toMatchObject([
      { end: 'failed', text: 'mine', attempt: 1, lifeMs },
      { end: 'final', text: 'for good', attempt: 1, lifeMs: HOUR_MS },
    ]);
    expect(store.released).toHaveLength(2);
  });

  it('says that another attempt has begun since', async () => {
    const { once, locks } = scriptedOnce();
    once.onBegin = () => ({ status: 'begun', attempt: 2 });
    once.onFinish = () => ({ status: 'superseded' });
    expect(await locks.runOnce('work', () => 'late')).toEqual({
      outcome: 'superseded',
      attempts: 2,
    });
  });

  it('says what is known of the work when somebody else is at it', async () => {
    const { store, once, locks } = scriptedOnce();
    store.onAcquire = () => heldFor(500, 'work');
    const ask = (): Promise<unknown> => locks.runOnce('work', { wait: 0 }, noWork);
    once.onBegin = () => ({ status: 'lost', attempts: 1 });
    expect(await ask()).toEqual({ outcome: 'busy', attempts: 1 });
    expect(once.begun).toMatchObject([
      { key: 'work', fencingToken: 0, attempts: 1, lifeMs: 1, keepMs: 1 },
    ]);
    expect(once.begun[0]?.token).toBe(once.begun[0]?.owner);
    once.onBegin = () => OUTAGE;
    expect(await ask()).toEqual({ outcome: 'busy', attempts: 0 });
    once.onBegin = () => ({ status: 'done', attempts: 1 });
    expect(await ask()).toEqual({ outcome: 'done-elsewhere', attempts: 1 });
    once.onBegin = () => ({ status: 'exhausted', attempts: 3 });
    expect(await ask()).toEqual({ outcome: 'exhausted', attempts: 3 });
  });

  it('throws what keeps it from the lock, but for a refusal', async () => {
    const { store, locks } = scriptedOnce();
    store.onAcquire = () => OUTAGE;
    const call = locks.runOnce('work', { wait: 0 }, noWork);
    await expect(call).rejects.toBeInstanceOf(LockStoreUnavailableError);
  });

  it('refuses work with two keys, and that returns a stream', async () => {
    const { locks: others, once, store: otherStore } = scriptedOnce();
    const two = others.runOnce(['a', 'b'] as unknown as string, noWork);
    await expect(two).rejects.toThrow(
      'Work that is to be done once has one key, not 2: it is what the work is called by.',
    );
    expect(otherStore.released).toHaveLength(1);
    // eslint-disable-next-line require-yield -- nothing reads it
    const stream = async function* (): AsyncGenerator<never> {
      await silence();
    };
    const streaming = others.runOnce('work', () => stream());
    await expect(streaming).rejects.toBeInstanceOf(LockReturnKindError);
    expect(once.finished).toMatchObject([{ end: 'failed' }]);
  });
});

describe('a call of runOnce', () => {
  it('that is wrong is refused by its name', async () => {
    const { locks } = scriptedOnce();
    await expect(locks.runOnce('work', 'no work' as never)).rejects.toThrow(/runOnce\(/);
  });

  it('is in the stack of its error', async () => {
    const { locks, store } = scriptedOnce();
    store.onAcquire = () => OUTAGE;
    const error = await failureOf(locks.runOnce('work', { wait: 0 }, noWork));
    expect((error as Error).stack).toMatch(/^\s+at .*run-once\.spec/m);
  });
});

describe('the signal of an attempt', () => {
  it('aborts when the lock is lost', async () => {
    const { locks } = scriptedOnce();
    let signal: AbortSignal | undefined;
    const result = await locks.runOnce('work', (attempt) => {
      ({ signal } = attempt);
      locks.lose('work');
      expect(signal.reason).toBeInstanceOf(LockLostError);
      return 'done';
    });
    // What counts is what has become of the attempt.
    expect(result).toMatchObject({ outcome: 'completed' });
  });

  it('aborts with that of the call, until the work is over', async () => {
    const { locks } = scriptedOnce();
    const caller = new AbortController();
    let inner: AbortSignal | undefined;
    const left = deferred<undefined>();
    const running = locks.runOnce('work', { signal: caller.signal }, async ({ signal }) => {
      inner = signal;
      caller.abort(new Error('mine'));
      expect(signal.reason).toEqual(new Error('mine'));
      left.resolve(undefined);
    });
    await left.promise;
    await running;
    expect(inner?.aborted).toBe(true);
    const later = new AbortController();
    await locks.runOnce('work', { signal: later.signal }, ({ signal }) => {
      inner = signal;
    });
    later.abort();
    expect(inner?.aborted).toBe(false);
  });

  it('belongs to what the work has left running, too', async () => {
    const { clock, locks, store } = scriptedOnce();
    let isOver = false;
    const running = locks.runOnce('work', () => {
      void locks.run('work', async () => {
        await new Promise<void>((resolve) => {
          clock.setTimer(resolve, 100);
        });
        isOver = true;
      });
      return 'done';
    });
    await clock.advance(99);
    expect(store.released).toEqual([]);
    await clock.advance(1);
    expect(await running).toMatchObject({ outcome: 'completed' });
    expect(isOver).toBe(true);
  });
});

describe('an account without an answer', () => {
  it('to the begin is asked for once more, and then given back', async () => {
    const { clock, once, locks, store } = scriptedOnce();
    once.onBegin = () => OUTAGE;
    const failure = failureOf(locks.runOnce('work', noWork));
    await clock.advance(0);
    expect(once.begun).toHaveLength(1);
    await clock.advance(1_000);
    expect(await failure).toMatchObject({
      code: 'LOCK_STORE_UNAVAILABLE',
      keys: ['work'],
      detail: expect.stringContaining('Could not begin "work"'),
    });
    expect(once.begun).toHaveLength(2);
    expect(new Set(once.begun.map(({ owner }) => owner)).size).toBe(1);
    expect(once.finished).toMatchObject([{ end: 'returned' }]);
    expect(store.released).toHaveLength(1);
  });

  it('to the begin, and with an answer the second time, runs the work', async () => {
    const { clock, once, locks } = scriptedOnce();
    once.onBegin = () => (once.begun.length === 1 ? OUTAGE : { status: 'begun', attempt: 1 });
    const running = locks.runOnce('work', () => 'done');
    await clock.advance(100);
    expect(await running).toMatchObject({ outcome: 'completed' });
  });

  it('to the mark is asked for again while the lease lasts, or twice the time limit of a node', async () => {
    const { clock, once, locks } = scriptedOnce({ nodeTimeout: 1_775 });
    once.onFinish = () => OUTAGE;
    let settledAtMs = 0;
    const failure = failureOf(locks.runOnce('work', () => 'done')).then((error) => {
      settledAtMs = clock.now().monotonicMs;
      return error;
    });
    await clock.advance(3_000);
    expect(settledAtMs).toBe(0);
    await clock.advance(3_000);
    expect(await failure).toMatchObject({
      code: 'LOCK_STORE_UNAVAILABLE',
      detail: expect.stringContaining('Could not finish "work"'),
    });
    expect(settledAtMs).toBe(3_550);
    // After 50, 100, 200, 400, 800 ms, and then each second.
    expect(once.finished).toHaveLength(8);
    expect(clock.timers).toBe(0);
  });

  it('to the mark is asked for again for the rest of a long lease', async () => {
    const { clock, once, locks } = scriptedOnce({ ttl: '10s', nodeTimeout: 100 });
    once.onFinish = () => OUTAGE;
    let isOver = false;
    void failureOf(locks.runOnce('work', () => 'done')).then(() => {
      isOver = true;
    });
    await clock.advance(9_000);
    expect(isOver).toBe(false);
    await clock.advance(3_000);
    expect(isOver).toBe(true);
  });

  it('to the end of work that failed is not asked for again: the next one sees it; for good, it is', async () => {
    const { clock, once, locks } = scriptedOnce();
    once.onFinish = () => OUTAGE;
    const failed = failureOf(locks.runOnce('work', () => Promise.reject(new Error('mine'))));
    await clock.advance(0);
    expect(await failed).toEqual(new Error('mine'));
    expect(once.finished).toHaveLength(1);
    const final = failureOf(
      locks.runOnce('work', () => Promise.reject(new NonRetryableError('mine'))),
    );
    await clock.advance(10_000);
    expect(await final).toBeInstanceOf(NonRetryableError);
    expect(once.finished.length).toBeGreaterThan(3);
  });
});

describe('an attempt whose lock is lost before it begins', () => {
  it('is given back when it has begun all the same', async () => {
    const { once, locks } = scriptedOnce();
    once.onBegin = () => {
      locks.lose('work');
      return { status: 'begun', attempt: 1 };
    };
    await expect(locks.runOnce('work', noWork)).rejects.toBeInstanceOf(LockLostError);
    expect(once.finished).toMatchObject([{ end: 'returned' }]);
  });

  it('has not begun when the store says so', async () => {
    const { once, locks } = scriptedOnce();
    once.onBegin = () => ({ status: 'lost', attempts: 1 });
    await expect(locks.runOnce('work', noWork)).rejects.toMatchObject({
      code: 'LOCK_LOST',
      keys: ['work'],
      fencingToken: 1,
      reason: 'stolen',
    });
    expect(once.finished).toEqual([]);
  });

  it('is asked for once, however the answer was', async () => {
    const { clock, once, locks } = scriptedOnce();
    once.onBegin = () => {
      locks.lose('work');
      return OUTAGE;
    };
    const failure = failureOf(locks.runOnce('work', noWork));
    await clock.advance(1_000);
    expect(await failure).toBeInstanceOf(LockStoreUnavailableError);
    expect(once.begun).toHaveLength(1);
  });
});

describe('long work', () => {
  it('is remembered for another while before it would be forgotten', async () => {
    const { clock, once, locks } = scriptedOnce();
    const end = deferred<undefined>();
    const running = locks.runOnce('work', { keepDone: '10s' }, () => end.promise);
    await clock.advance(5_990);
    expect(once.kept).toEqual([]);
    await clock.advance(10);
    expect(once.kept).toMatchObject([{ key: 'work', attempt: 1, lifeMs: 13_000 }]);
    await clock.advance(6_000);
    expect(once.kept).toHaveLength(2);
    once.onKeep = () => ({ status: 'superseded' });
    await clock.advance(20_000);
    expect(once.kept).toHaveLength(3);
    end.resolve(undefined);
    await clock.advance(0);
    expect(await running).toMatchObject({ outcome: 'completed' });
    expect(clock.timers).toBe(0);
  });
});

describe('work that extends its lock', () => {
  it('is remembered for that long, too, and then as before', async () => {
    const { clock, once, locks } = scriptedOnce();
    const running = locks.runOnce('work', { keepDone: '1s' }, async ({ lock }) => {
      expect(once.begun).toMatchObject([{ lifeMs: 4_000 }]);
      await lock.extend('8s');
      expect(once.kept).toMatchObject([{ key: 'work', attempt: 1, lifeMs: 25_000 }]);
      await clock.advance(8_400);
      expect(once.kept).toHaveLength(1);
      await clock.advance(100);
      expect(once.kept).toHaveLength(2);
      await lock.extend('1s');
      await lock.extend();
      expect(once.kept).toHaveLength(2);
      await lock.extend('9s');
      throw new Error('mine');
    });
    await clock.advance(0);
    expect(await failureOf(running)).toEqual(new Error('mine'));
    expect(once.kept).toMatchObject([{}, {}, { lifeMs: 28_000 }]);
    expect(once.finished).toMatchObject([{ end: 'failed', lifeMs: 28_000 }]);
    expect(clock.timers).toBe(0);
  });

  it('is remembered no longer because another lock is extended, which disturbs nothing', async () => {
    const { once, locks, errors } = scriptedOnce();
    const other = await locks.acquire('other');
    await locks.runOnce('work', { keepDone: '1s' }, () => other.extend('8s'));
    expect(other.remainingMs).toBeGreaterThan(7_000);
    expect(once.kept).toEqual([]);
    expect(errors).toEqual([]);
    await other.release();
  });

  it('is remembered by the next renewal if the store did not answer', async () => {
    const { clock, once, locks } = scriptedOnce();
    once.onKeep = () => (once.kept.length === 1 ? OUTAGE : { status: 'accepted' });
    const end = deferred<undefined>();
    const running = locks.runOnce('work', { keepDone: '10m' }, async ({ lock }) => {
      await lock.extend('9s');
      await end.promise;
    });
    await clock.advance(3_200);
    expect(once.kept).toHaveLength(2);
    await clock.advance(20_000);
    expect(once.kept).toHaveLength(2);
    end.resolve(undefined);
    await clock.advance(0);
    expect(await running).toMatchObject({ outcome: 'completed' });
  });

  it('without an answer, is remembered as before', async () => {
    const { clock, store, once, locks } = scriptedOnce();
    const kept = deferred<{ status: 'accepted' }>();
    once.onKeep = () => kept.promise as never;
    const running = locks.runOnce('work', { keepDone: '10s' }, async ({ lock }) => {
      await clock.advance(6_000);
      store.onExtend = () => OUTAGE;
      await failureOf(lock.extend('1h'));
      store.onExtend = () => ({ status: 'extended' });
      kept.resolve({ status: 'accepted' });
      await clock.advance(6_000);
      expect(once.kept).toMatchObject([{ lifeMs: 13_000 }, { lifeMs: 13_000 }]);
    });
    await clock.advance(0);
    expect(await running).toMatchObject({ outcome: 'completed' });
  });
});

describe('work that ends while it is being kept', () => {
  it('is not kept again', async () => {
    const { clock, once, locks } = scriptedOnce();
    const kept = deferred<{ status: 'accepted' }>();
    once.onKeep = () => kept.promise as never;
    const end = deferred<undefined>();
    const running = locks.runOnce('work', { keepDone: '10s' }, () => end.promise);
    await clock.advance(6_000);
    expect(once.kept).toHaveLength(1);
    end.resolve(undefined);
    await clock.advance(0);
    await running;
    kept.resolve({ status: 'accepted' });
    await clock.advance(20_000);
    expect(once.kept).toHaveLength(1);
    expect(clock.timers).toBe(0);
  });
});

describe('a shutdown', () => {
  it('gives attempts back, which do not count; what they return then counts no more', async () => {
    const { clock, once, locks } = scriptedOnce();
    const end = deferred<undefined>();
    const running = locks.runOnce('work', () => end.promise);
    const failing = failureOf(
      locks.runOnce('other', () =>
        end.promise.then(() => {
          throw new Error('mine');
        }),
      ),
    );
    await clock.advance(1);
    const shutdown = locks.shutdown(0);
    await clock.advance(1);
    await shutdown;
    expect(once.finished).toMatchObject([
      { key: 'work', end: 'returned' },
      { key: 'other', end: 'returned' },
    ]);
    end.resolve(undefined);
    expect(await running).toEqual({ outcome: 'superseded', attempts: 1 });
    expect(await failing).toEqual(new Error('mine'));
    expect(once.finished).toHaveLength(2);
  });

  it('asks no more for what had no answer', async () => {
    const { clock, once, locks } = scriptedOnce();
    once.onFinish = () => OUTAGE;
    const failure = failureOf(locks.runOnce('work', () => 'done'));
    await clock.advance(60);
    const asked = once.finished.length;
    const shutdown = locks.shutdown(0);
    await clock.advance(1);
    expect(await failure).toBeInstanceOf(LockStoreUnavailableError);
    await clock.advance(5_000);
    await shutdown;
    expect(once.finished.length).toBeLessThanOrEqual(asked + 1);
  });

  it('gives back an attempt whose begin is on its way, and does not run it', async () => {
    const { clock, once, locks } = scriptedOnce();
    const answer = deferred<BeginOutcome>();
    once.onBegin = () => answer.promise;
    const failure = failureOf(locks.runOnce('work', noWork));
    await clock.advance(1);
    const shutdown = locks.shutdown(0);
    await clock.advance(1);
    answer.resolve({ status: 'begun', attempt: 1 });
    await clock.advance(2_000);
    await shutdown;
    expect(await failure).toBeInstanceOf(LockLostError);
    expect(once.finished).toMatchObject([{ end: 'returned' }]);
  });
});
