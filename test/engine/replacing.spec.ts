import { describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError, LockService } from 'nestjs-holdfast';
import { LockEngine } from '../../lib/engine/lock-engine.js';
import type { ScopeOrigin } from '../../lib/engine/granting.js';
import { storeOption } from '../../lib/options/location.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { heldFor } from '../support/scripted-store.js';
import { settled, VirtualRuntime } from '../support/virtual-runtime.js';
import { scriptedEngine } from './scripted-engine.js';

const REPLACE = { onLocked: 'replace' } as const;

const PATIENT = { ...REPLACE, replaceWait: 60_000 } as const;

/** In memory, with the number of requests for locks. */
function counted() {
  const runtime = new VirtualRuntime();
  const store = new MemoryLockStore(runtime);
  const acquire = store.acquire.bind(store);
  let requests = 0;
  store.acquire = (request) => {
    requests += 1;
    return acquire(request);
  };
  const locks = new LockEngine(
    { store: storeOption(store) },
    {
      runtime,
      log: { warn: () => undefined, error: () => undefined },
      machine: { application: 'shop', host: 'web-1', pid: 42, version: undefined },
    },
  );
  return { runtime, locks, requests: () => requests };
}

it('an older call that is slow does not work after a newer one has worked and ended', async () => {
  const store = new MemoryLockStore();
  const locks = new LockService({ store: storeOption(store) });
  await locks.open();
  const worked: string[] = [];
  const look = store.admin.look.bind(store.admin);
  let looks = 0;
  store.admin.look = async (keys) => {
    const found = await look(keys);
    looks += 1;
    // The older call reads what it saw before the newer one came.
    if (looks === 1) await locks.run('key', REPLACE, () => worked.push('newer'));
    return found;
  };
  const older = locks.run('key', REPLACE, () => worked.push('older'));
  await expect(older).rejects.toMatchObject({ reason: 'replaced', code: 'LOCK_REPLACED' });
  expect(worked).toEqual(['newer']);
  expect(await locks.inspect('key')).toEqual({ held: false });
  await locks.shutdown(0);
});

describe('a call that replaces the holder', () => {
  it('asks for no lock if a newer call came while it waited for the end of the work', async () => {
    const { runtime, locks, requests } = counted();
    const holder = await locks.acquire('key');
    const older = locks.acquire('key', PATIENT).catch((error: unknown) => error);
    await settled();
    const newer = locks.acquire('key', PATIENT);
    await settled();
    await holder.release();
    await runtime.advance(1_000);
    expect(await older).toMatchObject({ reason: 'replaced' });
    expect(await (await newer).release()).toBe(true);
    expect(requests()).toBe(2);
    await locks.shutdown(0);
  });

  it.each<[string, ScopeOrigin]>([
    [
      'Orders.pay',
      { origin: { method: 'Orders.pay', template: 'order:<id>' }, site: { place: 'orders.ts:7' } },
    ],
    ['order:<id>', { origin: { template: 'order:<id>' }, site: { place: 'orders.ts:7' } }],
    ['orders.ts:7', { site: { place: 'orders.ts:7' } }],
    ['a call', {}],
  ])('is known to the holder as %s', async (call, from) => {
    const { locks } = counted();
    const holder = await locks.acquire('key');
    const newer = locks.acquireFrom('key', PATIENT, from);
    await settled();
    expect(holder.signal.reason).toMatchObject({
      reason: 'replaced',
      intervention: { by: `${call} in shop (process 42 on web-1)`, reason: "onLocked: 'replace'" },
    });
    await holder.release();
    await (await newer).release();
    await locks.shutdown(0);
  });

  it('is refused at once by other software, which keeps its lock', async () => {
    const { clock, store, locks } = scriptedEngine();
    const holders = [{ token: 'of other software', remainingMs: 60_000 }];
    store.admin.look = async ([key = '']) => [{ key, holders, line: [] }];
    store.onAcquire = () => heldFor(60_000);
    let refusal: unknown;
    void locks.acquire('key', REPLACE).catch((error: unknown) => (refusal = error));
    await clock.advance(0);
    expect(refusal).toBeInstanceOf(LockNotAcquiredError);
    expect(store.released).toEqual([]);
    await locks.shutdown(0);
  });

  it('is refused when a key that no work holds is still kept after 10 s', async () => {
    const { clock, store, locks } = scriptedEngine();
    store.onAcquire = () => heldFor(60_000);
    let refusal: unknown;
    const call = locks.acquire('key', REPLACE).catch((error: unknown) => (refusal = error));
    await clock.advance(9_900);
    expect(refusal).toBeUndefined();
    await clock.advance(500);
    expect(refusal).toBeInstanceOf(LockNotAcquiredError);
    await locks.shutdown(0);
    await call;
  });
});
