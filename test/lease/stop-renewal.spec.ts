import { afterAll, describe, expect, it } from '@jest/globals';
import { LockLostError } from 'nestjs-holdfast';
import type { ExtendOutcome } from '../../lib/store/lock-store.js';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { heldFor } from '../support/scripted-store.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

const TTL_MS = 1_000;

describe('stopRenewal()', () => {
  it('lets the lease end with its TTL, and the signal abort at the deadline', async () => {
    const { clock, store, locks, lost } = scriptedService({ ttl: TTL_MS });
    const lock = await locks.acquire('key');
    const { signal } = lock;
    await clock.advance(100);
    lock.stopRenewal();
    await clock.advance(TTL_MS - 110);
    expect(signal.aborted).toBe(false);
    expect(lock.isHeld).toBe(true);
    await clock.advance(20);
    expect(store.extended).toHaveLength(0);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(lost).toMatchObject([{ keys: ['key'], reason: 'expired' }]);
    expect(await lock.release()).toBe(false);
  });

  it('keeps what a renewal has added until then', async () => {
    const { clock, store, locks } = scriptedService({ ttl: TTL_MS });
    const lock = await locks.acquire('key');
    await clock.advance(400);
    expect(store.extended).toHaveLength(1);
    lock.stopRenewal();
    await clock.advance(800);
    expect(lock.isHeld).toBe(true);
    await clock.advance(200);
    expect(lock.isHeld).toBe(false);
    expect(store.extended).toHaveLength(1);
  });

  it('counts a renewal that is on its way, and sends no other', async () => {
    const { clock, store, locks } = scriptedService({ ttl: TTL_MS });
    const answer = deferred<ExtendOutcome>();
    store.onExtend = () => answer.promise;
    const lock = await locks.acquire('key');
    await clock.advance(400);
    lock.stopRenewal();
    answer.resolve({ status: 'extended' });
    await clock.advance(800);
    expect(lock.isHeld).toBe(true);
    await clock.advance(TTL_MS);
    expect(lock.isHeld).toBe(false);
    expect(store.extended).toHaveLength(1);
  });

  it('leaves renewals by hand', async () => {
    const { clock, store, locks } = scriptedService({ ttl: TTL_MS });
    const lock = await locks.acquire('key');
    lock.stopRenewal();
    await clock.advance(900);
    await lock.extend('5s');
    await clock.advance(4_900);
    expect(lock.isHeld).toBe(true);
    await clock.advance(200);
    expect(lock.isHeld).toBe(false);
    expect(store.extended).toHaveLength(1);
  });

  it('may be called again, and of a lock that is over', async () => {
    const { locks, clock } = scriptedService();
    const lock = await locks.acquire('key');
    lock.stopRenewal();
    lock.stopRenewal();
    expect(await lock.release()).toBe(true);
    lock.stopRenewal();
    await clock.advance(5_000);
    expect(clock.timers).toBe(0);
  });

  it('in a nested section is for the sections around it, too', async () => {
    const { clock, locks } = scriptedService({ ttl: TTL_MS });
    const working = locks.run('key', async (lock) => {
      await locks.run('key', (inner) => {
        inner.stopRenewal();
      });
      await clock.advance(TTL_MS + 10);
      return lock.isHeld;
    });
    await expect(working).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
  });

  it('is for one turn: who comes next is granted a lease that is renewed', async () => {
    const { clock, store, locks } = scriptedService({ ttl: TTL_MS });
    const first = await locks.acquire('key');
    const acquire = store.onAcquire;
    store.onAcquire = () => heldFor(TTL_MS);
    const next = locks.acquire('key', { wait: '1m' });
    await clock.advance(10);
    first.stopRenewal();
    store.onAcquire = acquire;
    await first.release();
    store.reportReleased('key');
    await clock.advance(10);
    const second = await next;
    expect(store.released).toHaveLength(1);
    await clock.advance(3 * TTL_MS);
    expect(second.isHeld).toBe(true);
  });
});
