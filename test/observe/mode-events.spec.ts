import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { LockNotAcquiredError, LockStoreUnavailableError, type LockEvents } from 'nestjs-holdfast';
import { scriptedService } from '../support/scripted-service.js';
import { heldFor, OUTAGE } from '../support/scripted-store.js';

const NAMES = ['waiting', 'upgraded', 'downgraded', 'refused', 'unavailable'] as const;

async function observed() {
  const scripted = scriptedService({ ttl: '1m' });
  const lock = await scripted.locks.acquire('key', { mode: 'upgradeable' });
  const heard: unknown[] = [];
  for (const name of NAMES)
    scripted.locks.on(name, (event: LockEvents[typeof name]) => heard.push([name, event]));
  return { ...scripted, lock, heard };
}

const UNSENT = { ...OUTAGE, sent: false } as const;
const SUBJECT = { keys: ['key'] };

describe('the events of a lock whose mode changes', () => {
  it('tell of an upgrade, with its wait, and of a downgrade', async () => {
    const { clock, store, lock, heard } = await observed();
    store.onUpgrade = () =>
      store.upgraded.length === 1 ? heldFor(300) : { status: 'granted', fencingToken: 7 };
    const upgrading = lock.upgrade({ wait: '10s' });
    await clock.advance(1_000);
    await upgrading;
    await lock.upgrade();
    await lock.downgrade();
    await lock.downgrade({ to: 'shared' });
    await lock.downgrade({ to: 'shared' });
    const told = { ...SUBJECT, fencingToken: 7 };
    expect(heard).toEqual([
      ['waiting', { ...SUBJECT, mode: 'exclusive', because: 'held' }],
      ['upgraded', { ...told, mode: 'exclusive', waitedMs: expect.any(Number) }],
      ['downgraded', { ...told, mode: 'upgradeable', previousMode: 'exclusive' }],
      ['downgraded', { ...told, mode: 'shared', previousMode: 'upgradeable' }],
    ]);
  });

  it('tell of an upgrade that is refused, and of outages', async () => {
    const { store, lock, heard } = await observed();
    store.onUpgrade = () => heldFor(300);
    await expect(lock.upgrade({ wait: 0 })).rejects.toThrow(LockNotAcquiredError);
    store.onUpgrade = () => UNSENT;
    await expect(lock.upgrade({ wait: 0 })).rejects.toThrow(LockStoreUnavailableError);
    store.onTransfer = () => UNSENT;
    await expect(lock.downgrade()).rejects.toThrow(LockStoreUnavailableError);
    const { nodes } = OUTAGE;
    const { fencingToken } = lock;
    expect(heard).toEqual([
      ['refused', { ...SUBJECT, mode: 'exclusive', retryAfterMs: 300, waitedMs: 0 }],
      ['unavailable', { ...SUBJECT, mode: 'exclusive', operation: 'upgrade', nodes }],
      ['downgraded', { ...SUBJECT, mode: 'shared', fencingToken, previousMode: 'upgradeable' }],
      ['unavailable', { ...SUBJECT, mode: 'shared', fencingToken, operation: 'downgrade', nodes }],
    ]);
  });

  const listener = jest.fn();
  const CHANNELS = ['holdfast:upgraded', 'holdfast:downgraded'];
  afterEach(() => {
    for (const name of CHANNELS) unsubscribe(name, listener);
  });

  it('are on channels, too', async () => {
    const { lock } = await observed();
    for (const name of CHANNELS) subscribe(name, listener);
    await lock.upgrade();
    await lock.downgrade();
    expect(listener.mock.calls.map(([, name]) => name)).toEqual(CHANNELS);
  });
});
