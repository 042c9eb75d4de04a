import { afterAll, describe, expect, it } from '@jest/globals';
import {
  LockServiceClosedError,
  LockStoreUnavailableError,
  type LockStore,
  type TransferRequest,
} from 'nestjs-holdfast';
import type { UpgradeOutcome } from '../../lib/store/lock-store.js';
import { holdModeOf } from '../../lib/store/owner-token.js';
import { deferred } from '../support/eventually.js';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { heldFor, OUTAGE } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

type Upgrade = NonNullable<LockStore['upgrade']>;

/** A service that holds a key as upgradeable, on a store that has such locks. */
async function upgradeableLock() {
  const scripted = scriptedService({ ttl: '1m', wait: '10m' });
  const { store, locks } = scripted;
  const upgrades: Upgrade = () => Promise.resolve(OUTAGE);
  const upgrading: { answer: Upgrade } = { answer: upgrades };
  Object.assign(store, {
    upgrade: (...request: Parameters<Upgrade>) => upgrading.answer(...request),
  });
  const lock = await locks.acquire('key', { mode: 'upgradeable' });
  return { ...scripted, lock, upgrading };
}

/** What the store was asked to make of a lease: its mode before and after. */
const modesOf = ({ token, to }: TransferRequest): readonly string[] => [token, to].map(holdModeOf);

describe('an upgrade whose caller gives up while the request is on its way', () => {
  it.each<[string, UpgradeOutcome]>([
    ['was granted', { status: 'granted', fencingToken: 9 }],
    ['has no answer', OUTAGE],
  ])('is taken back where it %s: the lock is upgradeable as before', async (_, outcome) => {
    const { store, lock, upgrading } = await upgradeableLock();
    const { fencingToken } = lock;
    const answer = deferred<UpgradeOutcome>();
    upgrading.answer = () => answer.promise;
    const giveUp = new AbortController();
    const upgrade = lock.upgrade({ signal: giveUp.signal });
    upgrade.catch(() => undefined);
    await settled();
    giveUp.abort(new Error('no longer'));
    await settled();
    answer.resolve(outcome);
    await expect(upgrade).rejects.toThrow('no longer');
    expect([lock.mode, lock.fencingToken]).toEqual(['upgradeable', fencingToken]);
    expect(store.transferred.map(modesOf)).toEqual([['exclusive', 'upgradeable']]);
    await lock.release();
  });
});

describe('a caller of the same process that waits to hold the keys alone', () => {
  it('takes its place in line when the lock is downgraded, before readers come', async () => {
    const { store, locks } = scriptedService({ ttl: '1m', wait: '10m' });
    store.onAcquire = () =>
      store.acquired.length === 1
        ? { status: 'granted', fencingToken: 1 }
        : { ...heldFor(60_000), ticket: 7 };
    const waiting = [locks.acquire('key'), locks.acquire('key')] as const;
    const lock = await waiting[0];
    await settled();
    const before = store.acquired.length;
    await lock.downgrade();
    await settled();
    expect(store.acquired.slice(before).at(-1)).toMatchObject({ keys: ['key'], line: {} });
    locks.refuseWaiting();
    await expect(waiting[1]).rejects.toThrow(LockServiceClosedError);
    await lock.release();
  });
});

describe('a downgrade that has no answer', () => {
  it('is asked for again at the next renewal that has one', async () => {
    const { clock, store, locks } = scriptedService({ ttl: '1m' });
    Object.assign(store, { upgrade: () => Promise.resolve(OUTAGE) });
    const lock = await locks.acquire('key');
    store.onTransfer = () => OUTAGE;
    await expect(lock.downgrade({ to: 'upgradeable' })).rejects.toThrow(LockStoreUnavailableError);
    const before = store.transferred.length;
    store.onTransfer = () => ({ status: 'transferred' });
    await clock.advance(20_000);
    expect(store.transferred.slice(before).map(modesOf)).toEqual([['exclusive', 'upgradeable']]);
    await clock.advance(20_000);
    expect(store.transferred).toHaveLength(before + 1);
    expect(lock.mode).toBe('upgradeable');
    await lock.release();
  });
});
