import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import type { LockStore, TransferRequest } from '../../lib/store/lock-store.js';
import { detachedToken, newOwnerToken, type HoldMode } from '../../lib/store/owner-token.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { LINE, openStore, request, heldMs } from './open-store.js';

let server: RedisServer;
let client: Redis;
let stores: LockStore[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});

beforeEach(async () => {
  await client.flushall();
});

afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  stores = [];
});

afterAll(async () => {
  client.disconnect();
  await server.stop();
});

type Transferring = LockStore & Required<Pick<LockStore, 'transfer'>>;

async function open(redis: string): Promise<Transferring> {
  const { store } = await openStore({ redis, nodeTimeoutMs: 500 });
  stores.push(store);
  return store;
}

const one = (): Promise<Transferring> => open(server.url);

const [DETACHED, OURS] = [newOwnerToken(systemRuntime), newOwnerToken(systemRuntime)];

/** A lease that was granted, and what gives it the token under which nobody has it. */
async function granted(
  store: LockStore,
  how: Parameters<typeof request>[1] = {},
): Promise<TransferRequest> {
  const lease = request('key', how);
  const outcome = await store.acquire(lease);
  if (outcome.status !== 'granted') throw new Error(outcome.status);
  const { keys, token } = lease;
  const lastToken = outcome.fencingToken;
  return { keys, token, to: DETACHED, ttlMs: 5_000, lastToken };
}

const attached = (detached: TransferRequest, to = OURS): TransferRequest => ({
  ...detached,
  ...{ token: detached.to, to },
});

const holder = (): Promise<string | null> => client.get('lock:key');

describe.each<[string, () => Promise<Transferring>]>([
  ['in memory', () => Promise.resolve(new MemoryLockStore())],
  ['in one Redis', one],
])('a lease %s that goes on under another token', (_where, openOne) => {
  it('is not renewed, nor released, by what its holder before has sent', async () => {
    const store = await openOne();
    const detached = await granted(store);
    const before = request('key', { token: detached.token, ttlMs: 600_000 });
    expect(await store.transfer(detached)).toEqual({ status: 'transferred' });

    expect(await store.extend([before])).toEqual([{ status: 'lost', reason: 'stolen' }]);
    expect(await store.release(before)).toEqual({ status: 'not-held' });
    expect(await heldMs(store, 'key')).toBeGreaterThan(0);
    expect(await heldMs(store, 'key')).toBeLessThanOrEqual(5_000);
    const now = request('key', { token: DETACHED });
    expect(await store.extend([now])).toEqual([{ status: 'extended' }]);
  });

  it('does so once, however often the request arrives', async () => {
    const store = await openOne();
    const detached = await granted(store);
    for (let times = 0; times < 3; times += 1)
      expect(await store.transfer(detached)).toEqual({ status: 'transferred' });
    const taken = attached(detached);
    for (let times = 0; times < 3; times += 1)
      expect(await store.transfer(taken)).toEqual({ status: 'transferred' });
    expect(await store.transfer(attached(detached, newOwnerToken(systemRuntime)))).toEqual({
      status: 'lost',
      reason: 'attached',
    });
    expect(await store.release(request('key', { token: OURS }))).toEqual({ status: 'released' });
  });

  it.each(['exclusive', 'shared', 'limit:2'] as const)(
    'lasts no longer when a request arrives again, as after a restart with older data: %s',
    async (mode) => {
      const store = await openOne();
      const to = detachedToken('digest', mode);
      const token = newOwnerToken(systemRuntime, { mode });
      const detached = { ...(await granted(store, { token })), to };
      await store.transfer(detached);
      const ours = newOwnerToken(systemRuntime, { mode });
      const putBack = { ...detached, token: ours };
      for (const again of [detached, putBack])
        expect(await store.transfer({ ...again, ttlMs: 600_000 })).toEqual({
          status: 'transferred',
        });
      expect(await heldMs(store, 'key')).toBeLessThanOrEqual(5_000);
      expect(await store.transfer(attached(detached, ours))).toEqual({ status: 'transferred' });
    },
  );

  it('is told from one that somebody else was granted, or nobody holds', async () => {
    const store = await openOne();
    const detached = await granted(store);
    await store.release(request('key', { token: detached.token }), detached.lastToken);
    expect(await store.transfer(detached)).toEqual({ status: 'lost', reason: 'gone' });
    const next = request('key');
    expect((await store.acquire(next)).status).toBe('granted');
    expect(await store.transfer(detached)).toEqual({ status: 'lost', reason: 'stolen' });
    expect(await store.extend([next])).toEqual([{ status: 'extended' }]);
  });
});

