import { describe, expect, it } from '@jest/globals';
import type { LockService } from 'nestjs-holdfast';
import {
  LockLostError,
  LockNotAcquiredError,
  type LockEvents,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred, eventually, until } from '../../support/eventually.js';
import { FENCE, servicesOn } from './services.js';

/** A key that a store keeps, as its own tools show it. */
export interface StoredKey {
  readonly name: string;
  /** Milliseconds; -1 for one that never expires. */
  readonly ttlMs: number;
  /** Of a string: who holds a lock, for instance. */
  readonly text: string;
}

/** A store under test. */
export interface Backend {
  /** Services made from these share the store. */
  readonly options: LockModuleOptions;
  /** Everything that is in the store, where one can look inside. */
  readonly storedKeys?: () => Promise<readonly StoredKey[]>;
  /** Whether there are other than exclusive locks: over several masters there are not. Default: true. */
  readonly hasModes?: boolean;
  close(): Promise<void>;
}

/** A service that has not described itself in the store yet learns of a forced release by its renewal, and cannot tell who did it. */
export const BY_FORCE: unknown = expect.stringMatching(/^(force-released|released-elsewhere)$/);

/** A lease that is renewed, and so long that no pause of a busy machine costs it. */
const RENEWED_TTL_MS = 1_500;

/** By then it would be over, if it were not renewed. */
const OVER_MS = RENEWED_TTL_MS + 500;

/** A lease that is not renewed: long enough for the answer to come in time. */
const SHORT_TTL_MS = 400;

/** Well above what a reply takes on a busy machine, well below the TTLs that it is set against. */
const SOON_MS = 10_000;

/** Longer than it takes, at a node that is far or silent, to see that a key is taken. */
const MIN_HOLD_MS = 1_500;

