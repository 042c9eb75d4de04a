import { afterEach, describe, expect, it } from '@jest/globals';
import {
  LockConfigurationError,
  LockLostError,
  LockNotAttachedError,
  LockServiceClosedError,
  LockStoreUnavailableError,
} from 'nestjs-holdfast';
import type { ExtendOutcome, TransferOutcome } from '../../lib/store/lock-store.js';
import { deferred } from '../support/eventually.js';
import { heldFor, OUTAGE } from '../support/scripted-store.js';
import { scriptedService } from '../support/scripted-service.js';
import { settled } from '../support/virtual-runtime.js';

type Service = ReturnType<typeof scriptedService>;

const made: Service[] = [];

function service(...options: Parameters<typeof scriptedService>): Service {
  const one = scriptedService(...options);
  one.store.onAcquire = () => ({ status: 'granted', fencingToken: 1, isFromClock: true });
  made.push(one);
  return one;
}

afterEach(async () => {
  await Promise.all(
    made.splice(0).map(async ({ locks, clock }) => {
      const closing = locks.shutdown(0);
      await clock.advance(20_000);
      await closing;
    }),
  );
});

const LOST: TransferOutcome = { status: 'lost', reason: 'gone' };

describe('detach', () => {
  it.each<[string, ExtendOutcome]>([
    ['renewed it', { status: 'extended' }],
    ['found another token', { status: 'lost', reason: 'stolen' }],
    ['had no answer', OUTAGE],
  ])('makes nothing of a renewal on its way that %s', async (_, outcome) => {
    const { locks, store, clock, lost } = service();
    const renewal = deferred<ExtendOutcome>();
    store.onExtend = () => renewal.promise;
    const lock = await locks.acquire('key');
    await clock.advance(400);
    expect(store.extended).toHaveLength(1);

    await lock.detach();
    renewal.resolve(outcome);
    await clock.advance(10_000);
    expect(lock.isHeld).toBe(false);
    expect(lock.signal.aborted).toBe(false);
    expect(lost).toEqual([]);
    expect(store.extended).toHaveLength(1);
    expect(store.released).toEqual([]);
  });

  it('gives the keys another token, which the holder so far does not know', async () => {
    const { locks, store } = service();
    const lock = await locks.acquire(['a', 'b']);
    await lock.detach({ ttl: '5m' });
    const [{ token } = { token: '' }] = store.acquired;
    expect(store.transferred).toMatchObject([
      { keys: ['a', 'b'], token, ttlMs: 300_000, lastToken: 1 },
    ]);
    expect(store.transferred[0]?.to).not.toContain(token);
  });

  it('asks again when the answer is lost', async () => {
    const { locks, store } = service();
    const answers = [OUTAGE, { status: 'transferred' } as const];
    store.onTransfer = () => answers.shift() ?? LOST;
    const text = await (await locks.acquire('key')).detach();
    const [first, second] = store.transferred;
    expect(second).toEqual(first);
    expect(text).toMatch(/^holdfast-lock-1\./);
  });

  it('gives the keys back, by whatever token the store knows them, when the store does not answer', async () => {
    const { locks, store, lost } = service();
    store.onTransfer = () => OUTAGE;
    const unavailable: string[] = [];
    locks.on('unavailable', ({ operation }) => unavailable.push(operation));
    const lock = await locks.acquire('key');
    await expect(lock.detach()).rejects.toBeInstanceOf(LockStoreUnavailableError);
    expect(unavailable).toEqual(['detach']);
    await settled();
    const tokens = [store.acquired[0]?.token, store.transferred[0]?.to];
    expect(store.released.map(({ token }) => token)).toEqual(tokens);
    expect(lock.isHeld).toBe(false);
    expect(lost).toEqual([]);
  });

  it.each([
    ['gone', 'released-elsewhere'],
    ['stolen', 'stolen'],
  ] as const)('is the loss of a lock that is %s, with its event', async (found, reason) => {
    const { locks, store, lost } = service();
    store.onTransfer = () => ({ status: 'lost', reason: found });
    const lock = await locks.acquire('key');
    const { signal } = lock;
    await expect(lock.detach()).rejects.toMatchObject({ code: 'LOCK_LOST', reason });
    expect(lost).toMatchObject([{ reason }]);
    expect(signal.aborted).toBe(true);
    await expect(lock.detach()).rejects.toBeInstanceOf(LockLostError);
    expect(store.transferred).toHaveLength(1);
  });

  it('leaves the lock alone where the options are wrong', async () => {
    const { locks, store } = service();
    const lock = await locks.acquire('key');
    for (const wrong of [{ ttl: 1 }, { tll: '5s' }, '5s'])
      await expect(lock.detach(wrong as object)).rejects.toBeInstanceOf(LockConfigurationError);
    expect(lock.isHeld).toBe(true);
    expect(await lock.release()).toBe(true);
    expect(store.transferred).toEqual([]);
  });

  it('has those look again who wait for it in the same process: it is not passed on to them', async () => {
    const { locks, store } = service();
    const acquiring = locks.acquire('key');
    const waiting = locks.acquire('key').catch((error: unknown) => error);
    const lock = await acquiring;
    store.onAcquire = () => heldFor(60_000);
    await settled();
    const looks = store.acquired.length;
    await lock.detach();
    await settled();
    expect(store.acquired.length).toBeGreaterThan(looks);
    locks.refuseWaiting();
    expect(await waiting).toBeInstanceOf(LockServiceClosedError);
  });

  it('is waited for by a shutdown', async () => {
    const { locks, store, clock } = service();
    const answer = deferred<TransferOutcome>();
    store.onTransfer = () => answer.promise;
    const detaching = (await locks.acquire('key')).detach();
    let isDown = false;
    const closing = locks.shutdown(60_000).then(() => (isDown = true));
    await clock.advance(2_000);
    expect(isDown).toBe(false);
    answer.resolve({ status: 'transferred' });
    await expect(detaching).resolves.toMatch(/^holdfast/);
    await clock.advance(10);
    await closing;
    expect(store.released).toEqual([]);
  });
});

