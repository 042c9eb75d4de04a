import { afterAll, describe, expect, it } from '@jest/globals';
import {
  LockLostError,
  LockNotAcquiredError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  type Lock,
  type UpgradeOutcome,
} from 'nestjs-holdfast';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { heldFor, OUTAGE, silence } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

const TTL_MS = 1_000;
const UNSENT = { ...OUTAGE, sent: false } as const;

const UPGRADEABLE = /:upgradeable$/;
const EXCLUSIVE = /^holdfast:[^:]+$/;

/** What the store is asked for to take an upgrade back. */
const TAKEN_BACK = {
  token: expect.stringMatching(EXCLUSIVE) as unknown as string,
  to: expect.stringMatching(UPGRADEABLE) as unknown as string,
};

type Options = Parameters<typeof scriptedService>[0];

async function upgradeable(keys: string | readonly string[] = 'key', options: Options = {}) {
  const scripted = scriptedService({ ttl: TTL_MS, ...options });
  const lock = await scripted.locks.acquire(keys, { mode: 'upgradeable' });
  return { ...scripted, lock };
}

const stateOf = ({ mode, isHeld }: Lock): unknown => ({ mode, isHeld });
const STILL_UPGRADEABLE = { mode: 'upgradeable', isHeld: true };

describe('an upgrade that ends while its request is on its way', () => {
  it.each(['granted', 'unavailable'] as const)(
    'by its signal leaves the lock upgradeable, in the store too, where that was %s',
    async (status) => {
      const { store, lock } = await upgradeable();
      const [answer, stop] = [deferred<UpgradeOutcome>(), new AbortController()];
      store.onUpgrade = () => answer.promise;
      const upgrading = lock.upgrade({ wait: '10s', signal: stop.signal });
      upgrading.catch(() => undefined);
      await settled();
      stop.abort(new Error('no longer'));
      await settled();
      answer.resolve(status === 'granted' ? { status, fencingToken: 7 } : OUTAGE);
      await expect(upgrading).rejects.toThrow('no longer');
      expect(stateOf(lock)).toEqual(STILL_UPGRADEABLE);
      expect(store.transferred).toMatchObject([TAKEN_BACK]);
    },
  );

  it('by its time leaves the lock upgradeable', async () => {
    const { clock, store, lock } = await upgradeable();
    const answers = [heldFor(100), deferred<UpgradeOutcome>()] as const;
    store.onUpgrade = () => (store.upgraded.length === 1 ? answers[0] : answers[1].promise);
    const upgrading = lock.upgrade({ wait: 200 });
    upgrading.catch(() => undefined);
    await clock.advance(250);
    expect(store.upgraded.length).toBeGreaterThan(1);
    answers[1].resolve({ status: 'granted', fencingToken: 7 });
    await expect(upgrading).rejects.toThrow(LockNotAcquiredError);
    expect(stateOf(lock)).toEqual(STILL_UPGRADEABLE);
    expect(store.transferred).toMatchObject([TAKEN_BACK]);
  });

  it('waits for its own time, however long ago the lock was acquired', async () => {
    const { clock, store, lock } = await upgradeable();
    await clock.advance(5_000);
    store.onUpgrade = () => heldFor(10_000);
    let isRefused = false;
    const upgrading = lock.upgrade({ wait: 1_000 }).catch(() => {
      isRefused = true;
    });
    await clock.advance(990);
    expect(isRefused).toBe(false);
    await clock.advance(30);
    expect(isRefused).toBe(true);
    await upgrading;
  });

  it('by a shutdown leaves the lock upgradeable, for as long as that lets it finish', async () => {
    const { store, locks, lock } = await upgradeable();
    const answer = deferred<UpgradeOutcome>();
    store.onUpgrade = () => answer.promise;
    const upgrading = lock.upgrade({ wait: 'forever' });
    upgrading.catch(() => undefined);
    await settled();
    const down = locks.shutdown(10_000);
    answer.resolve({ status: 'granted', fencingToken: 7 });
    await expect(upgrading).rejects.toThrow(LockServiceClosedError);
    expect(stateOf(lock)).toEqual(STILL_UPGRADEABLE);
    expect(await lock.release()).toBe(true);
    await down;
  });

  it('by the loss of the lock is reported at once, and takes nothing back', async () => {
    const { clock, store, lock } = await upgradeable();
    store.onUpgrade = silence;
    const upgrading = lock.upgrade({ wait: 'forever' });
    const ended = upgrading.catch((error: unknown) => error);
    await clock.advance(TTL_MS + 10);
    const error = await Promise.race([ended, settled()]);
    expect(error).toBeInstanceOf(LockLostError);
    expect(store.transferred).toEqual([]);
    expect(store.released).toMatchObject([{ keys: ['key'] }]);
  });

  it('by its release takes nothing back, and gives back whatever the store has', async () => {
    const { store, lock } = await upgradeable();
    const answer = deferred<UpgradeOutcome>();
    store.onUpgrade = () => answer.promise;
    const upgrading = lock.upgrade({ wait: 'forever' });
    upgrading.catch(() => undefined);
    await settled();
    const releasing = lock.release();
    answer.resolve({ status: 'granted', fencingToken: 7 });
    await expect(upgrading).rejects.toMatchObject({ reason: 'released' });
    expect(await releasing).toBe(true);
    expect(store.transferred).toEqual([]);
    expect(lock.isHeld).toBe(false);
  });
});

