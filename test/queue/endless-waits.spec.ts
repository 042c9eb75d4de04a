import { afterAll, describe, expect, it } from '@jest/globals';
import {
  LockConfigurationError,
  LockNotAcquiredError,
  LockService,
  LockServiceClosedError,
} from 'nestjs-holdfast';
import { scriptedService, watchRejections } from '../support/scripted-service.js';
import { FORBIDDEN, heldFor, OUTAGE } from '../support/scripted-store.js';
import { settled } from '../support/virtual-runtime.js';

const rejections = watchRejections();
afterAll(() => rejections.expectNone());

const HOUR_MS = 3_600_000;

/** With so long a TTL a line looks every 5 s. */
const LOOKS = { ttl: 60_000 };

/** What becomes of a promise, as far as is known. */
function watched(promise: Promise<unknown>): { outcome: unknown } {
  const seen: { outcome: unknown } = { outcome: 'waits' };
  promise.then(
    () => (seen.outcome = 'granted'),
    (error: unknown) => (seen.outcome = error),
  );
  return seen;
}

describe('a wait without end', () => {
  it.each(['forever', Infinity] as const)(
    'is told by wait: %p, and lasts until the lock is granted',
    async (wait) => {
      const { clock, store, locks } = scriptedService(LOOKS);
      const acquire = store.onAcquire;
      store.onAcquire = () => heldFor(60_000);
      const waiting = watched(locks.acquire('key', { wait }));
      await clock.advance(3 * HOUR_MS);
      expect(waiting.outcome).toBe('waits');
      store.onAcquire = acquire;
      store.reportReleased('key');
      await clock.advance(100);
      expect(waiting.outcome).toBe('granted');
    },
  );

  it('may be the default of the module, and a call may say less', async () => {
    const { clock, store, locks } = scriptedService({ ...LOOKS, wait: 'forever' });
    store.onAcquire = () => heldFor(60_000);
    const endless = watched(locks.run('key', () => undefined));
    const short = watched(locks.run('key', { wait: '1s' }, () => undefined));
    await clock.advance(HOUR_MS);
    expect(endless.outcome).toBe('waits');
    expect(short.outcome).toBeInstanceOf(LockNotAcquiredError);
    await locks.shutdown(0);
    await settled();
  });

  it('is reported once as waiting, and never as refused', async () => {
    const { clock, store, locks, refused } = scriptedService(LOOKS);
    const waits: unknown[] = [];
    locks.on('waiting', ({ because }) => waits.push(because));
    store.onAcquire = () => heldFor(1_000);
    void watched(locks.acquire('key', { wait: 'forever' }));
    await clock.advance(HOUR_MS);
    expect(waits).toEqual(['held']);
    expect(refused).toEqual([]);
    await locks.shutdown(0);
  });

  it('ends with the reason of its signal', async () => {
    const { clock, store, locks } = scriptedService(LOOKS);
    store.onAcquire = () => heldFor(60_000);
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = watched(locks.acquire('key', { wait: 'forever', signal }));
    await clock.advance(HOUR_MS);
    const reason = new Error('the client has gone');
    controller.abort(reason);
    await settled();
    expect(waiting.outcome).toBe(reason);
  });

  it('is ended by the shutdown, which then leaves no timer', async () => {
    const { clock, store, locks } = scriptedService(LOOKS);
    store.onAcquire = () => heldFor(60_000);
    const waiting = watched(locks.acquire('key', { wait: 'forever' }));
    await clock.advance(HOUR_MS);
    const closed = locks.shutdown(0);
    await clock.advance(2_000);
    await closed;
    expect(waiting.outcome).toBeInstanceOf(LockServiceClosedError);
    expect(clock.timers).toBe(0);
  });

  it('outlasts an outage that passes, and not one that only another setting ends', async () => {
    const { clock, store, locks } = scriptedService(LOOKS);
    store.onAcquire = () => OUTAGE;
    const waiting = watched(locks.acquire('key', { wait: 'forever' }));
    await clock.advance(HOUR_MS);
    expect(waiting.outcome).toBe('waits');
    store.onAcquire = () => FORBIDDEN;
    await clock.advance(5_000);
    expect(waiting.outcome).toMatchObject({ name: 'LockStoreUnavailableError' });
  });

  it('sets no timer that Node cuts short', async () => {
    const warnings: string[] = [];
    const onWarning = ({ name }: Error): void => void warnings.push(name);
    process.on('warning', onWarning);
    const locks = new LockService({ store: 'memory' });
    await locks.open();
    const holder = await locks.acquire('key', { ttl: '60d' });
    const waiting = watched(locks.acquire('key', { wait: Infinity }));
    const longest = watched(locks.acquire('key', { wait: '60d' }));
    await settled();
    expect([waiting.outcome, longest.outcome]).toEqual(['waits', 'waits']);
    await holder.release();
    await settled();
    expect(waiting.outcome).toBe('granted');
    await locks.shutdown(0);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  it.each(['for ever', 'infinite', 'Forever'])('is not spelled %p', async (wait) => {
    const { locks } = scriptedService(LOOKS);
    const failure = await locks
      .acquire('key', { wait: wait as 'forever' })
      .catch((e: unknown) => e);
    expect(failure).toBeInstanceOf(LockConfigurationError);
    expect((failure as Error).message).toContain("Give 'forever' to wait indefinitely.");
  });
});