/** What every store must do, seen through the public API. `open` is called once; the tests use keys of their own. */
export function describeStore(name: string, open: () => Promise<Backend>): void {
  describe(`a lock service on ${name}`, () => {
    const services = servicesOn(open);
    let keysMade = 0;

    const twoServices = (): Promise<[LockService, LockService]> =>
      Promise.all([services.newService(), services.newService()]);

    /** A key that no other test uses. */
    const newKey = (name = 'key'): string => `${name}-${String((keysMade += 1))}`;

    describe('one key', () => {
      it('is held by the first who asks, refused to everybody else, and free after the release', async () => {
        const [first, second] = await twoServices();
        const key = newKey();

        const lock = await first.acquire(key);
        expect(lock.keys).toEqual([key]);
        expect(lock.isHeld).toBe(true);
        expect(lock.remainingMs).toBeGreaterThan(0);
        expect(await second.tryAcquire(key)).toBeNull();
        expect(await first.tryAcquire(key)).toBeNull();

        expect(await lock.release()).toBe(true);
        expect(lock.isHeld).toBe(false);
        const next = await second.tryAcquire(key);
        expect(next?.isHeld).toBe(true);
      });

      it('tells whoever is refused when to ask again', async () => {
        const [first, second] = await twoServices();
        const key = newKey();
        await first.acquire(key, { ttl: '20s' });

        const result = await second.tryRun(key, () => 'ran');
        expect(result).toEqual({ acquired: false, retryAfterMs: expect.any(Number) });

        const refusal: unknown = await second
          .acquire(key, { wait: 0 })
          .catch((error: unknown) => error);
        expect(refusal).toBeInstanceOf(LockNotAcquiredError);
        const { retryAfterMs } = refusal as LockNotAcquiredError;
        expect(retryAfterMs).toBeGreaterThan(0);
        expect(retryAfterMs).toBeLessThanOrEqual(20_000);
      });

      it('is given back at the end of run and tryRun, with the value or the error of the work', async () => {
        const service = await services.newService();
        const key = newKey();
        const failure = new Error('of the work');

        expect(await service.run(key, (lock) => lock.isHeld)).toBe(true);
        expect(await service.inspect(key)).toEqual({ held: false });
        expect(await service.tryRun(key, () => 42)).toEqual({ acquired: true, value: 42 });
        expect(await service.inspect(key)).toEqual({ held: false });
        await expect(service.run(key, () => Promise.reject(failure))).rejects.toBe(failure);
        expect(await service.inspect(key)).toEqual({ held: false });
      });

      it('is given back at the end of an `await using` block', async () => {
        const service = await services.newService();
        const key = newKey();
        {
          await using lock = await service.acquire(key);
          expect(lock.isHeld).toBe(true);
          expect(await service.inspect(key)).toMatchObject({ held: true });
        }
        expect(await service.inspect(key)).toEqual({ held: false });
      });

      it('answers every further release as it answered the first', async () => {
        const service = await services.newService();
        const lock = await service.acquire(newKey());
        expect(await Promise.all([lock.release(), lock.release()])).toEqual([true, true]);
        expect(await lock.release()).toBe(true);
      });

      it('is held by one at a time, however many ask in two services', async () => {
        const both = await twoServices();
        const key = newKey();
        let holders = 0;
        let most = 0;
        const runs = both.flatMap((service) =>
          Array.from({ length: 8 }, () =>
            service.run(key, { wait: '20s' }, async () => {
              most = Math.max(most, (holders += 1));
              await sleep(2);
              holders -= 1;
            }),
          ),
        );
        await Promise.all(runs);
        expect(most).toBe(1);
      });
    });

    describe('several keys', () => {
      it('are taken all or none', async () => {
        const [first, second] = await twoServices();
        const [a, b, c] = [newKey('a'), newKey('b'), newKey('c')];
        const lock = await first.acquire(b);

        expect(await second.tryAcquire([a, b, c])).toBeNull();
        for (const free of [a, c]) expect(await first.inspect(free)).toEqual({ held: false });

        await lock.release();
        await second.acquire([a, b, c]);
        for (const held of [a, b, c]) expect(await first.tryAcquire(held)).toBeNull();
      });

      it('are named once each, in order, whatever the order they were given in', async () => {
        const service = await services.newService();
        const [a, b] = [newKey('a'), newKey('b')];
        const lock = await service.acquire([b, a, b]);
        expect(lock.keys).toEqual([a, b]);
        expect(await lock.release()).toBe(true);
      });

      it('do not deadlock when two ask for them in opposite orders', async () => {
        const [first, second] = await twoServices();
        const [a, b, c] = [newKey('a'), newKey('b'), newKey('c')];
        let holders = 0;
        const section = async (): Promise<void> => {
          expect((holders += 1)).toBe(1);
          await sleep(1);
          holders -= 1;
        };
        const runs = Array.from({ length: 5 }, () => [
          first.run([a, b, c], { wait: '20s' }, section),
          second.run([c, b, a], { wait: '20s' }, section),
        ]);
        await Promise.all(runs.flat());
      });

      it('may be as many as twenty, anywhere in the store', async () => {
        const [first, second] = await twoServices();
        const keys = Array.from({ length: 20 }, () => newKey());
        const lock = await first.acquire(keys);
        for (const key of keys) expect(await second.tryAcquire(key)).toBeNull();
        expect(await lock.release()).toBe(true);
        expect(await second.tryAcquire(keys)).not.toBeNull();
      });

      it('are waited for until the last of them is free', async () => {
        const [first, second] = await twoServices();
        const [a, b] = [newKey('a'), newKey('b')];
        const holders = [await first.acquire(a), await first.acquire(b)];
        let granted = false;
        const waiting = second.acquire([a, b], { wait: '20s' }).then((lock) => {
          granted = true;
          return lock;
        });
        await holders[0]?.release();
        expect(await first.inspect(b)).toMatchObject({ held: true });
        expect(granted).toBe(false);
        await holders[1]?.release();
        expect((await waiting).keys).toEqual([a, b]);
      });
    });

    describe('a TTL', () => {
      it('ends a lock that is not renewed, and its holder knows', async () => {
        const [first, second] = await twoServices();
        const key = newKey();
        const lock = await first.acquire(key, { ttl: SHORT_TTL_MS, autoExtend: false });
        const aborted = until(listenable(lock.signal), 'abort');

        const next = await second.acquire(key, { wait: SOON_MS });
        await aborted;
        expect(lock.signal.reason).toBeInstanceOf(LockLostError);
        expect(lock.isHeld).toBe(false);
        expect(await lock.release()).toBe(false);
        expect(next.isHeld).toBe(true);
        expect(await second.inspect(key)).toMatchObject({ held: true });
      });

      it('is renewed for as long as the lock is held', async () => {
        const [first, second] = await twoServices();
        const key = newKey();
        const lock = await first.acquire(key, { ttl: RENEWED_TTL_MS });
        await sleep(2 * OVER_MS);
        expect(lock.isHeld).toBe(true);
        expect(lock.signal.aborted).toBe(false);
        expect(await second.tryAcquire(key)).toBeNull();
        expect(await lock.release()).toBe(true);
      });

      it('is renewed by hand, and then is the one that was asked for', async () => {
        const [first, second] = await twoServices();
        const key = newKey();
        const lock = await first.acquire(key, { ttl: RENEWED_TTL_MS, autoExtend: false });
        await lock.extend('20s');
        expect(lock.remainingMs).toBeGreaterThan(10_000);
        await sleep(OVER_MS);
        expect(lock.isHeld).toBe(true);
        const inspection = await second.inspect(key);
        expect(inspection).toMatchObject({ held: true });
        expect(inspection.held && inspection.remainingMs).toBeGreaterThan(1_000);
      });

      it('of a lock of several keys is renewed for all of them', async () => {
        const [first, second] = await twoServices();
        const keys = [newKey(), newKey(), newKey()];
        await first.acquire(keys, { ttl: RENEWED_TTL_MS });
        await sleep(OVER_MS);
        for (const key of keys) expect(await second.tryAcquire(key)).toBeNull();
      });
    });

    describe('fencing tokens', () => {
      it('grow with every grant of a key: after release, expiry and forced release, in any service', async () => {
        const [first, second] = await twoServices();
        const key = newKey();
        const tokens: number[] = [];
        for (const service of [first, second, first]) {
          const lock = await service.acquire(key);
          tokens.push(lock.fencingToken);
          await lock.release();
        }
        const expiring = await second.acquire(key, { ttl: SHORT_TTL_MS, autoExtend: false });
        tokens.push(expiring.fencingToken);
        const forced = await first.acquire(key, { wait: SOON_MS });
        tokens.push(forced.fencingToken);
        await second.forceRelease(key);
        tokens.push((await second.acquire(key)).fencingToken);

        expect(tokens.every((token) => Number.isSafeInteger(token) && token > 0)).toBe(true);
        expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other));
      });

      it('of several keys are larger than every earlier one of each key', async () => {
        const [first, second] = await twoServices();
        const [a, b, c] = [newKey('a'), newKey('b'), newKey('c')];
        const tokenOf = (service: LockService, keys: string | string[]): Promise<number> =>
          service.run(keys, ({ fencingToken }) => fencingToken);

        const before = [await tokenOf(first, a), await tokenOf(second, b), await tokenOf(first, b)];
        const together = await tokenOf(second, [a, b, c]);
        expect(together).toBeGreaterThan(Math.max(...before));
        for (const key of [a, b, c]) expect(await tokenOf(first, key)).toBeGreaterThan(together);
      });
    });

    describe('inspect and forceRelease', () => {
      it('tell whether a key is held and for how long, and end whoever holds it', async () => {
        const [holder, operator] = await twoServices();
        const key = newKey();
        expect(await operator.inspect(key)).toEqual({ held: false });
        expect(await operator.forceRelease(key)).toBe(false);

        await holder.acquire(key, { ttl: '20s' });
        const inspection = await operator.inspect(key);
        expect(inspection).toEqual({ held: true, remainingMs: expect.any(Number) });
        expect(inspection.held && inspection.remainingMs).toBeGreaterThan(0);
        expect(inspection.held && inspection.remainingMs).toBeLessThanOrEqual(20_000);

        expect(await operator.forceRelease(key)).toBe(true);
        expect(await operator.inspect(key)).toEqual({ held: false });
        expect(await operator.tryAcquire(key)).not.toBeNull();
      });

      it('the next caller in line gets a lock that was released by force', async () => {
        const [holder, waiter] = await twoServices();
        const key = newKey();
        await holder.acquire(key, { ttl: '60s', autoExtend: false });
        const waiting = waiter.acquire(key, { wait: '25s' });
        await waitsInLine(waiter, key);
        await holder.forceRelease(key);
        expect((await waiting).isHeld).toBe(true);
      });
    });

    describe('a lock that is taken away', () => {
      it('is reported by the signal and by the event, and its release answers false', async () => {
        const [holder, operator] = await twoServices();
        const key = newKey();
        const lock = await holder.acquire(key, { ttl: 1_000 });
        const lost = deferred<LockEvents['lost']>();
        holder.on('lost', lost.resolve);
        const aborted = until(listenable(lock.signal), 'abort');

        await operator.forceRelease(key);
        await aborted;
        expect(lock.signal.reason).toMatchObject({ reason: BY_FORCE, keys: [key] });
        const { fencingToken } = lock;
        expect(await lost.promise).toMatchObject({
          keys: [key],
          mode: 'exclusive',
          fencingToken,
          reason: BY_FORCE,
        });
        expect(await lock.release()).toBe(false);
        await expect(lock.extend()).rejects.toBeInstanceOf(LockLostError);
        expect(() => {
          lock.assertHeld();
        }).toThrow(LockLostError);
      });

      it('makes run fail, although the work itself succeeded', async () => {
        const [holder, operator] = await twoServices();
        const key = newKey();
        const running = holder.run(key, { ttl: 1_000 }, async ({ signal }) => {
          const aborted = until(listenable(signal), 'abort');
          await operator.forceRelease(key);
          await aborted;
          return 'done';
        });
        await expect(running).rejects.toBeInstanceOf(LockLostError);
      });

      it('is not given back by its former holder once somebody else has it', async () => {
        const [former, present] = await twoServices();
        const key = newKey();
        const lost = await former.acquire(key, { ttl: '20s' });
        await present.forceRelease(key);
        const lock = await present.acquire(key);

        expect(await lost.release()).toBe(false);
        expect(await former.inspect(key)).toMatchObject({ held: true });
        expect(await lock.release()).toBe(true);
      });

      it('of which one key is gone is lost as a whole, and its other keys are given back', async () => {
        const [holder, operator] = await twoServices();
        const [a, b] = [newKey('a'), newKey('b')];
        const lock = await holder.acquire([a, b], { ttl: 300 });
        const aborted = until(listenable(lock.signal), 'abort');
        await operator.forceRelease(b);
        await aborted;
        await eventually(async () => !(await operator.inspect(a)).held);
      });
    });

    describe('waiting', () => {
      it('ends with the release, in the same service and in another', async () => {
        const [first, second] = await twoServices();
        const key = newKey();
        for (const waiter of [first, second]) {
          const holder = await first.acquire(key, { ttl: '60s', autoExtend: false });
          const waiting = waiter.acquire(key, { wait: '25s' });
          await waitsInLine(waiter, key);
          await holder.release();
          const lock = await waiting;
          expect(lock.isHeld).toBe(true);
          await lock.release();
        }
      });

      it('in vain ends after the time given, and says how long it was', async () => {
        const [holder, waiter] = await twoServices();
        const key = newKey();
        await holder.acquire(key);
        const refusal: unknown = await waiter
          .acquire(key, { wait: 150 })
          .catch((error: unknown) => error);
        expect(refusal).toBeInstanceOf(LockNotAcquiredError);
        expect((refusal as LockNotAcquiredError).waitedMs).toBeGreaterThanOrEqual(150);
        expect((refusal as LockNotAcquiredError).waitedMs).toBeLessThan(SOON_MS);
      });

      it('ends with the reason of its AbortSignal, before or during the wait', async () => {
        const [holder, waiter] = await twoServices();
        const key = newKey();
        await holder.acquire(key);
        const reason = new Error('the client went away');

        await expect(waiter.acquire(key, { signal: AbortSignal.abort(reason) })).rejects.toBe(
          reason,
        );

        const controller = new AbortController();
        const waiting = waiter.acquire(key, { wait: '25s', signal: controller.signal });
        await waitsInLine(waiter, key);
        controller.abort(reason);
        await expect(waiting).rejects.toBe(reason);
      });

      it('is in the order of asking within a process', async () => {
        const [holder, waiter] = await twoServices();
        const key = newKey();
        const lock = await holder.acquire(key);
        const order: number[] = [];
        const runs = [0, 1, 2, 3, 4].map((turn) =>
          waiter.run(key, { wait: '25s' }, () => {
            order.push(turn);
          }),
        );
        await waitsInLine(waiter, key);
        await lock.release();
        await Promise.all(runs);
        expect(order).toEqual([0, 1, 2, 3, 4]);
      });

      it('leaves nothing behind in the store when it is given up', async () => {
        const [holder, waiter] = await twoServices();
        const key = newKey();
        await holder.acquire(key);
        const controller = new AbortController();
        const waiting = [
          waiter.acquire(key, { wait: '25s', signal: controller.signal }),
          waiter.acquire(key, { wait: '25s', signal: controller.signal }),
          waiter.acquire([key, newKey()], { wait: 200 }),
        ];
        const ended = Promise.allSettled(waiting);
        await waitsInLine(waiter, key);
        controller.abort();
        await ended;
        await eventually(async () => (await queues()).length === 0);
        expect(await holder.inspect(key)).toMatchObject({ held: true });
      });

      it('lets the next in line have the lock when the first one has given up', async () => {
        const [holder, waiter] = await twoServices();
        const key = newKey();
        const lock = await holder.acquire(key);
        const controller = new AbortController();
        const first = waiter.acquire(key, { wait: '25s', signal: controller.signal });
        const second = waiter.acquire(key, { wait: '25s' });
        await waitsInLine(waiter, key);
        controller.abort();
        await expect(first).rejects.toMatchObject({ name: 'AbortError' });
        await lock.release();
        expect((await second).isHeld).toBe(true);
      });
    });

    describe('minHold', () => {
      it('keeps keys taken after a release that comes before it is over, and no longer', async () => {
        const [first, second] = await twoServices();
        const keys = [newKey(), newKey()];
        const lock = await first.acquire(keys, { ttl: '20s', minHold: MIN_HOLD_MS });
        const since = performance.now();
        expect(await lock.release()).toBe(true);
        expect(lock.isHeld).toBe(false);

        for (const service of [first, second]) {
          for (const key of keys) {
            expect(await service.tryAcquire(key)).toBeNull();
            const inspection = await service.inspect(key);
            expect(inspection).toMatchObject({ held: true });
            expect(inspection.held && inspection.remainingMs).toBeLessThanOrEqual(MIN_HOLD_MS);
          }
        }
        const next = await second.acquire(keys, { wait: SOON_MS });
        expect(performance.now() - since).toBeGreaterThan(MIN_HOLD_MS - 10);
        expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
      });

      it('that is over before the work is frees the key at once', async () => {
        const service = await services.newService();
        const key = newKey();
        await service.run(key, { ttl: '20s', minHold: 50 }, () => sleep(90));
        expect(await service.inspect(key)).toEqual({ held: false });
      });

      it('over, whoever is next in line gets the key, in whatever process, and not at the end of the TTL', async () => {
        const [first, second] = await twoServices();
        const third = await services.newService();
        const key = newKey();
        const lock = await first.acquire(key, { ttl: '60s', minHold: MIN_HOLD_MS });
        const since = performance.now();
        const order: number[] = [];
        const waiting = [second, first, third].map(async (service, turn) => {
          await service.run(key, { wait: '30s' }, () => {
            order.push(turn);
            return performance.now() - since;
          });
          return performance.now() - since;
        });
        await waitsInLine(second, key);
        await lock.release();
        const times = await Promise.all(waiting);
        expect(Math.min(...times)).toBeGreaterThan(MIN_HOLD_MS - 10);
        expect(Math.max(...times)).toBeLessThan(SOON_MS);
        expect(order.sort()).toEqual([0, 1, 2]);
      });
    });

    describe("release: 'on-expiry'", () => {
      it('keeps a key for a TTL after the work, also when that throws', async () => {
        const [first, second] = await twoServices();
        const options = { ttl: MIN_HOLD_MS, release: 'on-expiry' } as const;
        for (const fails of [false, true]) {
          const key = newKey();
          let since = 0; // the end of the work, from which the TTL counts: its answer may take its time
          const running = first.run(key, options, async () => {
            await sleep(MIN_HOLD_MS / 2);
            since = performance.now();
            if (fails) throw new Error('of the work');
          });
          await running.catch(() => undefined);
          expect(await second.tryRun(key, options, () => 'ran')).toMatchObject({ acquired: false });
          expect(await first.tryAcquire(key)).toBeNull();
          const next = await second.acquire(key, { wait: SOON_MS });
          expect(performance.now() - since).toBeGreaterThan(MIN_HOLD_MS - 10);
          await next.release();
          // A master that hears of a kept lease late keeps it for longer than the majority did.
          await eventually(async () =>
            (await services.stored(key)).every(({ name }) => FENCE.test(name)),
          );
        }
      });
    });

    describe('waits without end, leases that end, and leaders', () => {
      it('waits without end until the key is free', async () => {
        const [first, second] = await twoServices();
        const key = newKey();
        const lock = await first.acquire(key);
        const waiting = second.acquire(key, { wait: 'forever' });
        await waitsInLine(second, key);
        await lock.release();
        const next = await waiting;
        expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
        await next.release();
      });

      it('ends a lock with its TTL when its renewals are stopped', async () => {
        const [first, second] = await twoServices();
        const key = newKey();
        const lock = await first.acquire(key, { ttl: RENEWED_TTL_MS });
        const ended = until(listenable(lock.signal), 'abort');
        lock.stopRenewal();
        const next = await second.acquire(key, { wait: SOON_MS });
        await ended;
        expect(lock.signal.reason).toBeInstanceOf(LockLostError);
        await next.release();
      });

      it('elects one leader, and the next one in a later term when it stops', async () => {
        const services = await twoServices();
        const key = newKey();
        const terms: { readonly who: number; readonly term: number }[] = [];
        const [first, second] = services.map((service, who) =>
          service.lead(key, { onElected: ({ term }) => void terms.push({ who, term }) }),
        );
        await eventually(() => terms.length === 1, { withinMs: SOON_MS });
        await (first?.isLeader === true ? first : second)?.stop();
        await eventually(() => terms.length === 2, { withinMs: SOON_MS });
        expect(terms[1]?.who).not.toBe(terms[0]?.who);
        expect(terms[1]?.term).toBeGreaterThan(terms[0]?.term ?? Infinity);
        await Promise.all([first?.stop(), second?.stop()]);
      });
    });

    const queues = async (): Promise<readonly StoredKey[]> =>
      (await services.stored()).filter(({ name }) => /queue\}?$/.test(name));

    /** Until the store shows that somebody stands in line for the key, or where one cannot look, until one had the time to. */
    const waitsInLine = async (waiter: LockService, key: string): Promise<void> => {
      if (services.backend.storedKeys === undefined) await waiter.inspect(key);
      else await eventually(async () => (await queues()).some(({ name }) => name.includes(key)));
    };
  });
}

/** An EventTarget as `until` takes it. */
const listenable = (signal: AbortSignal): Parameters<typeof until>[0] => ({
  once: (event, listener) => {
    signal.addEventListener(event, listener, { once: true });
  },
});
