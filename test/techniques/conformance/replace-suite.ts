import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import {
  LockConfigurationError,
  LockLostError,
  LockNotAcquiredError,
  LockServiceClosedError,
  type Lock,
  type LockService,
} from 'nestjs-holdfast';
import { eventually } from '../../support/eventually.js';
import { servicesOn } from './services.js';
import type { Backend } from './suite.js';

/** What may stay of a key, for a time. */
const MAY_STAY = /(?:fence|newest)\}?$/;

/** Longer than any test takes. */
const LONG = '60s';

const replaced = (): unknown =>
  expect.objectContaining({ reason: 'replaced', code: 'LOCK_REPLACED' });

const aborted = async ({ signal }: Lock): Promise<void> => {
  if (!signal.aborted) await once(signal, 'abort');
};

/** What every store must do of calls that replace the holder of their key. */
export function describeReplaced(name: string, open: () => Promise<Backend>): void {
  describe(`a lock that is replaced, on ${name},`, () => {
    const services = servicesOn(open, MAY_STAY);
    let keysMade = 0;
    let key = '';

    const newServices = async (count: number): Promise<[LockService, ...LockService[]]> => {
      key = `key-${String((keysMade += 1))}`;
      const first = await services.newService();
      const others = Array.from({ length: count - 1 }, () => services.newService());
      return [first, ...(await Promise.all(others))];
    };

    it('aborts the holder, and begins when the work of that has ended', async () => {
      const [first, second = first] = await newServices(2);
      const said: string[] = [];
      let token = 0;
      const older = first.run(key, async (lock) => {
        token = lock.fencingToken;
        said.push('holds');
        await aborted(lock);
        expect(lock.isHeld).toBe(false);
        expect(lock.signal.reason).toEqual(replaced());
        said.push('aborted');
        // The third caller gets nothing while the work ends.
        expect(await second.tryAcquire(key)).toBeNull();
        await turn();
        said.push('ended');
      });
      const failure = older.catch((error: unknown) => error);
      await eventually(() => said.length === 1);
      const options = { onLocked: 'replace', replaceWait: LONG } as const;
      await second.run(key, options, (lock) => {
        said.push('newer');
        expect(lock.fencingToken).toBeGreaterThan(token);
      });
      expect(said).toEqual(['holds', 'aborted', 'ended', 'newer']);
      const error = (await failure) as LockLostError;
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toEqual(replaced());
      expect(error.fencingToken).toBe(token);
      expect(error.intervention?.reason).toBe("onLocked: 'replace'");
    });

    it('does the same in one process, by hand, and for a free key', async () => {
      const [service] = await newServices(1);
      const first = await service.acquire(key, { onLocked: 'replace', replaceWait: LONG });
      const coming = service.acquire(key, { onLocked: 'replace', replaceWait: LONG });
      await aborted(first);
      expect(await first.release()).toBe(false);
      const second = await coming;
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
      expect(await second.release()).toBe(true);
    });

    it('is taken by force from work that goes on', async () => {
      const [first, second = first] = await newServices(2);
      const stubborn = await first.acquire(key);
      const newer = await second.acquire(key, { onLocked: 'replace', replaceWait: '50ms' });
      expect(newer.isHeld).toBe(true);
      expect(stubborn.isHeld).toBe(false);
      expect(() => {
        stubborn.assertHeld();
      }).toThrow(LockLostError);
      expect(await second.tryAcquire(key)).toBeNull();
    });

    it('is left to one of ten callers that come at once, and one works at a time', async () => {
      const all = await newServices(3);
      const ends: unknown[] = [];
      let working = 0;
      const work = async (lock: Lock): Promise<void> => {
        working += 1;
        expect(working).toBe(1);
        await aborted(lock);
        await turn();
        working -= 1;
      };
      const calls = Array.from({ length: 10 }, async (_, index) => {
        const locks = all[index % all.length] ?? all[0];
        const options = { onLocked: 'replace', replaceWait: LONG } as const;
        await locks.run(key, options, work).catch((error: unknown) => ends.push(error));
      });
      await eventually(() => ends.length === 9 && working === 1);
      for (const end of ends) expect(end).toEqual(replaced());
      await all[0].run(key, { onLocked: 'replace', replaceWait: LONG }, () => undefined);
      await Promise.all(calls);
      expect(ends[9]).toEqual(replaced());
      expect(working).toBe(0);
    });

    it('stays with the older work until that ends, however many newer calls come', async () => {
      const [first, second = first, third = first] = await newServices(3);
      const said: string[] = [];
      const newer: Promise<unknown>[] = [];
      const replace = (locks: LockService): void => {
        const options = { onLocked: 'replace', replaceWait: LONG } as const;
        const call = locks.run(key, options, () => said.push('newer'));
        newer.push(call.catch((error: unknown) => error));
      };
      const older = first.run(key, async (lock) => {
        replace(second);
        await aborted(lock);
        replace(third);
        for (let looks = 0; looks < 50; looks += 1)
          expect(await second.inspect(key)).toMatchObject({ held: true });
        said.push('older');
      });
      await expect(older).rejects.toThrow(LockLostError);
      expect(await Promise.all(newer)).toEqual([replaced(), 2]);
      expect(said).toEqual(['older', 'newer']);
    });

    it('goes to those who wait already, who are replaced as well', async () => {
      const [first, second = first, third = first] = await newServices(3);
      const holder = await first.acquire(key);
      const waiting = second.acquire(key, { wait: 'forever' });
      const coming = third.acquire(key, { onLocked: 'replace', replaceWait: '50ms' });
      await aborted(holder);
      const waited = await waiting;
      const newer = await coming;
      expect(newer.isHeld).toBe(true);
      expect(waited.isHeld).toBe(false);
      expect(newer.fencingToken).toBeGreaterThan(waited.fencingToken);
    });

    it('is no lock of a section around the call, which is reused, or refused', async () => {
      const [service] = await newServices(1);
      await service.run(key, async (outer) => {
        const token = await service.run(key, { onLocked: 'replace' }, (lock) => lock.fencingToken);
        expect(token).toBe(outer.fencingToken);
        await expect(service.acquire(key, { onLocked: 'replace' })).rejects.toThrow(
          LockNotAcquiredError,
        );
        expect(outer.isHeld).toBe(true);
      });
    });

    it('is waited for as long as the newer call says, also if another one says more', async () => {
      const [first, second = first] = await newServices(2);
      const stubborn = await first.acquire(key);
      const patient = first.acquire(key, { onLocked: 'replace', replaceWait: LONG });
      const end = patient.catch((error: unknown) => error);
      await aborted(stubborn);
      for (const service of [first, second]) {
        const newer = await service.acquire(key, { onLocked: 'replace', replaceWait: '50ms' });
        expect(newer.isHeld).toBe(true);
      }
      expect(await stubborn.release()).toBe(false);
      expect(await end).toEqual(replaced());
    });

    it('keeps its key for minHold', async () => {
      const [first, second = first] = await newServices(2);
      const since = performance.now();
      const lock = await first.acquire(key, { minHold: '400ms' });
      if (name.includes('memory')) expect(await lock.release()).toBe(true);
      const coming = second.acquire(key, { onLocked: 'replace' });
      if (lock.isHeld) {
        await aborted(lock);
        expect(await lock.release()).toBe(false);
      }
      expect((await coming).isHeld).toBe(true);
      expect(performance.now() - since).toBeGreaterThan(399);
    });

    it('ends with the shutdown of its service, and the newer call begins', async () => {
      const [first, second = first] = await newServices(2);
      const stubborn = await first.acquire(key);
      const coming = second.acquire(key, { onLocked: 'replace', replaceWait: LONG });
      await aborted(stubborn);
      await first.shutdown(0);
      expect((await coming).isHeld).toBe(true);
    });

    it('ends its wait with the signal of the call', async () => {
      const [first, second = first] = await newServices(2);
      const holder = await first.acquire(key);
      const controller = new AbortController();
      const coming = second.acquire(key, {
        ...{ onLocked: 'replace', replaceWait: LONG },
        signal: controller.signal,
      });
      await aborted(holder);
      controller.abort(new Error('the user has left'));
      await expect(coming).rejects.toThrow('the user has left');
      expect(await holder.release()).toBe(false);
      await eventually(async () => !(await first.inspect(key)).held);
    });

    it('ends its wait with the shutdown', async () => {
      const [first, second = first] = await newServices(2);
      const holder = await first.acquire(key);
      const coming = second.acquire(key, { onLocked: 'replace', replaceWait: LONG });
      const refusal = expect(coming).rejects.toThrow(LockServiceClosedError);
      await aborted(holder);
      await second.shutdown(0);
      await refusal;
      expect(await holder.release()).toBe(false);
      await eventually(async () => !(await first.inspect(key)).held);
    });

    it.each([
      [{ limit: 2 }, 'Option "limit" does not go with { onLocked: \'replace\' }'],
      [{ mode: 'shared' }, 'Option "mode" does not go with { onLocked: \'replace\' }'],
      [{ wait: '5s' }, 'Option "wait" does not go with { onLocked: \'replace\' }'],
    ] as const)('is refused with %j', async (options, message) => {
      const [service] = await newServices(1);
      const asking = service.acquire(key, { ...options, onLocked: 'replace' });
      await expect(asking).rejects.toThrow(LockConfigurationError);
      await expect(asking).rejects.toThrow(message);
    });

    it('is refused with several keys, and without its own option', async () => {
      const [service] = await newServices(1);
      await expect(service.acquire(['a', 'b'], { onLocked: 'replace' })).rejects.toThrow(
        'Option "onLocked": \'replace\' goes with one key, and there are 2',
      );
      await expect(service.acquire(key, { replaceWait: '1s' })).rejects.toThrow(
        'Option "replaceWait" goes only with { onLocked: \'replace\' }.',
      );
    });
  });
}
