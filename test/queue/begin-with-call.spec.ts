import { afterAll, describe, expect, it } from '@jest/globals';
import type { AcquireOptions, ExtendOutcome, Held, LineClaim } from 'nestjs-holdfast';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { heldFor, OUTAGE } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

const CLAIM: LineClaim = { fencingToken: 50, turns: 1_024, ttlMs: 1_000, ageMs: 100 };

const IN_LINE: Held = { ...heldFor(60_000), ticket: 7 };

/** A caller that stands in a line in which the first gets the lock, and what it is called with. */
async function waiterInLine(options: AcquireOptions = {}) {
  const scripted = scriptedService({ wait: '10m', ttl: '1m' });
  const { store, locks } = scripted;
  store.onAcquire = ({ line }) => (line === undefined ? heldFor(60_000) : IN_LINE);
  const confirmed = deferred<ExtendOutcome>();
  store.onExtend = () => confirmed.promise;
  const waiting = locks.acquire('key', options);
  waiting.catch(() => undefined);
  await settled();
  const token = store.acquired.at(-1)?.token ?? '';
  const looks = store.acquired.length;
  const call = (claim: Partial<LineClaim> = {}): Promise<void> => {
    store.reportReleased('key', { to: token, inMs: 0, claim: { ...CLAIM, ...claim } });
    return settled();
  };
  const hasLooked = (): boolean => store.acquired.length > looks;
  return { ...scripted, waiting, confirmed, token, call, hasLooked };
}

describe('a caller that is called with a claim of which more than half is left for certain', () => {
  it('begins with it, and has it renewed at the same time', async () => {
    const { store, waiting, confirmed, call, hasLooked, token } = await waiterInLine();
    await call();
    const lock = await waiting;
    expect(hasLooked()).toBe(false);
    expect(lock).toMatchObject({ isHeld: true, fencingToken: 50 });
    expect(lock.remainingMs).toBe(898);
    expect(store.extended).toMatchObject([[{ keys: ['key'], token, ttlMs: 60_000 }]]);
    confirmed.resolve({ status: 'extended' });
    await settled();
    expect(lock.remainingMs).toBe(59_998);
    await lock.release();
    expect(store.released).toMatchObject([{ token }]);
  });

  it('is renewed as ever from then on', async () => {
    const { clock, store, waiting, confirmed, call } = await waiterInLine();
    await call();
    const lock = await waiting;
    confirmed.resolve({ status: 'extended' });
    await clock.advance(45_000);
    expect(store.extended.length).toBe(3);
    expect(lock.isHeld).toBe(true);
    await lock.release();
  });

  it('has lost the lock when the store says so', async () => {
    const { waiting, confirmed, call, lost } = await waiterInLine();
    await call();
    const lock = await waiting;
    const { signal } = lock;
    confirmed.resolve({ status: 'lost', reason: 'stolen' });
    await settled();
    expect(signal.reason).toMatchObject({ reason: 'stolen', fencingToken: 50 });
    expect(lost).toMatchObject([{ keys: ['key'], reason: 'stolen' }]);
  });

  it('asks again while the claim lasts when the store does not answer, and has lost the lock at its end', async () => {
    const { clock, store, waiting, call, lost } = await waiterInLine();
    store.onExtend = () => OUTAGE;
    await call();
    const lock = await waiting;
    await clock.advance(800);
    expect(lock.isHeld).toBe(true);
    expect(store.extended.length).toBeGreaterThan(2);
    await clock.advance(100);
    expect(lock.isHeld).toBe(false);
    expect(lost).toMatchObject([{ reason: 'store-unavailable' }]);
  });

  it('has lost the lock at the end of the claim when no answer comes, and one that comes later revives nothing', async () => {
    const { clock, waiting, confirmed, call, lost } = await waiterInLine();
    await call();
    const lock = await waiting;
    await clock.advance(900);
    expect(lost).toMatchObject([{ reason: 'store-unavailable' }]);
    confirmed.resolve({ status: 'extended' });
    await settled();
    expect(lock.isHeld).toBe(false);
  });

  it('passes it on to the next one here before it is confirmed', async () => {
    const { store, locks, waiting, confirmed, call, token } = await waiterInLine();
    const next = locks.acquire('key');
    await call();
    await (await waiting).release();
    const turn = await next;
    expect(turn).toMatchObject({ isHeld: true, fencingToken: 51, remainingMs: 898 });
    confirmed.resolve({ status: 'extended' });
    await settled();
    expect(turn.remainingMs).toBe(59_998);
    expect(store.released).toEqual([]);
    await turn.release();
    expect(store.released).toMatchObject([{ token }]);
  });

  it('is the only one that begins, when it is called twice', async () => {
    const { locks, waiting, confirmed, call } = await waiterInLine();
    let isGranted = false;
    const next = locks.acquire('key').then((lock) => ((isGranted = true), lock));
    void call();
    await call();
    const lock = await waiting;
    await call();
    expect(isGranted).toBe(false);
    confirmed.resolve({ status: 'extended' });
    await lock.release();
    await (await next).release();
  });

  it('leaves the others of its process waiting for it, without a look', async () => {
    const { clock, store, locks, waiting, confirmed, call, hasLooked } = await waiterInLine();
    const next = locks.acquire('key', { ttl: '2m' }); // what it asks for is no turn
    await call();
    const lock = await waiting;
    confirmed.resolve({ status: 'extended' });
    await clock.advance(3_000);
    expect(hasLooked()).toBe(false);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 5_000 });
    await lock.release();
    await (await next).release();
    expect(hasLooked()).toBe(true);
  });
});