describe('an upgrade whose answer is lost', () => {
  it('is asked for again, and is no loss', async () => {
    const { clock, store, lock } = await upgradeable();
    store.onUpgrade = () =>
      store.upgraded.length === 1 ? OUTAGE : { status: 'granted', fencingToken: 7 };
    const upgrading = lock.upgrade({ wait: '10s' });
    await clock.advance(500);
    await upgrading;
    expect([stateOf(lock), lock.fencingToken]).toEqual([{ mode: 'exclusive', isHeld: true }, 7]);
  });

  it('is taken back when it is given up, also where the tries after it never left the process', async () => {
    const { clock, store, lock } = await upgradeable();
    store.onUpgrade = () => (store.upgraded.length === 1 ? OUTAGE : UNSENT);
    const upgrading = lock.upgrade({ wait: 500 });
    upgrading.catch(() => undefined);
    await clock.advance(600);
    await expect(upgrading).rejects.toThrow(LockStoreUnavailableError);
    expect(store.upgraded.length).toBeGreaterThan(1);
    expect(store.transferred).toMatchObject([TAKEN_BACK]);
    expect(stateOf(lock)).toEqual(STILL_UPGRADEABLE);
  });

  it('is taken back after the next renewals, until the store has confirmed that', async () => {
    const { clock, store, lock } = await upgradeable();
    store.onUpgrade = () => OUTAGE;
    store.onTransfer = () => OUTAGE;
    await expect(lock.upgrade({ wait: 0 })).rejects.toThrow(LockStoreUnavailableError);
    expect(stateOf(lock)).toEqual(STILL_UPGRADEABLE);
    await clock.advance(TTL_MS / 2);
    const failed = store.transferred.length;
    expect(failed).toBeGreaterThan(2);
    store.onTransfer = () => ({ status: 'transferred' });
    await clock.advance(TTL_MS * 3);
    expect(store.transferred).toHaveLength(failed + 1);
    expect(store.transferred).toMatchObject(store.transferred.map(() => TAKEN_BACK));
    expect(stateOf(lock)).toEqual(STILL_UPGRADEABLE);
  });

  it('that never left the process changes nothing', async () => {
    const { clock, store, lock } = await upgradeable();
    store.onUpgrade = () => UNSENT;
    await expect(lock.upgrade({ wait: 0 })).rejects.toThrow(LockStoreUnavailableError);
    await clock.advance(TTL_MS * 2);
    expect(store.transferred).toEqual([]);
    expect(stateOf(lock)).toEqual(STILL_UPGRADEABLE);
  });
});

describe('an upgrade of several keys that is refused', () => {
  it('is taken back: the store may have carried it out for some of them', async () => {
    const { store, lock } = await upgradeable(['a', 'b']);
    store.onUpgrade = () => heldFor(500, 'b');
    await expect(lock.upgrade({ wait: 0 })).rejects.toThrow(LockNotAcquiredError);
    expect(store.transferred).toMatchObject([{ keys: ['a', 'b'], ...TAKEN_BACK }]);
    expect(stateOf(lock)).toEqual(STILL_UPGRADEABLE);
  });
});

describe('a downgrade whose answer is lost', () => {
  it.each(['upgradeable', 'shared'] as const)(
    'to %s is asked for again, and after the next renewals until it is confirmed',
    async (to) => {
      const { clock, store, lock } = await upgradeable();
      await lock.upgrade();
      store.onTransfer = () => OUTAGE;
      await expect(lock.downgrade({ to })).rejects.toThrow(LockStoreUnavailableError);
      expect(stateOf(lock)).toEqual({ mode: to, isHeld: true });
      expect(store.transferred).toHaveLength(2);
      store.onTransfer = () => ({ status: 'transferred' });
      await clock.advance(TTL_MS * 2);
      expect(store.transferred).toHaveLength(3);
      const first = store.transferred[0];
      expect(store.transferred[2]).toMatchObject({ keys: ['key'], to: first?.to });
      expect(stateOf(lock)).toEqual({ mode: to, isHeld: true });
    },
  );

  it('is not repeated when the lock is over', async () => {
    const { clock, store, lock } = await upgradeable();
    await lock.upgrade();
    store.onTransfer = () => OUTAGE;
    await expect(lock.downgrade()).rejects.toThrow(LockStoreUnavailableError);
    await lock.release();
    await clock.advance(TTL_MS * 2);
    expect(store.transferred).toHaveLength(2);
  });
});

describe('the errors of an upgrade', () => {
  it('answer as the option "errors" has them', async () => {
    const errors = { exposeKeys: true };
    const { store, locks, lock } = await upgradeable('key', { errors });
    const body = { keys: ['key'] };
    const failing = async (answer: UpgradeOutcome) => {
      store.onUpgrade = () => answer;
      const error: unknown = await lock.upgrade({ wait: 0 }).catch((each: unknown) => each);
      return (error as LockNotAcquiredError).getResponse();
    };
    expect(await failing(heldFor(500))).toMatchObject(body);
    expect(await failing(UNSENT)).toMatchObject(body);
    store.onUpgrade = silence;
    const closed = lock.upgrade({ wait: 'forever' }).catch((error: unknown) => error);
    await settled();
    locks.refuseWaiting();
    void lock.release();
    expect(((await closed) as LockNotAcquiredError).getResponse()).toMatchObject(body);
  });

  it('say that it was an upgrade', async () => {
    const { store, lock } = await upgradeable();
    store.onUpgrade = () => heldFor(500);
    await expect(lock.upgrade({ wait: 0 })).rejects.toMatchObject({
      detail:
        'Lock "key" could not be upgraded: others hold it together with this one for up to 500 ms more. It stays upgradeable. ' +
        'Try again later, or pass "wait" to wait for them.',
    });
    store.onUpgrade = () => UNSENT;
    await expect(lock.upgrade({ wait: 0 })).rejects.toMatchObject({
      detail: expect.stringMatching(/^Could not upgrade "key": the lock store is not available/),
    });
  });
});
