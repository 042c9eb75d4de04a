import { describe, expect, it } from '@jest/globals';
import type { LockService } from 'nestjs-holdfast';
import { LockReentrancyError, type Lock } from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, until } from '../../support/eventually.js';
import { servicesOn } from './services.js';
import { BY_FORCE, type Backend, type StoredKey } from './suite.js';

const SHARED = { mode: 'shared' } as const;
const LONG_WAIT = '25s';

/** A lease that is renewed, and so long that no pause of a busy machine costs it. */
const RENEWED_TTL_MS = 1_500;

/** A lease that is not renewed: long enough for the answer to come in time. */
const SHORT_TTL_MS = 600;

/** What every store must do of locks that several hold together. `open` is called once; the tests use keys of their own. */
export function describeModes(name: string, open: () => Promise<Backend>): void {
  describe(`shared and limited locks on ${name}`, () => {
    const services = servicesOn(open);
    let keysMade = 0;
    let key = '';

    /** Services, and a key that no other test uses. */
    const setUp = async (): Promise<[LockService, LockService, LockService]> => {
      key = `key-${String((keysMade += 1))}`;
      return Promise.all([services.newService(), services.newService(), services.newService()]);
    };

    /** Starts waiting, and resolves when it is sure to stand in line: waiting tells `order` when it is granted. */
    const wait = async (
      service: LockService,
      options: Parameters<LockService['acquire']>[1],
      order: string[] = [],
      called = '',
    ): Promise<{ readonly lock: Promise<Lock> }> => {
      const before = (await services.stored()).filter(isQueue).length;
      const lock = service.acquire(key, { wait: LONG_WAIT, ...options }).then((granted) => {
        order.push(called);
        return granted;
      });
      lock.catch(() => undefined);
      if (services.backend.storedKeys !== undefined && before === 0)
        await eventually(async () => (await services.stored()).some(isQueue));
      // Whoever stands in line already has made the queue: this one is behind it after its first answer.
      await service.inspect(key);
      await sleep(50);
      return { lock };
    };

    describe('readers', () => {
      it('hold a key together, with one fencing token, and a writer is refused until the last has gone', async () => {
        const [one, two, three] = await setUp();
        const first = await one.acquire(key, SHARED);
        const second = await two.acquire(key, SHARED);
        const third = await one.tryAcquire(key, SHARED);
        expect([second.fencingToken, third?.fencingToken]).toEqual([
          first.fencingToken,
          first.fencingToken,
        ]);

        for (const lock of [first, second, third]) {
          expect(await three.tryAcquire(key)).toBeNull();
          expect(await three.inspect(key)).toMatchObject({ held: true });
          expect(await lock?.release()).toBe(true);
        }
        expect(await three.inspect(key)).toEqual({ held: false });
        const writer = await three.tryAcquire(key);
        expect(writer?.fencingToken).toBeGreaterThan(first.fencingToken);
        expect(await one.tryAcquire(key, SHARED)).toBeNull();
        await writer?.release();
        const later = await two.acquire(key, SHARED);
        expect(later.fencingToken).toBeGreaterThan(Number(writer?.fencingToken));
      });

      it('that are not renewed are gone each at the end of its own lease, and the time told is that of the longest', async () => {
        const [one, two] = await setUp();
        const short = await one.acquire(key, { ...SHARED, ttl: SHORT_TTL_MS, autoExtend: false });
        const long = await one.acquire(key, { ...SHARED, ttl: '20s' });
        const { held, ...rest } = await two.inspect(key);
        expect(held).toBe(true);
        expect(Number((rest as { remainingMs?: number }).remainingMs)).toBeGreaterThan(10_000);
        await sleep(SHORT_TTL_MS + 100);
        expect(short.isHeld).toBe(false);
        expect(await two.tryAcquire(key)).toBeNull();
        await long.release();
        expect(await two.tryAcquire(key)).not.toBeNull();
      });

      it('leave the key when the longest lease is given back to those whose leases are shorter', async () => {
        const [one, two] = await setUp();
        const long = await one.acquire(key, { ...SHARED, ttl: '1m' });
        await one.acquire(key, { ...SHARED, ttl: SHORT_TTL_MS, autoExtend: false });
        await long.release();
        const writer = await two.acquire(key, { wait: '10s' });
        expect(writer.isHeld).toBe(true);
      });

      it('are renewed for as long as they hold it', async () => {
        const [one, two] = await setUp();
        const locks = [
          await one.acquire(key, { ...SHARED, ttl: RENEWED_TTL_MS }),
          await two.acquire(key, { ...SHARED, ttl: RENEWED_TTL_MS }),
        ];
        await sleep(2 * RENEWED_TTL_MS + 500);
        expect(locks.map(({ isHeld }) => isHeld)).toEqual([true, true]);
        expect(await two.tryAcquire(key)).toBeNull();
        for (const lock of locks) expect(await lock.release()).toBe(true);
      });

      it('hold several keys all or none', async () => {
        const [one, two] = await setUp();
        const other = `${key}-other`;
        const writer = await one.acquire(other);
        expect(await two.tryAcquire([key, other], SHARED)).toBeNull();
        expect(await one.inspect(key)).toEqual({ held: false });
        await writer.release();
        const both = await two.acquire([key, other], SHARED);
        const one2 = await one.acquire(other, SHARED);
        expect(await one.tryAcquire(key)).toBeNull();
        expect(await both.release()).toBe(true);
        expect(await one.tryAcquire(key)).not.toBeNull();
        expect(await two.tryAcquire(other)).toBeNull();
        expect(await one2.release()).toBe(true);
      });

      it('of one key have one fencing token beside one of more keys', async () => {
        const [one, two, three] = await setUp();
        const first = await one.acquire(key, SHARED);
        const both = await two.acquire([key, `${key}-other`], SHARED);
        expect(both.fencingToken).toBeGreaterThan(first.fencingToken);
        const later = await three.acquire(key, SHARED);
        expect(later.fencingToken).toBe(first.fencingToken);
        for (const lock of [first, both, later]) expect(await lock.release()).toBe(true);
        const writer = await one.acquire(key);
        expect(writer.fencingToken).toBeGreaterThan(both.fencingToken);
      });

      it('that come while a writer waits go behind it', async () => {
        const [one, two, three] = await setUp();
        const reader = await one.acquire(key, SHARED);
        const order: string[] = [];
        const writer = await wait(two, {}, order, 'writer');
        expect(await three.tryAcquire(key, SHARED)).toBeNull();
        const late = await wait(three, SHARED, order, 'late');
        expect(order).toEqual([]);
        expect(await reader.release()).toBe(true);
        await (await writer.lock).release();
        await late.lock;
        expect(order).toEqual(['writer', 'late']);
      });

      it('are let in when the writer before them gives up', async () => {
        const [one, two, three] = await setUp();
        await one.acquire(key, { ...SHARED, ttl: '1m' });
        const controller = new AbortController();
        const writer = await wait(two, { signal: controller.signal });
        const late = await wait(three, SHARED);
        const since = performance.now();
        controller.abort();
        await expect(writer.lock).rejects.toMatchObject({ name: 'AbortError' });
        expect((await late.lock).isHeld).toBe(true);
        expect(performance.now() - since).toBeLessThan(10_000);
      });

      it('that end sooner than a writer was told let it in then', async () => {
        const [first, second, third] = await setUp();
        const kept = await first.acquire(key, { ...SHARED, ttl: '1m', minHold: 1_500 });
        const longest = await second.acquire(key, { ...SHARED, ttl: '1m' });
        await kept.release();
        const writer = await wait(third, { ttl: '1m' });
        await longest.release();
        // Until the minHold is over, and not for the minute that the longest lease had left.
        await (await writer.lock).release();
      });

      it('are all let in when the time is over for which the key was kept', async () => {
        const [first, second] = await setUp();
        const kept = await first.acquire(key, { ttl: '1m', minHold: 1_500 });
        const readers = await Promise.all(
          [1, 2, 3].map(() => wait(second, { ...SHARED, ttl: '1m', wait: '10s' })),
        );
        await kept.release();
        // None of them gives it back before all have it, and none is renewed before their wait is over.
        const locks = await Promise.all(readers.map(({ lock }) => lock));
        await Promise.all(locks.map((lock) => lock.release()));
      });

      it('are all let in by one release', async () => {
        const [one, two, three] = await setUp();
        const writer = await one.acquire(key, { ttl: '1m' });
        const readers = [
          await wait(two, SHARED),
          await wait(two, SHARED),
          await wait(three, SHARED),
        ];
        await writer.release();
        const locks = await Promise.all(readers.map(({ lock }) => lock));
        for (const lock of locks) lock.assertHeld();
        const tokens = locks.map(({ fencingToken }) => fencingToken);
        for (const token of tokens) expect(token).toBeGreaterThan(writer.fencingToken);
        expect(new Set(tokens).size).toBe(1);
      });

      it('lose it by a forced release, and learn of it', async () => {
        const [one, two, three] = await setUp();
        const locks = [
          await one.acquire(key, { ...SHARED, ttl: '3s' }),
          await two.acquire(key, { ...SHARED, ttl: '3s' }),
        ];
        const lost = services.all
          .slice(0, 2)
          .map((service) => new Promise((resolve) => service.on('lost', resolve)));
        expect(await three.forceRelease(key)).toBe(true);
        expect(await three.forceRelease(key)).toBe(false);
        expect(await three.inspect(key)).toEqual({ held: false });
        for (const event of await Promise.all(lost))
          expect(event).toMatchObject({ keys: [key], reason: BY_FORCE });
        for (const lock of locks) expect(await lock.release()).toBe(false);
        const writer = await three.acquire(key);
        expect(writer.fencingToken).toBeGreaterThan(locks[0]?.fencingToken ?? Infinity);
      });

      it('are given back by the shutdown of their service', async () => {
        const [one, two] = await setUp();
        const held = await one.acquire(key, SHARED);
        const aborted = until(
          { once: (event, listener) => held.signal.addEventListener(event, listener) },
          'abort',
        );
        await one.shutdown(0);
        await aborted;
        expect(await two.tryAcquire(key)).not.toBeNull();
      });
    });

    describe('readers and writers', () => {
      it('never hold it at the same time, however many ask, with turns and without', async () => {
        await setUp();
        const three = await Promise.all([
          services.newService(),
          services.newService({ handoff: false }),
          services.newService(),
        ]);
        let [readers, writers, most] = [0, 0, 0];
        let ended = 0;
        const read = async (): Promise<void> => {
          expect(writers).toBe(0);
          most = Math.max(most, (readers += 1));
          await sleep(3);
          expect(writers).toBe(0);
          readers -= 1;
          ended += 1;
        };
        const write = async (): Promise<void> => {
          expect([(writers += 1), readers]).toEqual([1, 0]);
          await sleep(2);
          expect([writers, readers]).toEqual([1, 0]);
          writers -= 1;
          ended += 1;
        };
        await Promise.all(
          three.flatMap((service) =>
            Array.from({ length: 5 }, (_, index) => [
              service.run(key, { wait: LONG_WAIT, ...(index === 1 ? {} : SHARED) }, () =>
                index === 1 ? write() : read(),
              ),
              service.run(key, { wait: LONG_WAIT }, write),
            ]).flat(),
          ),
        );
        expect(ended).toBe(30);
        expect(most).toBeGreaterThan(1);
      }, 60_000);

      it('inside each other: shared in exclusive and in shared goes through, exclusive in shared is an error at once', async () => {
        const [one] = await setUp();
        const inside = (outer: object, inner: object): Promise<string> =>
          one.run(key, outer, () => one.run(key, { wait: LONG_WAIT, ...inner }, () => 'ran'));
        expect(await inside({}, SHARED)).toBe('ran');
        expect(await inside(SHARED, SHARED)).toBe('ran');
        await expect(inside(SHARED, {})).rejects.toThrow(LockReentrancyError);
        expect(await inside({ limit: 3 }, { limit: 3 })).toBe('ran');
        expect(await inside({}, { limit: 3 })).toBe('ran');
        await expect(inside({ limit: 3 }, { limit: 2 })).rejects.toThrow(LockReentrancyError);
        await expect(inside(SHARED, { limit: 3 })).rejects.toThrow(LockReentrancyError);
        await expect(inside({ limit: 3 }, {})).rejects.toThrow(LockReentrancyError);
      });
    });

    describe('a limit', () => {
      it('is how many hold a key at once, and one release lets one in', async () => {
        const [one, two, three] = await setUp();
        const held = [
          await one.acquire(key, { limit: 3 }),
          await two.acquire(key, { limit: 3 }),
          await one.acquire(key, { limit: 3 }),
        ];
        expect(await three.tryAcquire(key, { limit: 3 })).toBeNull();
        expect(await three.tryAcquire(key)).toBeNull();
        const order: string[] = [];
        const next = await wait(three, { limit: 3 }, order, 'first');
        const last = await wait(three, { limit: 3 }, order, 'second');
        await held[0]?.release();
        await next.lock;
        expect(await two.tryAcquire(key, { limit: 3 })).toBeNull();
        expect(order).toEqual(['first']);
        await held[1]?.release();
        await last.lock;
        expect(order).toEqual(['first', 'second']);
      });

      it('of one is held by one at a time', async () => {
        const [one, two] = await setUp();
        const lock = await one.acquire(key, { limit: 1 });
        expect(await two.tryAcquire(key, { limit: 1 })).toBeNull();
        await lock.release();
        expect(await two.tryAcquire(key, { limit: 1 })).not.toBeNull();
      });

      it('of another number is compared with all places in use, and a shared lock waits until they are free', async () => {
        const [one, two, three] = await setUp();
        const five = await one.acquire(key, { limit: 5 });
        const other = await two.acquire(key, { limit: 2 });
        expect(await two.tryAcquire(key, { limit: 2 })).toBeNull();
        expect(await two.tryAcquire(key, SHARED)).toBeNull();
        const order: string[] = [];
        const waiting = await wait(two, { limit: 1 }, order, 'limit 1');
        const shared = await wait(three, SHARED, order, 'shared');
        await other.release();
        expect(order).toEqual([]);
        await five.release();
        await (await waiting.lock).release();
        await shared.lock;
        expect(order).toEqual(['limit 1', 'shared']);
      });

      it('is never exceeded, however many ask', async () => {
        const three = await setUp();
        let [holders, most, ended] = [0, 0, 0];
        await Promise.all(
          three.flatMap((service) =>
            Array.from({ length: 8 }, () =>
              service.run(key, { limit: 3, wait: LONG_WAIT }, async () => {
                most = Math.max(most, (holders += 1));
                await sleep(3);
                holders -= 1;
                ended += 1;
              }),
            ),
          ),
        );
        expect([most, ended]).toEqual([3, 24]);
      }, 60_000);

      it('has a place free when a lease ends that was not renewed', async () => {
        const [one, two] = await setUp();
        await one.acquire(key, { limit: 2, ttl: SHORT_TTL_MS, autoExtend: false });
        await one.acquire(key, { limit: 2, ttl: '1m' });
        expect(await two.tryAcquire(key, { limit: 2 })).toBeNull();
        const next = await two.acquire(key, { limit: 2, wait: '10s' });
        expect(next.isHeld).toBe(true);
      });
    });
  });
}

const isQueue = ({ name }: StoredKey): boolean => /queue\}?$/.test(name);
