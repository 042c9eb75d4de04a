import { describe, expect, it, jest } from '@jest/globals';
import type { LockService } from 'nestjs-holdfast';
import {
  LockConfigurationError,
  LockLostError,
  LockReentrancyError,
  NonRetryableError,
  type OnceAttempt,
} from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred, eventually } from '../../support/eventually.js';
import { servicesOn } from './services.js';
import type { Backend } from './suite.js';

/** What every store must do for work that is to be done once, seen through the public API. */
export function describeOnce(name: string, open: () => Promise<Backend>): void {
  describe(`runOnce on ${name}`, () => {
    const services = servicesOn(open, /(fence|once)\}?$/);
    let keysMade = 0;

    const newServices = (count: number): Promise<LockService[]> =>
      Promise.all(Array.from({ length: count }, () => services.newService()));

    const newKey = (): string => `work-${String((keysMade += 1))}`;

    it('is done by one of many; the others stand by, and stop when it is done', async () => {
      const all = await newServices(3);
      const key = newKey();
      const seen: OnceAttempt[] = [];
      const results = await Promise.all(
        [...all, ...all].map((locks) =>
          locks.runOnce(key, { wait: '20s' }, async (attempt) => {
            seen.push(attempt);
            await sleep(50);
            return 'the value';
          }),
        ),
      );
      expect(seen).toMatchObject([{ attempt: 1, isLastAttempt: false }]);
      expect(results.filter(({ outcome }) => outcome === 'completed')).toEqual([
        { outcome: 'completed', attempts: 1, value: 'the value' },
      ]);
      expect(results.filter(({ outcome }) => outcome === 'done-elsewhere')).toEqual(
        Array(5).fill({ outcome: 'done-elsewhere', attempts: 1 }),
      );
    });

    it('gives the kept value to those who come later', async () => {
      const [first, second] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      const value = { total: 3, at: ['a', null] };
      await first.runOnce(key, { keepValue: true }, () => value);
      const work = jest.fn(() => value);
      expect(await second.runOnce(key, { keepValue: true }, work)).toEqual({
        outcome: 'done-elsewhere',
        attempts: 1,
        value,
      });
      expect(work).not.toHaveBeenCalled();
    });

    it.each([
      ['too large', 'x'.repeat(5_000)],
      ['no JSON', 10n],
      ['nothing', undefined],
    ])('marks work as done whose value is %s, and gives it to its caller', async (_, value) => {
      const locks = await services.newService();
      const key = newKey();
      const work = (): unknown => value;
      const first = await locks.runOnce(key, { keepValue: true }, work);
      expect(first).toEqual({ outcome: 'completed', attempts: 1, value });
      expect(await locks.runOnce(key, { keepValue: true }, work)).toEqual({
        outcome: 'done-elsewhere',
        attempts: 1,
      });
    });

    it('lets the next one try when one fails, and says which attempt is the last', async () => {
      const all = await newServices(3);
      const key = newKey();
      const seen: { attempt: number; isLastAttempt: boolean }[] = [];
      const results = await Promise.allSettled(
        all.map((locks) =>
          locks.runOnce(key, { attempts: 2, wait: '20s' }, ({ attempt, isLastAttempt }) => {
            seen.push({ attempt, isLastAttempt });
            throw new Error(`failure ${String(attempt)}`);
          }),
        ),
      );
      expect(seen).toEqual([
        { attempt: 1, isLastAttempt: false },
        { attempt: 2, isLastAttempt: true },
      ]);
      const failures = results.flatMap((result) =>
        result.status === 'rejected' ? [String(result.reason)] : [],
      );
      expect(failures.sort()).toEqual(['Error: failure 1', 'Error: failure 2']);
      expect(results.filter(({ status }) => status === 'fulfilled')).toEqual([
        {
          status: 'fulfilled',
          value: { outcome: 'exhausted', attempts: 2, lastError: 'failure 2' },
        },
      ]);
    });

    it('is tried again by callers of one process that take turns', async () => {
      const locks = await services.newService();
      const key = newKey();
      const seen: number[] = [];
      const work = ({ attempt }: OnceAttempt): number => {
        seen.push(attempt);
        if (attempt < 3) throw new Error('not yet');
        return attempt;
      };
      const results = await Promise.allSettled(
        Array.from({ length: 5 }, () => locks.runOnce(key, { attempts: 3, wait: '20s' }, work)),
      );
      expect(seen).toEqual([1, 2, 3]);
      expect(results.map((result) => (result as { value?: unknown }).value)).toEqual(
        expect.arrayContaining([
          { outcome: 'completed', attempts: 3, value: 3 },
          { outcome: 'done-elsewhere', attempts: 3 },
        ]),
      );
    });

    it('is not tried again after a NonRetryableError', async () => {
      const [first, second] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      const cause = new Error('no such address');
      const error = new NonRetryableError('cannot be sent', { cause });
      await expect(first.runOnce(key, () => Promise.reject(error))).rejects.toBe(error);
      expect(error.cause).toBe(cause);
      const work = jest.fn();
      expect(await second.runOnce(key, work)).toEqual({
        outcome: 'exhausted',
        attempts: 1,
        lastError: 'cannot be sent',
      });
      expect(work).not.toHaveBeenCalled();
    });

    it('tells who has waited in vain that somebody is at it, and in which attempt', async () => {
      const [first, second] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      await expect(first.runOnce(key, () => Promise.reject(new Error('once')))).rejects.toThrow();
      const [started, mayEnd] = [deferred(), deferred()];
      const working = first.runOnce(key, async () => {
        started.resolve();
        await mayEnd.promise;
      });
      await started.promise;
      expect(await second.runOnce(key, { wait: 0 }, () => 1)).toEqual({
        outcome: 'busy',
        attempts: 2,
      });
      expect(await second.runOnce(key, { wait: 100 }, () => 1)).toEqual({
        outcome: 'busy',
        attempts: 2,
      });
      mayEnd.resolve();
      expect(await working).toMatchObject({ outcome: 'completed', attempts: 2 });
    });

    it('excludes run of the same key, and is excluded by it', async () => {
      const [first, second] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      await first.run(key, async () => {
        expect(await second.runOnce(key, { wait: 0 }, () => 1)).toEqual({
          outcome: 'busy',
          attempts: 0,
        });
      });
      await first.runOnce(key, async () => {
        expect(await second.tryRun(key, () => 1)).toMatchObject({ acquired: false });
      });
    });

    it('refuses to be called inside a section that holds the key; run and other work go through', async () => {
      const locks = await services.newService();
      const key = newKey();
      const inside = newKey();
      await expect(
        locks.run(key, () => locks.runOnce(key, () => undefined)),
      ).rejects.toBeInstanceOf(LockReentrancyError);
      const result = await locks.runOnce(key, async ({ attempt, lock }) => {
        expect(locks.currentAttempt()).toMatchObject({ attempt, lock });
        await expect(locks.runOnce(key, () => undefined)).rejects.toBeInstanceOf(
          LockReentrancyError,
        );
        await locks.run(key, () => {
          expect(locks.currentAttempt()).toMatchObject({ attempt: 1, isLastAttempt: false });
        });
        return locks.runOnce(inside, { attempts: 1 }, () => {
          expect(locks.currentAttempt()).toMatchObject({ attempt: 1, isLastAttempt: true });
          return 'inner';
        });
      });
      expect(result).toMatchObject({ outcome: 'completed', value: { outcome: 'completed' } });
      expect(locks.currentAttempt()).toBeUndefined();
    });

    it('forgets after keepDone that the work was done', async () => {
      const locks = await services.newService();
      const key = newKey();
      const options = { keepDone: '1s' } as const;
      expect(await locks.runOnce(key, options, () => 1)).toMatchObject({ outcome: 'completed' });
      expect(await locks.runOnce(key, options, () => 2)).toMatchObject({
        outcome: 'done-elsewhere',
      });
      await eventually(async () => {
        const result = await locks.runOnce(key, options, () => 3);
        return result.outcome === 'completed' && result.attempts === 1 && result.value === 3;
      });
    });

    it('remembers an attempt for as long as it runs, however long that is', async () => {
      const [first, second] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      const options = { ttl: '1s', keepDone: '1s', attempts: 1 } as const;
      const [started, mayEnd] = [deferred(), deferred()];
      const working = first.runOnce(key, options, async () => {
        started.resolve();
        await sleep(4_200); // longer than it is remembered for unless it is kept
        await second.forceRelease(key);
        await mayEnd.promise;
      });
      await started.promise;
      const standing = second.runOnce(key, { ...options, wait: '20s' }, () => 'again');
      expect(await standing).toEqual({ outcome: 'exhausted', attempts: 1 });
      mayEnd.resolve();
      expect((await working).outcome).toBe('superseded');
    });

    it('goes to the next when its holder loses the lock, who can neither mark it nor end it then', async () => {
      const [slow, next] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      const [started, mayEnd] = [deferred(), deferred()];
      let signal: AbortSignal | undefined;
      const first = slow.runOnce(key, { autoExtend: false, ttl: '1500ms' }, async (attempt) => {
        ({ signal } = attempt);
        started.resolve();
        await mayEnd.promise;
        return 'from the slow one';
      });
      await started.promise;
      const [startedNext, mayEndNext] = [deferred(), deferred()];
      const second = next.runOnce(key, { wait: '20s' }, async ({ attempt }) => {
        startedNext.resolve();
        await mayEndNext.promise;
        return attempt;
      });
      await startedNext.promise;
      expect(signal?.reason).toBeInstanceOf(LockLostError);
      mayEnd.resolve();
      expect(await first).toEqual({ outcome: 'superseded', attempts: 1 });
      // Still the second one's, and nobody else's.
      expect(await slow.runOnce(key, { wait: 0 }, () => 'third')).toEqual({
        outcome: 'busy',
        attempts: 2,
      });
      mayEndNext.resolve();
      expect(await second).toEqual({ outcome: 'completed', attempts: 2, value: 2 });
    });

    it('counts when its holder lost the lock and nobody has taken over', async () => {
      const [slow, other] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      const result = await slow.runOnce(key, async ({ lock, signal }) => {
        await other.forceRelease(key);
        await lock.extend().catch(() => undefined);
        expect(signal.aborted).toBe(true);
        return 'done all the same';
      });
      expect(result).toEqual({ outcome: 'completed', attempts: 1, value: 'done all the same' });
      expect(await other.runOnce(key, () => 'again')).toEqual({
        outcome: 'done-elsewhere',
        attempts: 1,
      });
    });

    it('throws on what work throws that has lost its lock', async () => {
      const [slow, other] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      const failure = slow.runOnce(key, async ({ lock, signal }) => {
        await other.forceRelease(key);
        await lock.extend().catch(() => undefined);
        signal.throwIfAborted();
      });
      await expect(failure).rejects.toBeInstanceOf(LockLostError);
      expect(await other.runOnce(key, ({ attempt }) => attempt)).toMatchObject({ value: 2 });
    });

    it('is exhausted when the last attempt dies', async () => {
      const [dies, next] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      const options = { attempts: 1, ttl: '1500ms', autoExtend: false } as const;
      const [started, mayEnd] = [deferred(), deferred()];
      const first = dies.runOnce(key, options, async () => {
        started.resolve();
        await mayEnd.promise;
      });
      await started.promise;
      const work = jest.fn();
      expect(await next.runOnce(key, { ...options, wait: '20s' }, work)).toEqual({
        outcome: 'exhausted',
        attempts: 1,
      });
      expect(work).not.toHaveBeenCalled();
      mayEnd.resolve();
      expect(await first).toEqual({ outcome: 'superseded', attempts: 1 });
      expect(await next.runOnce(key, options, work)).toMatchObject({ outcome: 'exhausted' });
    });

    it('does not count an attempt that a shutdown ended', async () => {
      const [leaving, staying] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      const [started, mayEnd] = [deferred(), deferred()];
      let signal: AbortSignal | undefined;
      const first = leaving.runOnce(key, { attempts: 1 }, async (attempt) => {
        ({ signal } = attempt);
        started.resolve();
        await mayEnd.promise;
        return 'too late';
      });
      await started.promise;
      const second = staying.runOnce(
        key,
        { attempts: 1, wait: '20s' },
        ({ attempt, isLastAttempt }) => ({ attempt, isLastAttempt }),
      );
      await leaving.shutdown(0);
      expect(signal?.aborted).toBe(true);
      expect(await second).toEqual({
        outcome: 'completed',
        attempts: 1,
        value: { attempt: 1, isLastAttempt: true },
      });
      mayEnd.resolve();
      expect(await first).toEqual({ outcome: 'superseded', attempts: 1 });
    });

    it('aborts its signal, and the wait, with the signal of the caller', async () => {
      const [first, second] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      const reason = new Error('the caller has gone');
      const [working, waiting] = [new AbortController(), new AbortController()];
      const started = deferred();
      const failure = first.runOnce(key, { signal: working.signal }, async ({ signal }) => {
        started.resolve();
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
        signal.throwIfAborted();
      });
      await started.promise;
      const wait = second.runOnce(key, { wait: '20s', signal: waiting.signal }, () => 1);
      waiting.abort(reason);
      await expect(wait).rejects.toBe(reason);
      working.abort(reason);
      await expect(failure).rejects.toBe(reason);
      // It counts as an attempt that failed.
      expect(await second.runOnce(key, ({ attempt }) => attempt)).toMatchObject({ value: 2 });
    });

    it('waits for what the work has left running before it marks it', async () => {
      const [locks, other] = (await newServices(2)) as [LockService, LockService];
      const key = newKey();
      const mayEnd = deferred();
      const started = deferred();
      let ended = false;
      const working = locks.runOnce(key, () => {
        void locks.run(key, async () => {
          started.resolve();
          await mayEnd.promise;
          ended = true;
        });
      });
      await started.promise;
      await sleep(100); // in which it would be marked
      expect(await other.runOnce(key, { wait: 0 }, () => 1)).toMatchObject({ outcome: 'busy' });
      mayEnd.resolve();
      expect(await working).toMatchObject({ outcome: 'completed' });
      expect(ended).toBe(true);
    });

    it.each<[object, string]>([
      [{ attempts: 0 }, '"attempts"'],
      [{ attempts: 1.5 }, '"attempts"'],
      [{ keepDone: 0 }, '"keepDone"'],
      [{ keepDone: 'soon' }, '"keepDone"'],
      [{ keepValue: 1 }, '"keepValue"'],
      [{ tries: 3 }, '"tries"'],
    ])('refuses the options %j', async (options, named) => {
      const locks = await services.newService();
      const refusal: unknown = await locks
        .runOnce(newKey(), options, () => 1)
        .catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(LockConfigurationError);
      expect((refusal as Error).message).toContain(named);
    });

    it('refuses several keys', async () => {
      const locks = await services.newService();
      const keys = [newKey(), newKey()] as unknown as string;
      await expect(locks.runOnce(keys, () => 1)).rejects.toThrow('one key, not 2');
    });
  });
}