describe('a caller that is called, and makes the claim a lease first', () => {
  it.each<[string, AcquireOptions, Partial<LineClaim>]>([
    ['of which half is gone', {}, { ageMs: 499 }],
    ['of which nobody knows how old it is', {}, { ageMs: undefined }],
    ['for a lease that would not be renewed', { autoExtend: false }, {}],
    ['for a lease that is to be kept', { minHold: '1s' }, {}],
    ['for a lease that is never given back', { release: 'on-expiry' }, {}],
    ['for a place that is shared', { mode: 'shared' }, {}],
    ['for one of several places', { limit: 2 }, {}],
  ])('is called with a claim %s', async (_, options, claim) => {
    const { store, waiting, call, hasLooked } = await waiterInLine(options);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 60 });
    await call(claim);
    const lock = await waiting;
    expect(hasLooked()).toBe(true);
    expect(store.acquired.at(-1)?.claimed).toBe(50);
    expect(lock.fencingToken).toBe(60);
    await lock.release();
  });

  it('has a look on its way: the answer may be of before the call', async () => {
    const { clock, store, waiting, call } = await waiterInLine();
    const answer = deferred<Held>();
    store.onAcquire = () => answer.promise;
    await clock.advance(6_000);
    await call();
    expect(store.extended).toEqual([]);
    answer.resolve(IN_LINE);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 60 });
    const lock = await waiting;
    expect(store.acquired.at(-1)?.claimed).toBe(50);
    await lock.release();
  });

  it('has the lease already when the call comes: nobody else here begins with it', async () => {
    const { clock, store, locks, waiting, call } = await waiterInLine();
    const next = locks.acquire('key', { wait: '30s' });
    const outcome = next.catch((error: unknown) => error);
    store.onAcquire = () => ({ status: 'granted', fencingToken: 60 });
    await clock.advance(6_000);
    const lock = await waiting;
    store.onAcquire = () => IN_LINE;
    await call();
    expect(lock.isHeld).toBe(true);
    await clock.advance(30_000);
    expect(await outcome).toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    await lock.release();
  });

  it('wants several keys, which one call says nothing about', async () => {
    const { store, locks } = await waiterInLine();
    const waiting = locks.acquire(['a', 'b']);
    await settled();
    const { token = '' } = store.acquired.at(-1) ?? {};
    store.onAcquire = () => ({ status: 'granted', fencingToken: 60 });
    store.reportReleased('a', { to: token, inMs: 0, claim: CLAIM });
    const lock = await waiting;
    expect(lock.fencingToken).toBe(60);
    await lock.release();
  });

  it('is called by a store with a claim that cannot be true', async () => {
    const { store, waiting, call } = await waiterInLine();
    store.onAcquire = () => ({ status: 'granted', fencingToken: 60 });
    await call({ fencingToken: NaN });
    const lock = await waiting;
    expect(lock.fencingToken).toBe(60);
    expect(store.acquired.at(-1)?.claimed).toBeUndefined();
    await lock.release();
  });
});
