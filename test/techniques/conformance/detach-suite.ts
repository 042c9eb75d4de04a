import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import {
  LockConfigurationError,
  LockKeyError,
  LockLostError,
  LockNotAttachedError,
  LockService,
  type LockEvents,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import type { NotAttachedReason } from '../../../lib/errors.js';
import { eventually } from '../../support/eventually.js';
import { servicesOn } from './services.js';
import type { Backend } from './suite.js';

/** A lease that is renewed, and so long that no pause of a busy machine costs it. */
const RENEWED_TTL_MS = 1_500;

/** Long enough for the answer to come in time. */
const SHORT_TTL_MS = 600;

/** What every store must do of locks that go from one service to another. */
export function describeDetached(name: string, open: () => Promise<Backend>): void {
  describe(`a lock that is detached, on ${name},`, () => {
    const services = servicesOn(open);
    let keysMade = 0;
    let key = '';

    const newService = async (options: Partial<LockModuleOptions> = {}): Promise<LockService> => {
      const service = await services.newService(options);
      key = `key-${String((keysMade += 1))}`;
      return service;
    };

    const twoServices = async (): Promise<[LockService, LockService]> => [
      await newService(),
      await newService(),
    ];

    const expectRefused = async (attaching: Promise<unknown>, reason: NotAttachedReason) => {
      const refusal: unknown = await attaching.catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(LockNotAttachedError);
      expect(refusal).toMatchObject({ reason, keys: [key] });
    };

    it('is held by whoever attaches it: same keys, mode and fencing token', async () => {
      const [first, second] = await twoServices();
      const lock = await first.acquire(key);
      const text = await lock.detach();
      expect(await first.tryAcquire(key)).toBeNull();

      const taken = await second.attach(text);
      expect(taken.keys).toEqual([key]);
      expect(taken.fencingToken).toBe(lock.fencingToken);
      expect(taken.isHeld).toBe(true);
      taken.assertHeld();
      expect(await first.tryAcquire(key)).toBeNull();
      expect(await second.tryAcquire(key)).toBeNull();

      expect(await taken.release()).toBe(true);
      const next = await first.acquire(key);
      expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
    });

    it('is nothing any more where it was, which is no loss', async () => {
      const [first, second] = await twoServices();
      const lost: LockEvents['lost'][] = [];
      const heard: unknown[] = [];
      first.on('lost', (event) => lost.push(event));
      first.on('detached', ({ keys, ttlMs }) => heard.push(['detached', keys, ttlMs]));
      second.on('attached', ({ keys }) => heard.push(['attached', keys]));
      first.on('released', () => heard.push('released'));
      const lock = await first.acquire(key, { ttl: SHORT_TTL_MS });
      const text = await lock.detach({ ttl: '20s' });

      expect(lock.isHeld).toBe(false);
      expect(lock.remainingMs).toBe(0);
      expect(() => {
        lock.assertHeld();
      }).toThrow(expect.objectContaining({ reason: 'detached' }));
      await expect(lock.extend()).rejects.toMatchObject({ reason: 'detached' });
      await expect(lock.detach()).rejects.toBeInstanceOf(LockLostError);
      expect(await lock.release()).toBe(false);

      const taken = await second.attach(text);
      await sleep(SHORT_TTL_MS); // the first one would renew it, or find that it cannot
      expect(taken.isHeld).toBe(true);
      expect(lock.signal.aborted).toBe(false);
      expect(lost).toEqual([]);
      expect(heard).toEqual([
        ['detached', [key], 20_000],
        ['attached', [key]],
      ]);
      await taken.release();
    });

    it('is given up without a release by `await using`, when it was detached in the block', async () => {
      const [first, second] = await twoServices();
      let text: string;
      {
        await using lock = await first.acquire(key);
        text = await lock.detach();
      }
      expect(await first.tryAcquire(key)).toBeNull();
      await (await second.attach(text)).release();
    });

    it('can be attached once', async () => {
      const [first, second] = await twoServices();
      const text = await (await first.acquire(key)).detach();
      const taken = await second.attach(text);
      await expectRefused(first.attach(text), 'attached');
      await expectRefused(second.attach(text), 'attached');
      await taken.extend();
      expect(await taken.release()).toBe(true);
      await expectRefused(first.attach(text), 'released-elsewhere');
    });

    it('goes to one of many who attach it in the same moment', async () => {
      const both = await twoServices();
      const text = await (await both[0].acquire(key)).detach();
      const tries = await Promise.allSettled(
        Array.from({ length: 8 }, (_, index) => (both[index % 2] as LockService).attach(text)),
      );
      const taken = tries.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
      const refused = tries.flatMap((each) =>
        each.status === 'rejected' ? [each.reason as unknown] : [],
      );
      expect(taken).toHaveLength(1);
      expect(refused).toHaveLength(7);
      for (const refusal of refused)
        expect(refusal).toMatchObject({ name: 'LockNotAttachedError', reason: 'attached' });
      await taken[0]?.extend();
      expect(await taken[0]?.release()).toBe(true);
    });

    it('is free when nobody has attached it in time, and says so', async () => {
      const [first, second] = await twoServices();
      const lock = await first.acquire(key);
      const text = await lock.detach({ ttl: SHORT_TTL_MS });
      const next = await second.acquire(key, { wait: '20s' });
      await expectRefused(second.attach(text), 'stolen');
      await next.extend();
      expect(await next.release()).toBe(true);

      const again = await (await first.acquire(key)).detach({ ttl: SHORT_TTL_MS });
      await eventually(async () => !(await second.inspect(key)).held);
      await sleep(50); // by the wall clock, too
      await expectRefused(second.attach(again), 'expired');
    });

    it('stays for the `ttl` of detach, however short its own, and is renewed when it is attached', async () => {
      const [first, second] = await twoServices();
      const lock = await first.acquire(key, { ttl: RENEWED_TTL_MS });
      const text = await lock.detach({ ttl: 2 * RENEWED_TTL_MS });
      await sleep(RENEWED_TTL_MS + 300);
      const taken = await second.attach(text);
      expect(taken.remainingMs).toBeLessThanOrEqual(RENEWED_TTL_MS);
      await sleep(RENEWED_TTL_MS + 300);
      expect(taken.isHeld).toBe(true);
      expect(await first.tryAcquire(key)).toBeNull();
      expect(await taken.release()).toBe(true);
    });

    it('has the `ttl` that it is attached with, and is not renewed with `autoExtend: false`', async () => {
      const [first, second] = await twoServices();
      const text = await (await first.acquire(key)).detach();
      const taken = await second.attach(text, { ttl: SHORT_TTL_MS, autoExtend: false });
      const reasons: string[] = [];
      second.on('lost', ({ reason }) => reasons.push(reason));
      await first.acquire(key, { wait: '20s' });
      await eventually(() => reasons.length > 0);
      expect(taken.isHeld).toBe(false);
      expect(reasons).toEqual(['expired']);
    });

    it('outlives the service that detached it', async () => {
      const [first, second] = await twoServices();
      const text = await (await first.acquire(key)).detach();
      await first.shutdown();
      expect(await second.tryAcquire(key)).toBeNull();
      const taken = await second.attach(text);
      expect(await taken.release()).toBe(true);
    });

    it('is not passed on to those who wait for it in the same process', async () => {
      const [first, second] = await twoServices();
      const lock = await first.acquire(key);
      const waiting = [1, 2].map(() => first.acquire(key, { wait: '25s' }));
      let granted = 0;
      for (const each of waiting) void each.then(() => (granted += 1));
      const text = await lock.detach();
      const taken = await second.attach(text);
      await sleep(300);
      expect(granted).toBe(0);
      await taken.release();
      const tokens = [taken.fencingToken];
      for (const each of waiting) {
        const next = await each;
        tokens.push(next.fencingToken);
        await next.release();
      }
      expect(tokens).toEqual(tokens.toSorted((one, other) => one - other));
      expect(new Set(tokens).size).toBe(3);
    });

    it('can be one that was passed on inside the process: the tenure ends with it', async () => {
      const [first, second] = await twoServices();
      const lock = await first.acquire(key);
      const [turn, last] = [1, 2].map(() => first.acquire(key, { wait: '25s' }));
      await lock.release();
      const passedOn = await turn;
      const text = await passedOn?.detach();
      const taken = await second.attach(String(text));
      expect(taken.fencingToken).toBe(passedOn?.fencingToken);
      await taken.extend();
      expect(await taken.release()).toBe(true);
      const next = await last;
      expect(next?.fencingToken).toBeGreaterThan(taken.fencingToken);
      await next?.release();
    });

    it('can be of several keys, all or none', async () => {
      const [first, second] = await twoServices();
      const keys = ['a', 'b', 'c'].map((letter) => `${key}-${letter}`);
      const lock = await first.acquire(keys);
      const text = await lock.detach();
      for (const each of keys) expect(await second.tryAcquire(each)).toBeNull();
      const taken = await second.attach(text);
      expect(taken.keys).toEqual(keys);
      expect(taken.fencingToken).toBe(lock.fencingToken);
      await expect(first.attach(text)).rejects.toMatchObject({ reason: 'attached' });
      await taken.extend();
      expect(await taken.release()).toBe(true);
      for (const each of keys) expect(await first.inspect(each)).toEqual({ held: false });

      const again = await (await first.acquire(keys)).detach({ ttl: '20s' });
      await first.forceRelease(String(keys[2]));
      await expect(second.attach(again)).rejects.toMatchObject({ reason: 'released-elsewhere' });
      for (const each of keys) await first.forceRelease(each);
    });

    it('can be a shared one: others hold the keys with it, and nobody alone', async () => {
      const [first, second] = await twoServices();
      const shared = { mode: 'shared' } as const;
      const [lock, other] = [await first.acquire(key, shared), await second.acquire(key, shared)];
      const text = await lock.detach();
      await other.release();
      expect(await second.tryAcquire(key)).toBeNull();
      const joining = await second.acquire(key, shared);
      const taken = await second.attach(text);
      expect(taken.fencingToken).toBe(lock.fencingToken);
      await taken.extend();
      await joining.release();
      expect(await first.tryAcquire(key)).toBeNull();
      expect(await taken.release()).toBe(true);
      expect(await first.inspect(key)).toEqual({ held: false });
    });

    it('can be a limited one, and keeps its place', async () => {
      const [first, second] = await twoServices();
      const text = await (await first.acquire(key, { limit: 2 })).detach();
      const other = await second.acquire(key, { limit: 2 });
      expect(await first.tryAcquire(key, { limit: 2 })).toBeNull();
      const taken = await second.attach(text);
      expect(await first.tryAcquire(key, { limit: 2 })).toBeNull();
      expect(await taken.release()).toBe(true);
      const next = await first.acquire(key, { limit: 2 });
      await Promise.all([next.release(), other.release()]);
    });

    it('keeps what is left of its `minHold`, and is not detached for less', async () => {
      const [first, second] = await twoServices();
      const lock = await first.acquire(key, { ttl: '20s', minHold: 2_000 });
      await expect(lock.detach({ ttl: 100 })).rejects.toBeInstanceOf(LockConfigurationError);
      expect(lock.isHeld).toBe(true);
      const taken = await second.attach(await lock.detach());
      expect(await taken.release()).toBe(true);
      expect(await first.tryAcquire(key)).toBeNull();
      const next = await first.acquire(key, { wait: '20s' });
      await next.release();
    });

    it('can be ended by force while nobody has it', async () => {
      const [first, second] = await twoServices();
      const text = await (await first.acquire(key)).detach();
      expect(await second.forceRelease(key)).toBe(true);
      await expectRefused(second.attach(text), 'released-elsewhere');
      expect(await first.run(key, () => 'free')).toBe('free');
    });

    it('is safe from whoever changes its text', async () => {
      const [first, second] = await twoServices();
      const lock = await first.acquire(key);
      const text = await lock.detach();
      const [mark = '', content = ''] = text.split('.');
      for (const broken of [text.slice(0, -1), `${text}.x`, text.replace('.', '.A'), 'x', '', 5])
        await expect(second.attach(broken as string)).rejects.toBeInstanceOf(LockKeyError);

      const facts = JSON.parse(Buffer.from(content, 'base64url').toString()) as object;
      const forged = Buffer.from(
        JSON.stringify({ ...facts, fencingToken: Number.MAX_SAFE_INTEGER }),
      ).toString('base64url');
      const digest = createHash('sha256').update(forged).digest('base64url');
      await expectRefused(second.attach(`${mark}.${forged}.${digest}`), 'attached');

      const taken = await second.attach(text);
      expect(taken.fencingToken).toBe(lock.fencingToken);
      await taken.release();
    });

    it('is refused where locks are kept in another place', async () => {
      const [first] = await twoServices();
      const text = await (await first.acquire(key)).detach();
      const stranger = new LockService({ store: 'memory' });
      await expect(stranger.attach(text)).rejects.toBeInstanceOf(LockConfigurationError);
      await (await first.attach(text)).release();
    });

    it('is refused inside a section, which gives its lock back itself', async () => {
      const [first] = await twoServices();
      await first.run(key, async (lock) => {
        const { detach } = lock as unknown as { detach: () => Promise<string> };
        await expect(detach.call(lock)).rejects.toBeInstanceOf(LockConfigurationError);
        expect(lock.isHeld).toBe(true);
      });
      expect(await first.inspect(key)).toEqual({ held: false });
    });
  });
}
