import { describe, expect, it } from '@jest/globals';
import type { LockService } from 'nestjs-holdfast';
import {
  LockConfigurationError,
  LockReentrancyError,
  type AcquireOptions,
  type Limiter,
  type Lock,
} from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/eventually.js';
import { servicesOn } from './services.js';
import type { Backend } from './suite.js';

const LONG_WAIT = '25s';

/** A lease that is not renewed: long enough for the answer to come in time. */
const SHORT_TTL_MS = 600;

/** A lease that is renewed, and so long that no pause of a busy machine costs it. */
const RENEWED_TTL_MS = 1_500;

/** Beside a limited key that has one: the fence, and the limit that was set. */
const STAYS = /(fence\}?|:limit)$/;

/** What every store that has limits must do of callers that take several places, and of limits that change. */
export function describePlaces(name: string, open: () => Promise<Backend>): void {
  describe(`several places of a limit on ${name}`, () => {
    const services = servicesOn(open, STAYS);
    let keysMade = 0;
    let key = '';

    const setUp = async (): Promise<[LockService, LockService, LockService]> => {
      key = `places-${String((keysMade += 1))}`;
      return Promise.all([services.newService(), services.newService(), services.newService()]);
    };

    const of = (limit: number, places: number): AcquireOptions => ({ limit, places });

    const placesInLine = async (): Promise<number> =>
      (await services.all[0]?.limiter(key, { limit: 99 }).usage())?.waiting ?? 0;

    /** Begins to wait, and resolves when it stands in line. */
    const wait = async (
      service: LockService,
      options: AcquireOptions,
      order: string[] = [],
      called = '',
    ): Promise<{ readonly lock: Promise<Lock> }> => {
      const before = await placesInLine();
      const lock = service.acquire(key, { wait: LONG_WAIT, ...options }).then((granted) => {
        order.push(called);
        return granted;
      });
      lock.catch(() => undefined);
      await eventually(async () => (await placesInLine()) > before);
      return { lock };
    };

    it('are taken by one call under one lease, all or none', async () => {
      const [one, two, three] = await setUp();
      const large = await one.acquire(key, of(5, 3));
      expect(await two.tryAcquire(key, of(5, 3))).toBeNull();
      const small = await two.acquire(key, of(5, 2));
      expect(small.fencingToken).toBe(large.fencingToken);
      expect(await three.tryAcquire(key, of(5, 1))).toBeNull();
      expect(await three.tryAcquire(key)).toBeNull();
      expect(await large.release()).toBe(true);
      expect(await three.tryAcquire(key, of(5, 4))).toBeNull();
      const next = await three.acquire(key, of(5, 3));
      expect(await one.tryAcquire(key, { limit: 5 })).toBeNull();
      for (const lock of [small, next]) expect(await lock.release()).toBe(true);
      expect(await one.inspect(key)).toEqual({ held: false });
    });

    it('can be all of them, for one call at a time', async () => {
      const [one, two] = await setUp();
      const lock = await one.acquire(key, of(4, 4));
      expect(await two.tryAcquire(key, { limit: 4 })).toBeNull();
      await lock.release();
      expect(await two.tryAcquire(key, of(4, 4))).not.toBeNull();
    });

    it('are renewed together, and are lost together', async () => {
      const [one, two, three] = await setUp();
      const lock = await one.acquire(key, { ...of(4, 3), ttl: RENEWED_TTL_MS });
      await sleep(2 * RENEWED_TTL_MS + 500);
      expect(lock.isHeld).toBe(true);
      expect(await two.tryAcquire(key, of(4, 2))).toBeNull();
      const small = await two.acquire(key, { limit: 4 });
      expect(await three.forceRelease(key)).toBe(true);
      expect(await three.tryAcquire(key, of(4, 4))).not.toBeNull();
      expect([await lock.release(), await small.release()]).toEqual([false, false]);
    });

    it('are free when the lease ends of one that died with them', async () => {
      const [one, two] = await setUp();
      await one.acquire(key, { ...of(4, 3), ttl: SHORT_TTL_MS, autoExtend: false });
      await one.acquire(key, { limit: 4, ttl: '1m' });
      expect(await two.tryAcquire(key, of(4, 2))).toBeNull();
      const next = await two.acquire(key, { ...of(4, 3), wait: '10s' });
      expect(next.isHeld).toBe(true);
      expect(await one.tryAcquire(key, { limit: 4 })).toBeNull();
    });

    it('are waited for in the order of the line: nobody who wants fewer overtakes', async () => {
      const [one, two, three] = await setUp();
      const held = [await one.acquire(key, of(4, 2)), await one.acquire(key, of(4, 1))];
      const order: string[] = [];
      const large = await wait(two, of(4, 4), order, 'four');
      // One place is free, and kept for whoever waits for all of them.
      expect(await three.tryAcquire(key, { limit: 4 })).toBeNull();
      expect(await two.tryAcquire(key, { limit: 4 })).toBeNull();
      const small = await wait(three, of(4, 1), order, 'one');
      await held[1]?.release();
      await sleep(100);
      expect(order).toEqual([]);
      await held[0]?.release();
      await (await large.lock).release();
      await small.lock;
      expect(order).toEqual(['four', 'one']);
    });

    it('are handed on to as many as fit, by one release', async () => {
      const [one, two, three] = await setUp();
      const all = await one.acquire(key, of(4, 4));
      const order: string[] = [];
      const waiting = [
        await wait(two, of(4, 2), order, 'two'),
        await wait(three, of(4, 1), order, 'one'),
        await wait(one, of(4, 3), order, 'three'),
      ];
      await all.release();
      await Promise.all(waiting.slice(0, 2).map(({ lock }) => lock));
      await sleep(100);
      expect([...order].sort()).toEqual(['one', 'two']);
      await (await waiting[0]?.lock)?.release();
      expect(await (await waiting[2]?.lock)?.release()).toBe(true);
    });

    it('are not passed on inside the process to a call that wants another number', async () => {
      const [one, two] = await setUp();
      const two1 = await two.acquire(key, of(4, 1));
      const large = await one.acquire(key, of(4, 3));
      const [first, second] = [await wait(one, of(4, 1)), await wait(one, of(4, 4))];
      // Behind the first one of those who want as many, at its place in the line.
      const third = { lock: one.acquire(key, { ...of(4, 1), wait: LONG_WAIT }) };
      await large.release();
      const [small, other] = await Promise.all([
        first.lock,
        Promise.race([first.lock, third.lock]),
      ]);
      expect(other).toBe(small);
      expect(await two.tryAcquire(key, { limit: 4 })).toBeNull();
      for (const lock of [small, two1]) await lock.release();
      await (await second.lock).release();
      await (await third.lock).release();
    });

    it('are left to the next when whoever waits for several gives up', async () => {
      const [one, two, three] = await setUp();
      await one.acquire(key, { ...of(4, 2), ttl: '1m' });
      const giveUp = new AbortController();
      const large = await wait(two, { ...of(4, 3), signal: giveUp.signal });
      const small = await wait(three, of(4, 2));
      giveUp.abort();
      await expect(large.lock).rejects.toMatchObject({ name: 'AbortError' });
      expect((await small.lock).isHeld).toBe(true);
    });

    it('are kept taken for as long as minHold says', async () => {
      const [one, two] = await setUp();
      const lock = await one.acquire(key, { ...of(4, 3), minHold: 1_000 });
      await lock.release();
      expect(await two.tryAcquire(key, of(4, 2))).toBeNull();
      expect(await two.tryAcquire(key, of(4, 1))).not.toBeNull();
      expect(await two.acquire(key, { ...of(4, 3), wait: '10s' })).toBeDefined();
    });

    it('go along when the lock is detached, and attached', async () => {
      const [one, two] = await setUp();
      const text = await (await one.acquire(key, of(4, 3))).detach();
      expect(await two.tryAcquire(key, of(4, 2))).toBeNull();
      const lock = await two.attach(text);
      expect(await one.tryAcquire(key, of(4, 2))).toBeNull();
      expect(await one.tryAcquire(key, of(4, 1))).not.toBeNull();
      await lock.release();
      expect(await one.tryAcquire(key, of(4, 3))).not.toBeNull();
    });

    it('of several keys are taken all or none', async () => {
      const [one, two] = await setUp();
      const other = `${key}-other`;
      await one.acquire(other, of(4, 2));
      expect(await two.tryAcquire([key, other], of(4, 3))).toBeNull();
      expect(await one.inspect(key)).toEqual({ held: false });
      const both = await two.acquire([key, other], of(4, 2));
      expect(await one.tryAcquire(key, of(4, 3))).toBeNull();
      expect(await both.release()).toBe(true);
      expect(await one.tryAcquire(key, of(4, 4))).not.toBeNull();
    });

    it('inside a section are at most those of the section', async () => {
      const [one] = await setUp();
      const inside = (outer: AcquireOptions, inner: AcquireOptions): Promise<string> =>
        one.run(key, outer, () => one.run(key, inner, () => 'ran'));
      expect(await inside(of(4, 3), of(4, 2))).toBe('ran');
      expect(await inside(of(4, 3), of(4, 3))).toBe('ran');
      expect(await inside({}, of(4, 3))).toBe('ran');
      await expect(inside(of(4, 2), of(4, 3))).rejects.toThrow(LockReentrancyError);
    });

    it('are never more in use than there are, however many ask for however many', async () => {
      const three = await setUp();
      let [inUse, most, ended] = [0, 0, 0];
      await Promise.all(
        three.flatMap((service, index) =>
          Array.from({ length: 8 }, (_, call) => {
            const places = ((index + call) % 4) + 1;
            return service.run(key, { ...of(5, places), wait: LONG_WAIT }, async () => {
              most = Math.max(most, (inUse += places));
              await sleep(3);
              inUse -= places;
              ended += 1;
            });
          }),
        ),
      );
      expect(ended).toBe(24);
      expect(most).toBe(5);
    }, 60_000);

    describe('a limiter', () => {
      const limitersOf = (...of: readonly LockService[]) =>
        of.map((service) => service.limiter(key, { limit: 3 }));

      it('takes places, and tells how they are used', async () => {
        const [one, two] = await setUp();
        const [first, second] = limitersOf(one, two) as [Limiter, Limiter];
        expect(await first.usage()).toEqual({ limit: 3, inUse: 0, free: 3, waiting: 0 });
        const lock = await first.acquire({ places: 2 });
        expect(await second.tryAcquire({ places: 2 })).toBeNull();
        await second.run(async () => {
          expect(await first.usage()).toEqual({ limit: 3, inUse: 3, free: 0, waiting: 0 });
        });
        const waiting = await wait(two, of(3, 2));
        expect(await first.usage()).toEqual({ limit: 3, inUse: 2, free: 1, waiting: 1 });
        await lock.release();
        await (await waiting.lock).release();
      });

      it('that is set larger lets those in who wait, in every process, at once', async () => {
        const [one, two, three] = await setUp();
        const [first] = limitersOf(one) as [Limiter];
        await first.acquire({ places: 3, ttl: '2m' });
        const order: string[] = [];
        const waiting = [
          await wait(two, { limit: 3, ttl: '2m' }, order, 'one'),
          await wait(three, { ...of(3, 2), ttl: '2m' }, order, 'two'),
        ];
        const since = performance.now();
        await first.setLimit(5);
        await waiting[0]?.lock;
        // Called, and not found by looking: whoever waits looks every 5 s.
        expect(performance.now() - since).toBeLessThan(3_000);
        await sleep(100);
        expect(order).toEqual(['one']);
        expect(await first.usage()).toEqual({ limit: 5, inUse: 4, free: 1, waiting: 1 });
        await first.setLimit(6);
        await waiting[1]?.lock;
        expect(await first.usage()).toEqual({ limit: 6, inUse: 6, free: 0, waiting: 0 });
      });

      it('that is set smaller takes nothing from anybody, and lets nobody in until it fits', async () => {
        const [one, two] = await setUp();
        const [first, second] = limitersOf(one, two) as [Limiter, Limiter];
        const held = [await first.acquire(), await second.acquire(), await first.acquire()];
        await second.setLimit(1);
        expect(await first.usage()).toEqual({ limit: 1, inUse: 3, free: 0, waiting: 0 });
        // Neither from the store nor from a caller of the same process.
        const waiting = await wait(one, { limit: 3 });
        for (const lock of held) expect(lock.isHeld).toBe(true);
        await held[0]?.release();
        await held[2]?.release();
        expect(await first.usage()).toMatchObject({ inUse: 1, waiting: 1 });
        expect(await first.tryAcquire()).toBeNull();
        await held[1]?.release();
        await (await waiting.lock).release();
        expect(await first.tryAcquire()).not.toBeNull();
        expect(await first.tryAcquire()).toBeNull();
      });

      it('counts for all who state a limit, until it is removed', async () => {
        const [one, two] = await setUp();
        const [first] = limitersOf(one) as [Limiter];
        await first.setLimit(2);
        const lock = await two.acquire(key, of(9, 2));
        expect(await two.tryAcquire(key, { limit: 9 })).toBeNull();
        expect(await two.tryAcquire(key)).toBeNull();
        await first.setLimit(null);
        expect(await first.usage()).toMatchObject({ limit: 3 });
        expect(await two.tryAcquire(key, { limit: 9 })).not.toBeNull();
        await lock.release();
      });

      it('that is smaller than what a call wants has it wait until there are so many', async () => {
        const [one, two] = await setUp();
        const [first] = limitersOf(one) as [Limiter];
        await first.setLimit(1);
        expect(await two.tryAcquire(key, of(3, 2))).toBeNull();
        const waiting = await wait(two, of(3, 2));
        await first.setLimit(2);
        await (await waiting.lock).release();
      });

      it('refuses what is no limit, and calls that bring one', async () => {
        const [one] = await setUp();
        const [first] = limitersOf(one) as [Limiter];
        await expect(first.setLimit(0)).rejects.toThrow(
          'Option "limit" must be a whole number from 1, received 0.',
        );
        await expect(first.acquire({ limit: 9 } as object)).rejects.toThrow(
          /^The calls of a limiter take neither "limit" nor "mode": its limit is 3/,
        );
        await expect(first.acquire({ places: 4 })).rejects.toThrow(/^Option "places", 4, is more/);
        expect(() => one.limiter(key, { limit: 1.5 })).toThrow(LockConfigurationError);
        expect(() => one.limiter(key, { limit: 3, wait: 5 } as { limit: number })).toThrow(
          'limiter() has no option "wait". It belongs to a call: limiter.run(',
        );
      });
    });

    it('of different limits for one key are told of once, and each call goes by its own', async () => {
      const [one, two] = await setUp();
      const told: unknown[] = [];
      two.on('limitMismatch', (event) => told.push(event));
      const lock = await one.acquire(key, of(5, 3));
      for (let asked = 0; asked < 3; asked += 1)
        expect(await two.tryAcquire(key, { limit: 3 })).toBeNull();
      const other = await two.acquire(key, { limit: 4 });
      const difference = { keys: [key], otherLimit: 5 };
      expect(told).toEqual([
        { ...difference, mode: 'limit:3', limit: 3 },
        { ...difference, mode: 'limit:4', limit: 4 },
      ]);
      expect(other.fencingToken).toBe(lock.fencingToken);
      // Once a limit is set, nobody needs to be told.
      await one.limiter(key, { limit: 5 }).setLimit(9);
      expect(await two.tryAcquire(key, { limit: 6 })).not.toBeNull();
      expect(told).toHaveLength(2);
    });

    it('refuse what can never be', async () => {
      const [one] = await setUp();
      await expect(one.acquire(key, of(2, 3))).rejects.toThrow(LockConfigurationError);
      await expect(one.acquire(key, of(2, 3))).rejects.toThrow(
        /^Option "places", 3, is more than "limit", 2: no caller could ever have that many/,
      );
      await expect(one.tryAcquire(key, { places: 2 })).rejects.toThrow(
        /^Option "places", 2, goes only with "limit"/,
      );
      await expect(one.run(key, of(2, 0), () => 0)).rejects.toThrow(
        'Option "places" must be a whole number from 1, received 0.',
      );
    });
  });
}