describe('attach', () => {
  async function detachedBy({ locks }: Service): Promise<string> {
    return (await locks.acquire('key')).detach({ ttl: '5m' });
  }

  it('makes a lease of its own of it, with the fencing token of the lease', async () => {
    const first = service();
    const second = service({ ttl: 3_000 });
    const lock = await second.locks.attach(await detachedBy(first));
    const [request] = second.store.transferred;
    expect(request).toMatchObject({
      token: first.store.transferred[0]?.to,
      ttlMs: 1_000,
    });
    expect(lock.remainingMs).toBe(998);
    await second.clock.advance(400);
    expect(second.store.extended[0]).toMatchObject([
      { token: request?.to, ttlMs: 1_000, fencingToken: 1 },
    ]);
  });

  it('puts back what it may have taken when the store does not answer: the text is good for another try', async () => {
    const first = service();
    const { locks, store } = service();
    const text = await detachedBy(first);
    store.onTransfer = () => (store.transferred.length === 1 ? OUTAGE : { status: 'transferred' });
    await expect(locks.attach(text)).rejects.toBeInstanceOf(LockStoreUnavailableError);
    await settled();
    const [asked, putBack] = store.transferred;
    expect(putBack).toMatchObject({
      token: asked?.to,
      to: asked?.token,
      ttlMs: 300_000,
    });
    expect(store.released).toMatchObject([{ token: asked?.to }]);
    expect((await locks.attach(text)).isHeld).toBe(true);
  });

  it('puts it back for no longer than it was detached for', async () => {
    const first = service();
    const { locks, store, clock } = service();
    const text = await detachedBy(first);
    await clock.advance(299_000);
    const isAttach = () => store.transferred.at(-1)?.grants === true;
    store.onTransfer = () => (isAttach() ? OUTAGE : { status: 'transferred' });
    await expect(locks.attach(text)).rejects.toBeInstanceOf(LockStoreUnavailableError);
    await clock.advance(2_000);
    await expect(locks.attach(text, { ttl: 2_000 })).rejects.toBeInstanceOf(
      LockStoreUnavailableError,
    );
    await settled();
    const putBack = store.transferred.filter(({ grants }) => grants !== true);
    // Its time is over by this clock. The lock that is put back is gone then, or the clocks differ.
    expect(putBack.map(({ ttlMs }) => ttlMs)).toEqual([1_000, 2_000]);
  });

  it('puts it back for what is left of minHold at least, which counts from each attach', async () => {
    const first = service();
    const { locks, store, clock } = service();
    const lock = await first.locks.acquire('key', { ttl: 30_000, minHold: 20_000 });
    const text = await lock.detach({ ttl: 25_000 });
    await clock.advance(24_000);
    store.onTransfer = () => OUTAGE;
    await expect(locks.attach(text)).rejects.toBeInstanceOf(LockStoreUnavailableError);
    await settled();
    expect(store.transferred.map(({ ttlMs }) => ttlMs)).toEqual([30_000, 20_000]);
  });

  it('puts nothing back where the request was never sent', async () => {
    const first = service();
    const { locks, store } = service();
    const text = await detachedBy(first);
    store.onTransfer = () => ({ ...OUTAGE, sent: false });
    await expect(locks.attach(text)).rejects.toBeInstanceOf(LockStoreUnavailableError);
    await settled();
    expect(store.transferred).toHaveLength(1);
    expect(store.released).toEqual([]);
  });

  it('puts it back when the answer comes after the validity', async () => {
    const first = service();
    const { locks, store, clock } = service();
    const text = await detachedBy(first);
    store.onTransfer = async () => {
      if (store.transferred.length === 1) clock.block(1_000);
      return { status: 'transferred' };
    };
    await expect(locks.attach(text)).rejects.toBeInstanceOf(LockStoreUnavailableError);
    await settled();
    const [asked, putBack] = store.transferred;
    expect(putBack).toMatchObject({ token: asked?.to, to: asked?.token });
  });

  it('is refused by a service that is shut down, without a request, and put back when that began meanwhile', async () => {
    const first = service();
    const { locks, store, clock } = service();
    const text = await detachedBy(first);
    const answer = deferred<TransferOutcome>();
    store.onTransfer = () =>
      store.transferred.length === 1 ? answer.promise : { status: 'transferred' };
    const attaching = expect(locks.attach(text)).rejects.toBeInstanceOf(LockServiceClosedError);
    await settled();
    const closing = locks.shutdown(1_000);
    await settled();
    answer.resolve({ status: 'transferred' });
    await attaching;
    await clock.advance(10_000);
    await closing;
    const [asked, putBack] = store.transferred;
    expect(putBack).toMatchObject({ token: asked?.to, to: asked?.token });
    const sent = store.transferred.length;
    await expect(locks.attach(text)).rejects.toBeInstanceOf(LockServiceClosedError);
    await settled();
    expect(store.transferred).toHaveLength(sent);
  });

  it('says by the clock whether the time of one that is gone is over', async () => {
    const first = service();
    const { locks, store, clock } = service();
    const text = await detachedBy(first);
    store.onTransfer = () => LOST;
    const reason = { reason: 'released-elsewhere', fencingToken: 1 };
    await expect(locks.attach(text)).rejects.toMatchObject(reason);
    await clock.advance(300_000);
    await expect(locks.attach(text)).rejects.toMatchObject({ reason: 'expired' });
    expect(await locks.attach(text).catch((error: unknown) => error)).toBeInstanceOf(
      LockNotAttachedError,
    );
  });
});
