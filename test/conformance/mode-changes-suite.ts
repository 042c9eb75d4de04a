import { describe, expect, it } from '@jest/globals';
import type { LockService } from 'nestjs-holdfast';
import {
  LockConfigurationError,
  LockLostError,
  LockNotAcquiredError,
  LockReentrancyError,
  LockServiceClosedError,
  type Lock,
} from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.js';
import { servicesOn } from './services.js';
import { BY_FORCE, type Backend } from './suite.js';

interface Abilities {
  /** Over several masters nothing can be upgraded. */
  readonly upgrades: boolean;
}

const SHARED = { mode: 'shared' } as const;
const UPGRADEABLE = { mode: 'upgradeable' } as const;
const LONG_WAIT = '25s';

/** A lease that is renewed, and so long that no pause of a busy machine costs it. */
const RENEWED_TTL_MS = 1_500;

/** What every store must do of locks whose mode changes. `open` is called once; the tests use keys of their own. */
export function describeModeChanges(
  name: string,
  { upgrades }: Abilities,
  open: () => Promise<Backend>,
): void {
  describe(`a lock whose mode changes, on ${name},`, () => {
    const services = servicesOn(open);
    let keysMade = 0;
    let key = '';

    const setUp = async (): Promise<[LockService, LockService, LockService]> => {
      key = `key-${String((keysMade += 1))}`;
      const three = await Promise.all([
        services.newService(),
        services.newService(),
        services.newService(),
      ]);
      await Promise.all(three.map(hearsCalls));
      return three;
    };

    /** Whoever waits for the first time asks once more when the service hears of releases. From then on the first answer gives a place in line. */
    const hearsCalls = async (service: LockService): Promise<void> => {
      const name = `heard-${String((keysMade += 1))}`;
      const lock = await service.acquire(name, { ttl: '10s', autoExtend: false });
      const waiting = waits(service);
      const next = service.acquire(name, { wait: LONG_WAIT, ttl: '20s' });
      await waiting;
      await lock.release();
      await (await next).release();
    };

    const waits = (service: LockService): Promise<void> =>
      new Promise((resolve) => {
        const stop = service.on('waiting', () => {
          stop();
          resolve();
        });
      });

    /** Resolves when the call waits. */
    const wait = async (
      service: LockService,
      options: Parameters<LockService['acquire']>[1] = {},
    ): Promise<{ readonly lock: Promise<Lock> }> => {
      const waiting = waits(service);
      const lock = service.acquire(key, { wait: LONG_WAIT, ...options });
      lock.catch(() => undefined);
      await waiting;
      return { lock };
    };

    /** Resolves when the upgrade waits. */
    const upgrading = async (
      service: LockService,
      lock: Lock,
      options: Parameters<Lock['upgrade']>[0] = { wait: LONG_WAIT },
    ): Promise<{ readonly done: Promise<void> }> => {
      const waiting = waits(service);
      const done = lock.upgrade(options);
      done.catch(() => undefined);
      await waiting;
      return { done };
    };

    describe('downgraded', () => {
      it('lets readers in beside it, keeps its token, and gives back its share', async () => {
        const [one, two, three] = await setUp();
        const lock = await one.acquire(key, { ttl: RENEWED_TTL_MS });
        const { fencingToken } = lock;
        expect(await two.tryAcquire(key, SHARED)).toBeNull();
        await lock.downgrade();
        expect([lock.mode, lock.isHeld, lock.fencingToken]).toEqual(['shared', true, fencingToken]);
        expect(await three.tryAcquire(key)).toBeNull();
        const reader = await eventually(() => two.tryAcquire(key, SHARED));
        expect(reader.fencingToken).toBe(fencingToken);
        expect(await lock.release()).toBe(true);
        expect(await three.tryAcquire(key)).toBeNull();
        expect(await reader.release()).toBe(true);
        const writer = await eventually(() => three.tryAcquire(key));
        expect(writer.fencingToken).toBeGreaterThan(fencingToken);
      });

      it('is renewed as what it is, until it is released', async () => {
        const [one, two] = await setUp();
        const lock = await one.acquire(key, { ttl: RENEWED_TTL_MS });
        await lock.downgrade();
        await sleep(RENEWED_TTL_MS + 500);
        expect([lock.isHeld, lock.signal.aborted]).toEqual([true, false]);
        expect(await two.tryAcquire(key)).toBeNull();
        expect(await lock.release()).toBe(true);
        expect(await two.tryAcquire(key)).not.toBeNull();
      });

      it('lets in at once the readers that wait, and no writer gets in between', async () => {
        const [one, two, three] = await setUp();
        const lock = await one.acquire(key, { ttl: '20s' });
        const first = await wait(two, SHARED);
        const second = await wait(two, SHARED);
        const writer = upgrades ? await wait(three) : undefined;
        await lock.downgrade();
        const readers = await Promise.all([first.lock, second.lock]);
        expect([lock.isHeld, ...readers.map(({ isHeld }) => isHeld)]).toEqual([true, true, true]);
        await Promise.all([lock, ...readers].map((each) => each.release()));
        const written = await (writer?.lock ?? three.acquire(key, { wait: LONG_WAIT }));
        expect(written.fencingToken).toBeGreaterThan(lock.fencingToken);
      });

      it('keeps the scope of run going', async () => {
        const [one, two] = await setUp();
        await one.run(key, async (lock) => {
          await lock.downgrade();
          const reader = await eventually(() => two.tryAcquire(key, SHARED));
          await reader.release();
          await one.run(key, SHARED, ({ depth }) => {
            expect(depth).toBe(2);
          });
          await expect(one.run(key, () => undefined)).rejects.toThrow(LockReentrancyError);
        });
        expect(await eventually(() => two.tryAcquire(key))).not.toBeNull();
      });

      it('cannot be made exclusive again: two such holders would wait for each other', async () => {
        const [one] = await setUp();
        const lock = await one.acquire(key);
        await lock.downgrade();
        await expect(lock.upgrade()).rejects.toThrow(LockConfigurationError);
        await expect(lock.upgrade()).rejects.toThrow(/'upgradeable'/);
        expect(lock.isHeld).toBe(true);
      });

      it('is refused once it is over, and in a nested call', async () => {
        const [one] = await setUp();
        const lock = await one.acquire(key);
        await lock.release();
        await expect(lock.downgrade()).rejects.toThrow(LockLostError);
        await one.run(key, () =>
          one.run(key, async (nested) => {
            await expect(nested.downgrade()).rejects.toThrow(/nested call/);
          }),
        );
      });
    });

    if (!upgrades) {
      it('cannot be upgradeable, and the error says why', async () => {
        const [one] = await setUp();
        await expect(one.acquire(key, UPGRADEABLE)).rejects.toThrow(/several masters|several/);
        const lock = await one.acquire(key);
        await expect(lock.downgrade({ to: 'upgradeable' })).rejects.toThrow(/several masters/);
        expect([lock.mode, lock.isHeld]).toEqual(['exclusive', true]);
      });
      return;
    }

    describe('upgradeable', () => {
      it('is one of a kind: readers hold the key beside it, writers and others of its kind do not', async () => {
        const [one, two, three] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: RENEWED_TTL_MS });
        expect(lock.mode).toBe('upgradeable');
        const reader = await two.acquire(key, SHARED);
        expect(reader.fencingToken).toBe(lock.fencingToken);
        expect(await three.tryAcquire(key, UPGRADEABLE)).toBeNull();
        expect(await three.tryAcquire(key)).toBeNull();
        await lock.release();
        const next = await three.tryAcquire(key, UPGRADEABLE);
        expect(next?.mode).toBe('upgradeable');
        await reader.release();
        expect(await two.tryAcquire(key)).toBeNull();
        await next?.release();
        expect(await two.tryAcquire(key)).not.toBeNull();
      });

      it('is renewed, and its end lets the next of its kind in', async () => {
        const [one, two] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: RENEWED_TTL_MS });
        const next = await wait(two, { ...UPGRADEABLE, ttl: RENEWED_TTL_MS });
        await sleep(RENEWED_TTL_MS + 500);
        expect(lock.isHeld).toBe(true);
        await lock.release();
        expect((await next.lock).isHeld).toBe(true);
      });

      it('is exclusive at once where nobody reads, with a larger token', async () => {
        const [one, two] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: RENEWED_TTL_MS });
        const before = lock.fencingToken;
        await lock.upgrade();
        expect([lock.mode, lock.isHeld]).toEqual(['exclusive', true]);
        expect(lock.fencingToken).toBeGreaterThan(before);
        expect(await two.tryAcquire(key, SHARED)).toBeNull();
        await sleep(RENEWED_TTL_MS + 500);
        expect([lock.isHeld, await two.tryAcquire(key, SHARED)]).toEqual([true, null]);
        await lock.upgrade();
        expect(await lock.release()).toBe(true);
        const reader = await two.tryAcquire(key, SHARED);
        expect(reader?.fencingToken).toBeGreaterThan(lock.fencingToken);
      });

      it('waits for the readers, and keeps new ones out meanwhile', async () => {
        const [one, two, three] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: '20s' });
        const readers = [await two.acquire(key, SHARED), await three.acquire(key, SHARED)];
        const { done } = await upgrading(one, lock);
        expect(lock.mode).toBe('upgradeable');
        expect(await two.tryAcquire(key, SHARED)).toBeNull();
        const late = await wait(three, SHARED);
        await readers[0]?.release();
        expect([lock.mode, await two.tryAcquire(key, SHARED)]).toEqual(['upgradeable', null]);
        await readers[1]?.release();
        await done;
        expect(lock.mode).toBe('exclusive');
        expect(await two.tryAcquire(key, SHARED)).toBeNull();
        await lock.release();
        expect((await late.lock).fencingToken).toBeGreaterThan(lock.fencingToken);
      });

      it('goes before writers that wait, which it would wait for else', async () => {
        const [one, two, three] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: '20s' });
        const reader = await two.acquire(key, SHARED);
        const writer = await wait(three);
        const { done } = await upgrading(one, lock);
        await reader.release();
        await done;
        await lock.release();
        expect((await writer.lock).fencingToken).toBeGreaterThan(lock.fencingToken);
      });

      it('gets the key when a reader that died is over', async () => {
        const [one, two] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: '20s' });
        const reader = await two.acquire(key, { ...SHARED, ttl: 600, autoExtend: false });
        await lock.upgrade({ wait: LONG_WAIT });
        expect([lock.mode, reader.isHeld]).toEqual(['exclusive', false]);
      });

      it('gets the key when the `minHold` of a reader that has released is over', async () => {
        const [one, two] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: '1m' });
        const reader = await two.acquire(key, { ...SHARED, ttl: '1m', minHold: 500 });
        // Sooner than a caller looks again that nothing has called.
        const { done } = await upgrading(one, lock, { wait: 4_000 });
        await reader.release();
        await done;
        expect(lock.mode).toBe('exclusive');
      });

      it('stays upgradeable when the wait is over, and lets readers in again', async () => {
        const [one, two, three] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: '20s' });
        const reader = await two.acquire(key, SHARED);
        await expect(lock.upgrade({ wait: 0 })).rejects.toThrow(LockNotAcquiredError);
        const upgrade = lock.upgrade({ wait: 400 });
        upgrade.catch(() => undefined);
        await eventually(async () => {
          const other = await two.tryAcquire(key, SHARED);
          await other?.release();
          return other === null;
        });
        const late = await wait(three, SHARED);
        await expect(upgrade).rejects.toThrow(LockNotAcquiredError);
        expect([lock.mode, lock.isHeld]).toEqual(['upgradeable', true]);
        expect((await late.lock).fencingToken).toBe(lock.fencingToken);
        await Promise.all([reader.release(), late.lock.then((each) => each.release())]);
        await lock.upgrade();
        expect(lock.mode).toBe('exclusive');
      });

      it('stays upgradeable when the signal aborts, with its reason', async () => {
        const [one, two] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: '20s' });
        const reader = await two.acquire(key, SHARED);
        const stop = new AbortController();
        const { done } = await upgrading(one, lock, { wait: 'forever', signal: stop.signal });
        await expect(lock.upgrade()).rejects.toThrow(/waits to be upgraded already/);
        await expect(lock.downgrade()).rejects.toThrow(/waits to be upgraded already/);
        stop.abort(new Error('no longer'));
        await expect(done).rejects.toThrow('no longer');
        expect([lock.mode, lock.isHeld]).toEqual(['upgradeable', true]);
        expect(await eventually(() => two.tryAcquire(key, SHARED))).not.toBeNull();
        expect(await reader.release()).toBe(true);
      });

      it('ends the wait for the upgrade when it is released', async () => {
        const [one, two, three] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: '20s' });
        const reader = await two.acquire(key, SHARED);
        const { done } = await upgrading(one, lock);
        expect(await lock.release()).toBe(true);
        await expect(done).rejects.toMatchObject({ reason: 'released' });
        expect(await eventually(() => three.tryAcquire(key, UPGRADEABLE))).not.toBeNull();
        await reader.release();
      });

      it('ends the wait for the upgrade when it is lost, and when its service shuts down', async () => {
        const [one, two, three] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: 1_000, maxHold: 2_000 });
        await two.acquire(key, SHARED);
        const { done } = await upgrading(one, lock, { wait: 'forever' });
        await expect(done).rejects.toMatchObject({ reason: 'max-hold' });
        const next = await eventually(() => three.tryAcquire(key, UPGRADEABLE));
        const other = await upgrading(three, next, { wait: 'forever' });
        await three.shutdown(0);
        await expect(other.done).rejects.toThrow(LockServiceClosedError);
      });

      it('is lost for its holder when it is released by force in the middle', async () => {
        const [one, two, three] = await setUp();
        const lock = await one.acquire(key, { ...UPGRADEABLE, ttl: 1_000 });
        await two.acquire(key, SHARED);
        const { done } = await upgrading(one, lock, { wait: 'forever' });
        const { signal } = lock;
        await three.forceRelease(key);
        // The reader may be told first: then the upgrade is granted, and its lock is lost after that.
        await done.catch((error: unknown) => {
          expect(error).toMatchObject({ reason: BY_FORCE });
        });
        await eventually(() => signal.aborted);
        expect(signal.reason).toMatchObject({ reason: BY_FORCE });
        expect(lock.isHeld).toBe(false);
      });

      it('that was upgraded is upgradeable again after a downgrade, and shared on request', async () => {
        const [one, two, three] = await setUp();
        const lock = await one.acquire(key, UPGRADEABLE);
        await lock.upgrade();
        const { fencingToken } = lock;
        const late = await wait(two, SHARED);
        await lock.downgrade();
        expect([lock.mode, lock.fencingToken]).toEqual(['upgradeable', fencingToken]);
        const reader = await late.lock;
        expect(reader.fencingToken).toBe(fencingToken);
        expect(await three.tryAcquire(key, UPGRADEABLE)).toBeNull();
        await reader.release();
        await lock.upgrade();
        expect(lock.fencingToken).toBeGreaterThan(fencingToken);
        await lock.downgrade({ to: 'shared' });
        expect(lock.mode).toBe('shared');
        expect(await three.tryAcquire(key, UPGRADEABLE)).not.toBeNull();
      });

      it('lets the next of its kind in when it becomes a plain reader', async () => {
        const [one, two] = await setUp();
        const lock = await one.acquire(key, UPGRADEABLE);
        const next = await wait(two, UPGRADEABLE);
        await lock.downgrade();
        expect(lock.mode).toBe('shared');
        const other = await next.lock;
        const { done } = await upgrading(two, other);
        await lock.release();
        await done;
      });

      it('works in run, where a nested reader goes through and a nested writer needs the upgrade', async () => {
        const [one, two] = await setUp();
        await one.run(key, UPGRADEABLE, async (lock) => {
          await one.run(key, SHARED, () => undefined);
          const refusal = one.run(key, () => undefined);
          await expect(refusal).rejects.toMatchObject({
            detail: expect.stringMatching(/upgrade\(\)/),
          });
          await lock.upgrade();
          expect(await two.tryAcquire(key, SHARED)).toBeNull();
          await one.run(key, () => undefined);
        });
        expect(await two.tryAcquire(key)).not.toBeNull();
      });

      it('has all of its keys or none: those of two are upgraded together', async () => {
        const [one, two] = await setUp();
        const keys = [`${key}-a`, `${key}-b`];
        const lock = await one.acquire(keys, { ...UPGRADEABLE, ttl: '20s' });
        const reader = await two.acquire(`${key}-b`, SHARED);
        const done = lock.upgrade({ wait: LONG_WAIT });
        await eventually(async () => {
          const other = await two.tryAcquire(`${key}-a`, SHARED);
          await other?.release();
          return other === null;
        });
        expect(lock.mode).toBe('upgradeable');
        await reader.release();
        await done;
        expect(lock.mode).toBe('exclusive');
        await lock.downgrade();
        const readers = await two.tryAcquire(keys, SHARED);
        expect(readers?.fencingToken).toBe(lock.fencingToken);
      });
    });
  });
}
