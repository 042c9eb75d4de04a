import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import {
  LockConfigurationError,
  LockKeyError,
  LockLostError,
  LockService,
  type Lock,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { LockAdmin, type InstanceInfo, type LockSummary } from 'nestjs-holdfast/admin';
import type { Backend } from '../techniques/conformance/suite.js';
import { deferred, eventually } from '../support/eventually.js';

const STUCK = { reason: 'stuck since 3 am', by: 'ada' };

const TTL_MS = 60_000;

/** What operators see on every store, and can do. */
export function describeAdmin(name: string, open: () => Promise<Backend>): void {
  describe(`LockAdmin on ${name}`, () => {
    let backend: Backend;
    let services: LockService[] = [];
    let keysMade = 0;

    beforeAll(async () => {
      Logger.overrideLogger(false); // lost locks are a subject here
      backend = await open();
    }, 60_000);

    afterAll(async () => {
      await backend.close();
    }, 60_000);

    afterEach(async () => {
      await Promise.all(services.map((service) => service.shutdown(0)));
      services = [];
    });

    const newService = async (options: Partial<LockModuleOptions> = {}): Promise<LockService> => {
      const service = new LockService({ ttl: TTL_MS, ...backend.options, ...options });
      services.push(service);
      await service.open();
      return service;
    };

    /** Two of them, who know of each other. */
    async function two(options?: Partial<LockModuleOptions>): Promise<Two> {
      const one = await newService(options);
      const { id: idOfOne } = await theNewOf(new LockAdmin(one), []);
      const other = await newService(options);
      const admin = new LockAdmin(other);
      const { id: idOfOther } = await theNewOf(admin, [idOfOne]);
      return { one, other, admin, idOfOne, idOfOther };
    }

    /** A service describes itself in the background, and once more as soon as messages reach it. */
    const theNewOf = (admin: LockAdmin, known: readonly string[]): Promise<InstanceInfo> =>
      eventually(async () => {
        const found = await admin.instances();
        return found.find(({ id, isListening }) => !known.includes(id) && isListening) ?? null;
      });

    /** Ends the holders that the key has now. */
    const released = async (admin: LockAdmin, key: string) =>
      admin.release(await admin.describe(key), STUCK);

    const newKey = (): string => `order:${String((keysMade += 1))}`;

    const listed = async (admin: LockAdmin, prefix: string): Promise<readonly LockSummary[]> => {
      const found: LockSummary[] = [];
      for await (const lock of admin.list({ prefix })) found.push(lock);
      return found.sort((a, b) => (a.key < b.key ? -1 : 1));
    };

    it('names the instances, the newest first, until they end', async () => {
      const instance = { application: 'orders', version: '7.1.0' };
      const before = Date.now();
      const { one, admin, idOfOther } = await two({ instance });
      const instances = await admin.instances();
      expect(instances).toHaveLength(2);
      for (const each of instances) {
        expect(each).toMatchObject({ ...instance, host: hostname(), pid: process.pid });
        expect(each.isUnresponsive).toBe(false);
        expect(each.startedAt.getTime()).toBeGreaterThanOrEqual(before);
        expect(Math.abs(each.seenAt.getTime() - Date.now())).toBeLessThan(30_000);
      }
      expect(instances[0]!.startedAt >= instances[1]!.startedAt).toBe(true);
      await one.shutdown(0);
      expect((await admin.instances()).map(({ id }) => id)).toEqual([idOfOther]);
    });

    it('says who holds a key, since when, where that was asked for, and who waits', async () => {
      const { one, other, admin, idOfOne, idOfOther } = await two();
      const key = newKey();
      const before = Date.now();
      const lock = await one.acquire(key);
      const waits = [
        other.acquire(key, { wait: TTL_MS }),
        other.acquire([key, `${key}:b`], { wait: TTL_MS }),
      ];
      const description = await eventually(async () => {
        const found = await admin.describe(key);
        return found.line.length === 2 && found;
      });
      expect(description).toMatchObject({
        key,
        state: 'held',
        mode: 'exclusive',
        unresponsive: [],
      });
      const [holder, ...moreHolders] = description.holders;
      expect(moreHolders).toEqual([]);
      expect(holder).toMatchObject({
        instance: { id: idOfOne, pid: process.pid },
        fencingToken: lock.fencingToken,
        isForeign: false,
        isUnresponsive: false,
        place: expect.stringContaining('admin-suite.ts'),
      });
      expect(holder!.remainingMs).toBeGreaterThan(0);
      expect(holder!.remainingMs).toBeLessThanOrEqual(TTL_MS);
      expect(holder!.since!.getTime()).toBeGreaterThanOrEqual(before - 1_000);
      expect(holder!.since!.getTime()).toBeLessThanOrEqual(Date.now() + 1_000);
      expect(description.line.map(({ position }) => position)).toEqual([1, 2]);
      for (const waiter of description.line) {
        expect(waiter.instance?.id).toBe(idOfOther);
        expect(waiter.isUnresponsive).toBe(false);
      }
      const callers = description.line.flatMap((waiter) => waiter.callers ?? []);
      expect(callers).toHaveLength(2);
      for (const { place } of callers) expect(place).toContain('admin-suite.ts');
      // Nothing of what proves ownership is told.
      expect(JSON.stringify(description)).not.toMatch(/holdfast:/);
      await lock.release();
      // The one for a single key was refused the plain way first, so it may stand behind the other one.
      await Promise.all(waits.map(async (each) => (await each).release()));
    });

    it('says how several hold a key together', async () => {
      if (backend.hasModes === false) return;
      const { one, other, admin, idOfOne, idOfOther } = await two();
      const [shared, limited] = [newKey(), newKey()];
      const locks = [
        await one.acquire(shared, { mode: 'shared' }),
        await other.acquire(shared, { mode: 'shared' }),
      ];
      const description = await admin.describe(shared);
      expect(description).toMatchObject({ state: 'held', mode: 'shared' });
      expect(description.holders).toHaveLength(2);
      const ids = description.holders.map(({ instance }) => instance?.id);
      expect(ids.sort()).toEqual([idOfOne, idOfOther].sort());
      const tokens = description.holders.map(({ fencingToken }) => fencingToken);
      expect(tokens).toEqual([locks[0]!.fencingToken, locks[1]!.fencingToken]);
      locks.push(await one.acquire(limited, { limit: 2 }));
      const place = await admin.describe(limited);
      expect(place).toMatchObject({ mode: 'limit:2', holders: [{ isForeign: false }] });
      await locks.pop()?.release();
      locks.push(await one.acquire(limited, { limit: 4, places: 3 }));
      expect(await admin.describe(limited)).toMatchObject({ holders: [{ places: 3 }] });
      for await (const row of admin.list({ prefix: limited }))
        expect(row).toMatchObject({ mode: 'limit:4', holders: 1, inUse: 3 });
      await Promise.all(locks.map((lock) => lock.release()));
    });

    it('says that a lock was detached and has no holder, until it is attached', async () => {
      if (backend.hasModes === false) return;
      const { one, other, admin, idOfOther } = await two();
      const key = newKey();
      const text = await (await one.acquire(key)).detach({ ttl: '20s' });
      expect(await listed(admin, key)).toMatchObject([
        { key, state: 'held', mode: 'exclusive', holders: 1, isDetached: true },
      ]);
      const [holder] = (await admin.describe(key)).holders;
      expect(holder).toMatchObject({ isDetached: true, isForeign: false, isUnresponsive: false });
      expect(holder).not.toHaveProperty('instance');
      const attached = await other.attach(text);
      const [row] = await listed(admin, key);
      expect(row).toMatchObject({ instance: { id: idOfOther } });
      expect(row).not.toHaveProperty('isDetached');
      await attached.release();
    });

    it('says who leads, and which instances stand behind it', async () => {
      const { one, other, admin, idOfOne, idOfOther } = await two();
      const name = newKey();
      const elected = new Promise<number>((resolve) => {
        one.lead(name, { onElected: ({ term }) => resolve(term) });
      });
      const term = await elected;
      const candidate = other.lead(name, { onElected: () => undefined });
      const description = await eventually(async () => {
        const found = await admin.describe(name);
        return found.line.length === 1 && found;
      });
      expect(description).toMatchObject({
        mode: 'exclusive',
        holders: [{ instance: { id: idOfOne }, fencingToken: term }],
        line: [{ instance: { id: idOfOther }, callers: [{}] }],
      });
      await candidate.stop();
      expect(await listed(admin, name)).toMatchObject([{ waiting: 0, instance: { id: idOfOne } }]);
    });

    it('knows nothing of a free key', async () => {
      const { admin } = await two();
      const key = newKey();
      expect(await admin.describe(key)).toEqual({
        key,
        state: 'free',
        holders: [],
        history: [],
        line: [],
        unresponsive: [],
        audit: [],
      });
      expect(await released(admin, key)).toEqual({ status: 'nothing' });
      expect(await admin.forgetOnce({ key }, STUCK)).toEqual({ status: 'nothing' });
      expect(await admin.releaseInstance({ id: 'nobody' }, STUCK)).toEqual({ status: 'nothing' });
      expect(await admin.audit()).not.toContainEqual(expect.objectContaining({ keys: [key] }));
    });

    it('lists what is held, waited for or marked as done, by prefix, and nothing else', async () => {
      const { one, other, admin } = await two();
      const held = await one.acquire(['list:a', 'list:b', 'other:c']);
      const free = await one.acquire('list:free');
      await free.release();
      if (backend.hasModes !== false) await one.runOnce('list:once', () => 'done');
      const waits = other.acquire('list:a', { wait: TTL_MS });
      await eventually(async () => (await admin.describe('list:a')).line.length === 1);
      const found = await listed(admin, 'list:');
      expect(found).toMatchObject([
        { key: 'list:a', state: 'held', mode: 'exclusive', holders: 1, waiting: 1 },
        { key: 'list:b', state: 'held', mode: 'exclusive', holders: 1, waiting: 0 },
        ...(backend.hasModes === false
          ? []
          : [{ key: 'list:once', state: 'free', holders: 0, waiting: 0, once: 'done' }]),
      ]);
      expect(found[0]?.instance?.pid).toBe(process.pid);
      const all = await listed(admin, '');
      expect(all.map(({ key }) => key)).toEqual(expect.arrayContaining(['list:a', 'other:c']));
      expect(all.filter(({ key }) => /instances|audit|fence|queue/.test(key))).toEqual([]);
      let seen = 0;
      for await (const _lock of admin.list({ prefix: 'list:', limit: 2 })) seen += 1;
      expect(seen).toBe(2);
      await held.release();
      await (await waits).release();
    });

    it('releases a key by force: its holder is notified at once, the next in line gets it, and the audit log keeps it', async () => {
      const { one, other, admin } = await two();
      const key = newKey();
      const lost = deferred<unknown>();
      one.on('lost', lost.resolve);
      const lock = await one.acquire(key, { ttl: '1h' });
      const aborted = new Promise((resolve) => {
        lock.signal.addEventListener('abort', () => {
          resolve(lock.signal.reason);
        });
      });
      const next = other.acquire(key, { wait: TTL_MS });
      await eventually(async () => (await admin.describe(key)).line.length === 1);
      expect(await released(admin, key)).toEqual({ status: 'done', keys: [key] });
      const error = await aborted;
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toMatchObject({ reason: 'force-released', intervention: STUCK });
      expect((error as LockLostError).detail).toContain('(ada: stuck since 3 am)');
      expect((error as LockLostError).message).not.toMatch(/ada|stuck/);
      expect(await lost.promise).toMatchObject({
        keys: [key],
        reason: 'force-released',
        intervention: STUCK,
      });
      expect(lock.isHeld).toBe(false);
      expect(await lock.release()).toBe(false);
      const after = await next;
      expect(after.fencingToken).toBeGreaterThan(lock.fencingToken);
      const [entry] = (await admin.describe(key)).audit;
      expect(entry).toMatchObject({ action: 'release', keys: [key], ...STUCK });
      expect(Math.abs(entry!.at.getTime() - Date.now())).toBeLessThan(30_000);
      expect((await admin.audit(1))[0]).toEqual(entry);
      await after.release();
    });

    it('ends the holder that was seen, and no later one: the second of two operators is refused', async () => {
      const { one, other, admin, idOfOther } = await two();
      const key = newKey();
      const lock = await one.acquire(key);
      const colleague = new LockAdmin(one);
      const seen = await colleague.describe(key);
      expect(seen.holders).toMatchObject([{ fencingToken: lock.fencingToken }]);
      const next = other.acquire(key, { wait: TTL_MS });
      await eventually(async () => (await admin.describe(key)).line.length === 1);
      expect(await colleague.release(seen, STUCK)).toMatchObject({ status: 'done' });
      const successor = await next;
      expect(await admin.release(seen, STUCK)).toMatchObject({
        status: 'refused',
        now: {
          holders: [{ instance: { id: idOfOther }, fencingToken: successor.fencingToken }],
        },
      });
      // Nor does the end of the first one confuse it.
      expect(await admin.release({ key, holders: [] }, STUCK)).toMatchObject({ status: 'refused' });
      await successor.extend();
      expect(await admin.audit(2)).not.toMatchObject([{ keys: [key] }, { keys: [key] }]);
      expect(await successor.release()).toBe(true);
      expect(await admin.release(seen, STUCK)).toEqual({ status: 'nothing' });
    });

    it('ends no later caller of the same process, which has the lease with another fencing token', async () => {
      const { one } = await two();
      const admin = new LockAdmin(one);
      const key = newKey();
      const lock = await one.acquire(key);
      const seen = await admin.describe(key);
      const next = one.acquire(key, { wait: TTL_MS });
      await eventually(async () => (await admin.describe(key)).line.length === 1);
      await lock.release();
      const successor = await next;
      expect(await admin.release(seen, STUCK)).toMatchObject({
        status: 'refused',
        now: { holders: [{ fencingToken: successor.fencingToken }] },
      });
      await successor.extend();
      await successor.release();
    });

    it('ends those who were seen of the holders of a shared key, and leaves the others', async () => {
      if (backend.hasModes === false) return;
      const { one, other, admin } = await two();
      const key = newKey();
      const reader = await one.acquire(key, { mode: 'shared' });
      const seen = await admin.describe(key);
      const later = await other.acquire(key, { mode: 'shared' });
      expect(await admin.release(seen, STUCK)).toEqual({ status: 'done', keys: [key] });
      await eventually(() => !reader.isHeld);
      await later.extend();
      expect((await admin.describe(key)).holders).toHaveLength(1);
      expect(await later.release()).toBe(true);
    });

    it('leaves the locks of an instance that was seen as unresponsive and reports again', async () => {
      const { one, admin, idOfOne } = await two();
      const lock = await one.acquire(newKey());
      const seen = { id: idOfOne, isUnresponsive: true };
      expect(await admin.releaseInstance(seen, STUCK)).toMatchObject({
        status: 'refused',
        now: { id: idOfOne, isUnresponsive: false },
      });
      await lock.extend();
      await lock.release();
    });

    it('refuses a key without its holders, which JavaScript lets through', async () => {
      const { admin } = await two();
      const key = newKey();
      for (const lock of [key, { key }, { holders: [] }])
        await expect(admin.release(lock as never, STUCK)).rejects.toThrow(
          "Write release(await admin.describe('order:42'), { reason: 'stuck since 3 am' }).",
        );
    });

    it('lets LockService.forceRelease notify the holder at once, too', async () => {
      const { one, other } = await two();
      const key = newKey();
      const lock = await one.acquire(key, { ttl: '1h' });
      const aborted = new Promise((resolve) => {
        lock.signal.addEventListener('abort', () => {
          resolve(lock.signal.reason);
        });
      });
      expect(await other.forceRelease(key, STUCK)).toBe(true);
      expect(await aborted).toMatchObject({ reason: 'force-released', intervention: STUCK });
      expect(await other.forceRelease(key)).toBe(false);
      const again = await other.acquire(key);
      expect(await other.forceRelease(key)).toBe(true);
      expect(again.isHeld).toBe(false);
      await expect(other.forceRelease(key, { reason: '' })).rejects.toThrow(LockConfigurationError);
    });

    it('fails the call whose section it ended, and names who did it', async () => {
      const { one, admin } = await two();
      const key = newKey();
      const started = deferred();
      const work = one.run(key, async ({ signal }) => {
        started.resolve();
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
      });
      const failure = work.catch((error: unknown) => error);
      await started.promise;
      await released(admin, key);
      expect(await failure).toMatchObject({ reason: 'force-released', intervention: STUCK });
    });

    it('ends all holders of a shared lock', async () => {
      if (backend.hasModes === false) return;
      const { one, other, admin } = await two();
      const shared = newKey();
      const locks: Lock[] = [
        await one.acquire(shared, { mode: 'shared' }),
        await other.acquire(shared, { mode: 'shared' }),
      ];
      expect(await released(admin, shared)).toEqual({ status: 'done', keys: [shared] });
      await eventually(() => locks.every(({ isHeld }) => !isHeld));
      expect((await admin.describe(shared)).state).toBe('free');
    });

    it('ends every key of the instance that is named', async () => {
      const { one, other, admin, idOfOne } = await two();
      const [own, pair] = [newKey(), newKey()];
      const kept = await other.acquire(own);
      const lost = [await one.acquire([pair, `${pair}:b`]), await one.acquire(`${pair}:c`)];
      expect(await admin.releaseInstance({ id: idOfOne }, STUCK)).toEqual({
        status: 'done',
        keys: [pair, `${pair}:b`, `${pair}:c`],
      });
      await eventually(() => lost.every(({ isHeld }) => !isHeld));
      expect(kept.isHeld).toBe(true);
      const [entry] = await admin.audit(1);
      expect(entry).toMatchObject({
        action: 'release-instance',
        keys: [pair, `${pair}:b`, `${pair}:c`],
      });
      expect(await kept.release()).toBe(true);
    });

    it('shows what has become of once-only work, and forgets it', async () => {
      if (backend.hasModes === false) return;
      const { one, admin } = await two();
      const key = newKey();
      const fails = (): never => {
        throw new Error('no paper');
      };
      await one.runOnce(key, { attempts: 2 }, fails).catch(() => undefined);
      expect((await admin.describe(key)).once).toMatchObject({ state: 'failed', attempts: 1 });
      expect((await admin.describe(key)).once?.error).toContain('no paper');
      await one.runOnce(key, { attempts: 2 }, () => 7);
      const { once } = await admin.describe(key);
      expect(once).toMatchObject({ state: 'done', attempts: 2 });
      expect(once).not.toHaveProperty('error');
      expect(once!.keptForMs).toBeGreaterThan(0);
      const seen = await admin.describe(key);
      expect(
        await admin.forgetOnce({ key, once: { state: 'failed', attempts: 1 } }, STUCK),
      ).toMatchObject({ status: 'refused', now: { once: { state: 'done', attempts: 2 } } });
      expect(await admin.forgetOnce(seen, STUCK)).toEqual({ status: 'done', keys: [key] });
      expect(await admin.describe(key)).not.toHaveProperty('once');
      const again = await one.runOnce(key, { attempts: 2 }, () => 8);
      expect(again).toMatchObject({ outcome: 'completed', value: 8 });
      expect((await admin.audit(1))[0]).toMatchObject({ action: 'forget-once', keys: [key] });
    });

    it('knows which keys are waited for longest, and refused, in all instances', async () => {
      const { one, other, admin } = await two();
      const [waited, refused] = [newKey(), newKey()];
      const locks = [await one.acquire(waited), await one.acquire(refused)];
      expect(await other.tryAcquire(refused)).toBeNull();
      expect(await one.tryAcquire(refused)).toBeNull();
      const next = other.acquire(waited, { wait: TTL_MS });
      await eventually(async () => (await admin.describe(waited)).line.length === 1);
      await sleep(20);
      await locks[0]!.release();
      await (await next).release();
      const { keys, unresponsive } = await admin.hot();
      expect(unresponsive).toEqual([]);
      const of = (key: string): unknown => keys.find((each) => each.key === key);
      expect(of(waited)).toMatchObject({ waits: 1, refusals: 0 });
      expect(keys[0]!.key).toBe(waited);
      expect(keys[0]!.waitedMs).toBeGreaterThanOrEqual(15);
      expect(of(refused)).toMatchObject({ refusals: 2, waits: 0 });
      expect((await admin.hot(1)).keys).toHaveLength(1);
      await locks[1]!.release();
    });

    it('names the key with the longest wait that lasts first, and counts the callers', async () => {
      const { one, other, admin } = await two();
      const [stuck, busy] = [newKey(), newKey()];
      const holder = await one.acquire(stuck);
      const waiters = [
        other.acquire(stuck, { wait: 60_000 }),
        one.acquire(stuck, { wait: 60_000 }),
      ];
      await eventually(async () => (await admin.hot()).waiting[0]?.waiting === 2);
      const later = await other.acquire(busy);
      const last = one.acquire(busy, { wait: 60_000 });
      await eventually(async () => (await admin.hot()).waiting.length === 2);
      const { keys, waiting, hour, callers } = await admin.hot();
      expect(callers).toBe(3);
      expect(waiting).toMatchObject([
        { key: stuck, waiting: 2, since: expect.any(Date) },
        { key: busy, waiting: 1 },
      ]);
      expect(keys.find(({ key }) => key === stuck)!.waitedMs).toBeGreaterThan(0);
      expect((await admin.hot(1)).waiting).toHaveLength(1);
      expect(hour).toHaveLength(60);
      // The minute may have changed since.
      const [before, now] = hour.slice(-2);
      expect(Math.max(before!.waiting, now!.waiting)).toBeGreaterThanOrEqual(3);
      await Promise.all([holder.release(), later.release()]);
      for (const lock of await Promise.all(waiters.map((each) => each.then((it) => it.release()))))
        expect(lock).toBe(true);
      await (await last).release();
      expect((await admin.hot()).waiting).toEqual([]);
    });

    it('names a leader, and does not count its candidates among the callers that wait', async () => {
      if (backend.hasModes === false) return;
      const { one, other, admin } = await two();
      const name = newKey();
      const first = await new Promise<{ stop(): Promise<unknown> }>((resolve) => {
        const leading = one.lead(name, { onElected: () => resolve(leading) });
      });
      const second = other.lead(name, { onElected: () => undefined });
      await eventually(async () => (await admin.describe(name)).line.length === 1);
      expect((await admin.hot()).waiting).toEqual([]);
      expect((await admin.describe(name)).holders).toMatchObject([{ isLeader: true }]);
      await Promise.all([first.stop(), second.stop()]);
    });

    it('lists the keys that are named without a search of the store', async () => {
      const { one, other, admin, idOfOne, idOfOther } = await two();
      const keys = [newKey(), newKey()] as const;
      const [lock] = [await one.acquire(keys[0]), await one.acquire(keys[1])];
      const waiting = other.acquire(keys[0], { wait: 60_000 });
      await eventually(async () => (await admin.describe(keys[0])).line.length === 1);
      const rows: LockSummary[] = [];
      for await (const row of admin.list({ keys: [keys[0], newKey()] })) rows.push(row);
      const { holders } = await admin.describe(keys[0]);
      expect(rows).toMatchObject([
        {
          key: keys[0],
          leases: [{ leaseId: holders[0]!.leaseId, instanceId: idOfOne }],
          waitingInstanceIds: [idOfOther],
        },
      ]);
      await lock.release();
      await (await waiting).release();
    });

    it('remembers who held a key for long, or lost it', async () => {
      const { one, other, admin, idOfOne } = await two();
      const key = newKey();
      await (await one.acquire(key)).release();
      const long = await one.acquire(key);
      await sleep(1_010);
      await long.release();
      const lost = await other.acquire(key);
      await released(admin, key);
      await eventually(() => !lost.isHeld);
      const { history } = await admin.describe(key);
      expect(history).toMatchObject([
        { outcome: 'lost', reason: 'force-released', fencingToken: lost.fencingToken },
        { outcome: 'released', fencingToken: long.fencingToken, instance: { id: idOfOne } },
      ]);
      const [, { from, to }] = history as [unknown, (typeof history)[number]];
      expect(to.getTime() - from.getTime()).toBeGreaterThanOrEqual(1_000);
    });

    it('is not told of instances that say nothing of themselves, and shows what they hold', async () => {
      const { one, admin } = await two();
      const hidden = await newService({ instance: false });
      const key = newKey();
      const lock = await hidden.acquire(key);
      expect(await admin.instances()).toHaveLength(2);
      const { holders } = await admin.describe(key);
      expect(holders).toMatchObject([{ isForeign: false, isUnresponsive: false }]);
      expect(holders[0]).not.toHaveProperty('instance');
      expect(await released(new LockAdmin(one), key)).toMatchObject({ status: 'done' });
      // It learns of it by its renewal.
      await lock.extend().catch(() => undefined);
      expect(lock.isHeld).toBe(false);
    });

    it.each<[string, unknown]>([
      ['no reason', {}],
      ['an empty reason', { reason: ' ' }],
      ['a very long reason', { reason: 'x'.repeat(501) }],
      ['an empty "by"', { reason: 'x', by: '' }],
    ])('refuses to do anything for %s', async (_what, request) => {
      const { one, admin } = await two();
      const key = newKey();
      const lock = await one.acquire(key);
      const given = request as { reason: string };
      for (const refused of [
        admin.release({ key, holders: [] }, given),
        admin.releaseInstance({ id: 'id' }, given),
        admin.forgetOnce({ key }, given),
      ])
        await expect(refused).rejects.toThrow(LockConfigurationError);
      expect(lock.isHeld).toBe(true);
      await lock.release();
    });

    it('refuses keys that no lock can have', async () => {
      const { admin } = await two();
      for (const refused of [admin.describe(''), admin.release({ key: '', holders: [] }, STUCK)])
        await expect(refused).rejects.toThrow(LockKeyError);
    });
  });
}

interface Two {
  readonly one: LockService;
  /** The newer one; the admin is its. */
  readonly other: LockService;
  readonly admin: LockAdmin;
  readonly idOfOne: string;
  readonly idOfOther: string;
}
