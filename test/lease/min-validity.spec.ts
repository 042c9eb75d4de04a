import { afterAll, describe, expect, it } from '@jest/globals';
import { LockConfigurationError, LockLostError, LockStoreUnavailableError } from 'nestjs-holdfast';
import type { AcquireOutcome, ExtendOutcome } from '../../lib/store/lock-store.js';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { heldFor, OUTAGE } from '../support/scripted-store.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

const TTL_MS = 1_000;

/** A grant whose answer takes so long. */
async function slowGrant(service: ReturnType<typeof scriptedService>, ms: number): Promise<void> {
  const { clock, store } = service;
  const answer = deferred<AcquireOutcome>();
  store.onAcquire = () => answer.promise;
  await clock.advance(ms);
  answer.resolve({ status: 'granted', fencingToken: 1 });
}

describe('minValidity', () => {
  it('costs nothing where the grant has it', async () => {
    const { store, locks } = scriptedService({ ttl: TTL_MS });
    const lock = await locks.acquire('key', { minValidity: 900 });
    expect(lock.remainingMs).toBeGreaterThanOrEqual(900);
    expect(store.extended).toHaveLength(0);
  });

  it('renews a grant whose answer was slow before it is handed out', async () => {
    const service = scriptedService({ ttl: TTL_MS });
    const { store, locks } = service;
    const acquiring = locks.acquire('key', { minValidity: 800 });
    const answer = deferred<AcquireOutcome>();
    store.onAcquire = () => answer.promise;
    await acquiring;
    const slow = locks.acquire('other', { minValidity: 800 });
    await service.clock.advance(300);
    expect(store.extended).toHaveLength(0);
    answer.resolve({ status: 'granted', fencingToken: 2 });
    const lock = await slow;
    expect(store.extended).toHaveLength(1);
    expect(lock.remainingMs).toBeGreaterThanOrEqual(900);
  });

  it('renews a turn that is passed on', async () => {
    const { clock, store, locks } = scriptedService({ ttl: TTL_MS });
    store.onAcquire = () => ({ status: 'granted', fencingToken: 1, turns: 10, othersWait: false });
    const first = await locks.acquire('key');
    store.onAcquire = () => heldFor(TTL_MS);
    await clock.advance(10);
    const next = locks.acquire('key', { minValidity: 990 });
    await clock.advance(5);
    await first.release();
    await clock.advance(1);
    const lock = await next;
    expect(lock.fencingToken).toBe(2);
    expect(store.released).toHaveLength(0);
    expect(store.extended).toHaveLength(1);
    expect(lock.remainingMs).toBeGreaterThanOrEqual(990);
  });

  it('renews the lease of the section around, for the longer TTL of the two', async () => {
    const { clock, store, locks } = scriptedService({ ttl: TTL_MS });
    await locks.run('key', async () => {
      await clock.advance(200);
      await locks.run('key', { minValidity: 500 }, ({ remainingMs }) => {
        expect(remainingMs).toBeLessThan(900);
      });
      expect(store.extended).toHaveLength(0);
      await locks.run('key', { ttl: '10s', minValidity: '8s' }, ({ remainingMs }) => {
        expect(remainingMs).toBeGreaterThan(8_000);
      });
      expect(store.extended).toHaveLength(1);
    });
  });

  it.each([
    ['the store does not answer', OUTAGE, LockStoreUnavailableError, ['key']],
    ['somebody else has the key', { status: 'lost', reason: 'stolen' }, LockLostError, []],
  ] as const)(
    'is an error when %s, and the key is left free',
    async (_why, outcome, type, freed) => {
      const service = scriptedService({ ttl: TTL_MS });
      const { store, locks } = service;
      store.onExtend = (): ExtendOutcome => outcome;
      const granting = slowGrant(service, 300);
      const failure = locks.acquire('key', { minValidity: 800 }).catch((error: unknown) => error);
      await granting;
      expect(await failure).toBeInstanceOf(type);
      expect(store.released.flatMap(({ keys }) => keys)).toEqual(freed);
    },
  );

  it('is an error when the answer to the renewal is as slow, and says how much was left', async () => {
    const service = scriptedService({ ttl: TTL_MS });
    const { clock, store, locks } = service;
    const answer = deferred<ExtendOutcome>();
    store.onExtend = () => answer.promise;
    const granting = slowGrant(service, 300);
    const failure = locks.acquire('key', { minValidity: 800 }).catch((error: unknown) => error);
    await granting;
    await clock.advance(300);
    answer.resolve({ status: 'extended' });
    const error = (await failure) as LockStoreUnavailableError;
    expect(error).toBeInstanceOf(LockStoreUnavailableError);
    expect(error.detail).toContain('698 ms of validity were left when the answer came');
    expect(store.released).toHaveLength(1);
  });

  it('leaves the outer section alone when a nested one cannot have it', async () => {
    const { clock, store, locks } = scriptedService({ ttl: TTL_MS });
    store.onExtend = () => OUTAGE;
    const result = await locks.run('key', async (lock) => {
      await clock.advance(200);
      const nested = locks.run('key', { minValidity: 900 }, () => 'never');
      await expect(nested).rejects.toBeInstanceOf(LockStoreUnavailableError);
      return lock.isHeld;
    });
    expect(result).toBe(true);
  });

  it('must be shorter than the longest validity of the lock', async () => {
    const { locks } = scriptedService({ ttl: TTL_MS, clockDrift: 0.01 });
    const failure = locks.acquire('key', { minValidity: 988 });
    await expect(failure).rejects.toBeInstanceOf(LockConfigurationError);
    await expect(failure).rejects.toThrow(
      '"minValidity" (988 ms) is not shorter than the longest validity of the lock (988 ms, of a TTL of 1000 ms)',
    );
  });
});