const MODES: readonly HoldMode[] = ['exclusive', 'shared', 'limit:2'];

describe.each<[string, () => Promise<Transferring>]>([
  ['in memory', () => Promise.resolve(new MemoryLockStore())],
  ['in one Redis', one],
])('those who wait for a lease %s', (_where, openOne) => {
  it.each([
    ...MODES.map((mode) => ['it is transferred', mode] as const),
    ...MODES.map((mode) => ['it is extended', mode] as const),
  ])('are notified when %s, and ends sooner than they know: %s', async (how, mode) => {
    const store = await openOne();
    const calls: number[] = [];
    await store.listen((key, call) => {
      if (key === 'key' && call !== undefined) calls.push(call.inMs);
    });
    const tokenIn = (as: HoldMode): string => newOwnerToken(systemRuntime, { mode: as });
    const lease = { ...(await granted(store, { token: tokenIn(mode) })), ttlMs: 2_000 };
    const isLimited = mode === 'limit:2';
    // The first end of its holders changes, and the last one does not.
    if (isLimited) await granted(store, { token: tokenIn(mode) });
    const token = tokenIn(isLimited ? mode : 'exclusive');
    // Over Redis a place in line needs an inbox, which is open now.
    expect((await store.acquire(request('key', { line: LINE, token }))).status).toBe('held');
    if (how === 'it is transferred') {
      const to = detachedToken('digest', mode);
      expect(await store.transfer({ ...lease, to })).toEqual({ status: 'transferred' });
    } else {
      expect(await store.extend([request('key', lease)])).toEqual([{ status: 'extended' }]);
    }
    await eventually(() => calls.length > 0);
    expect(Math.max(...calls)).toBeLessThanOrEqual(2_000);
    await store.leave(request('key'), LINE);
  });

  it('are not notified of a renewal', async () => {
    const store = await openOne();
    const calls: number[] = [];
    await store.listen((key, call) => {
      if (key === 'key' && call !== undefined) calls.push(call.inMs);
    });
    const lease = request('key', { ...(await granted(store)), ttlMs: 60_000 });
    expect((await store.acquire(request('key', { line: LINE }))).status).toBe('held');
    expect(await store.extend([lease])).toEqual([{ status: 'extended' }]);
    expect(await store.extend([{ ...lease, ttlMs: 1_000 }])).toEqual([{ status: 'extended' }]);
    await eventually(() => calls.length > 0);
    expect(calls).toHaveLength(1);
    await store.leave(request('key'), LINE);
  });
});

describe('a lease in Redis that goes on under another token', () => {
  it('can do so when memory is full', async () => {
    const store = await one();
    const detached = await granted(store);
    await client.config('SET', 'maxmemory', '1');
    try {
      expect((await store.acquire(request('other'))).status).toBe('unavailable');
      expect(await store.transfer(detached)).toEqual({ status: 'transferred' });
      expect(await store.transfer(attached(detached))).toEqual({ status: 'transferred' });
    } finally {
      await client.config('SET', 'maxmemory', '0');
    }
  });

  it('that is gone leaves the key to the next in line at once', async () => {
    const store = await one();
    const calls: number[] = [];
    await store.listen((key, call) => {
      if (key === 'key' && call !== undefined) calls.push(call.inMs);
    });
    const detached = await granted(store);
    const next = request('key', { line: LINE });
    expect((await store.acquire(next)).status).toBe('held');
    await client.del('lock:key');
    expect(await store.transfer(detached)).toEqual({ status: 'lost', reason: 'gone' });
    expect(await holder()).toBe(next.token);
    await eventually(() => calls.includes(0));
  });

  it('keeps its fence for as long as itself', async () => {
    const store = await one();
    const detached = await granted(store);
    await store.transfer({ ...detached, ttlMs: 3_600_000 });
    expect(await client.pttl('{lock:key}:fence')).toBeGreaterThan(3_600_000 + 500_000);
  });

  it('is found by whoever tries again, when the answer to an attach was lost', async () => {
    const proxy = await TcpProxy.start(server.port);
    const far = await open(`redis://127.0.0.1:${String(proxy.port)}`);
    const detached = await granted(await one());
    await (await one()).transfer(detached);
    try {
      proxy.pause('to-client');
      expect((await far.transfer(attached(detached))).status).toBe('unavailable');
      const back = { ...attached(detached), token: OURS, to: DETACHED };
      expect((await far.transfer(back)).status).toBe('unavailable');
      proxy.resume('to-client');
      await eventually(async () => (await holder()) === DETACHED);
      expect(await far.transfer(attached(detached))).toEqual({ status: 'transferred' });
    } finally {
      await proxy.stop();
    }
  });
});
