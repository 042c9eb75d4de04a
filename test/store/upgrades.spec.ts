import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import {
  LockLostError,
  LockNotAcquiredError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  type AcquireOptions,
  type Lock,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { holdModeOf, newOwnerToken, tokenIn } from '../../lib/store/owner-token.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { ChildScript } from '../support/child-script.js';
import { eventually } from '../support/eventually.js';
import { Locks } from '../support/locks.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { openStore, request } from './open-store.js';

const PROCESS = new URL('modes-process.ts', import.meta.url);

const UPGRADEABLE = { mode: 'upgradeable' } as const;
const SHARED = { mode: 'shared' } as const;
/** No pause of a busy machine costs such a lease, and its renewals are soon. */
const RENEWED_TTL_MS = 1_500;
const LONG_WAIT = '25s';

const ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function open(options: LockModuleOptions): Promise<Locks> {
  const locks = new Locks({ nodeTimeout: 500, ttl: '20s', ...options });
  ends.push(() => locks.shutdown(0));
  await locks.open();
  return locks;
}

/** What became of it, without a rejection that nobody handles. */
const outcomeOf = (upgrading: Promise<unknown>): Promise<unknown> =>
  upgrading.then(
    () => 'done',
    (error: unknown) => error,
  );

const stateOf = ({ mode, isHeld }: Lock): unknown => [mode, isHeld];

describe('the change of a mode, on a Redis behind a network that breaks,', () => {
  let server: RedisServer;
  let proxy: TcpProxy;
  let locks: Locks;
  /** Another process, whose network is in order. */
  let others: Locks;

  beforeAll(async () => {
    server = await RedisServer.start();
  });

  beforeEach(async () => {
    await server.command('FLUSHALL');
    ends.push(nothingIsLeft);
    proxy = await TcpProxy.start(server.port);
    ends.push(() => proxy.stop());
    others = await open({ redis: server.url });
    locks = await open({ redis: `redis://127.0.0.1:${String(proxy.port)}` });
    // From now on the server knows the scripts: one request is one step.
    const lock = await locks.acquire('other', UPGRADEABLE);
    await lock.upgrade();
    await lock.downgrade();
    await lock.release();
  });

  const nothingIsLeft = async (): Promise<void> => {
    for (const name of (await server.command('KEYS', '*')) as string[])
      expect(name).toMatch(/:fence$|<trial:/);
  };

  afterAll(() => server.stop());

  const modeAtServer = async (key = 'key'): Promise<unknown> => {
    const holder = await server.command('GET', `lock:${key}`);
    if (typeof holder !== 'string') return holder;
    return holder.startsWith('holdfast::') ? 'together' : holdModeOf(holder);
  };

  const serverHas = (mode: string | null): Promise<unknown> =>
    eventually(async () => expect(await modeAtServer()).toBe(mode));

  const reads = async (): Promise<boolean> => {
    const reader = await others.tryAcquire('key', SHARED);
    await reader?.release();
    return reader !== null;
  };

  /** The server has carried out the upgrade, and its answer is held back. */
  async function upgradeWithoutAnswer(
    options: Parameters<Lock['upgrade']>[0],
    how: AcquireOptions = {},
  ): Promise<{ readonly lock: Lock; readonly outcome: Promise<unknown> }> {
    const lock = await locks.acquire('key', { ...UPGRADEABLE, ...how });
    proxy.pause('to-client');
    const outcome = outcomeOf(lock.upgrade(options));
    await serverHas('exclusive');
    return { lock, outcome };
  }

  const breakConnection = (): void => {
    proxy.cut();
    proxy.resume();
  };

  it('is carried out by the next try when the answer to an upgrade was lost', async () => {
    const { lock, outcome } = await upgradeWithoutAnswer({ wait: LONG_WAIT });
    const before = lock.fencingToken;
    breakConnection();
    expect(await outcome).toBe('done');
    expect(stateOf(lock)).toEqual(['exclusive', true]);
    expect(lock.fencingToken).toBeGreaterThan(before);
    expect(await reads()).toBe(false);
    expect(await lock.release()).toBe(true);
    expect(await others.tryAcquire('key', { ttl: 500, autoExtend: false })).not.toBeNull();
  });

  it('is taken back by a renewal when nobody could be asked in the end', async () => {
    const { lock, outcome } = await upgradeWithoutAnswer({ wait: 700 }, { ttl: '6s' });
    proxy.refuse();
    breakConnection();
    expect(await outcome).toBeInstanceOf(LockStoreUnavailableError);
    expect(stateOf(lock)).toEqual(['upgradeable', true]);
    expect(await reads()).toBe(false);
    proxy.accept();
    await eventually(reads, { withinMs: 10_000 });
    expect(stateOf(lock)).toEqual(['upgradeable', true]);
    await lock.upgrade({ wait: LONG_WAIT });
    expect(await reads()).toBe(false);
  });

  it('is taken back when its signal aborts before the answer comes', async () => {
    const stop = new AbortController();
    const { lock, outcome } = await upgradeWithoutAnswer({
      wait: LONG_WAIT,
      signal: stop.signal,
    });
    stop.abort(new Error('no longer'));
    proxy.resume();
    expect(await outcome).toMatchObject({ message: 'no longer' });
    expect(stateOf(lock)).toEqual(['upgradeable', true]);
    await eventually(reads);
  });

  it('ends with the release of its lock, and leaves nothing behind', async () => {
    const { lock, outcome } = await upgradeWithoutAnswer({ wait: LONG_WAIT });
    const released = lock.release();
    proxy.resume();
    expect(await outcome).toMatchObject({ reason: 'released' });
    expect(await released).toBe(true);
    await serverHas(null);
  });

  it('ends with the service, and leaves nothing behind', async () => {
    const { lock, outcome } = await upgradeWithoutAnswer({ wait: LONG_WAIT });
    const down = locks.shutdown(0);
    proxy.resume();
    expect(await outcome).toBeInstanceOf(LockServiceClosedError);
    await down;
    expect(lock.isHeld).toBe(false);
    await serverHas(null);
  });

  it('takes nothing from others when it arrives after the end of its lease', async () => {
    const lock = await locks.acquire('key', { ...UPGRADEABLE, ttl: 800 });
    proxy.pause();
    const outcome = outcomeOf(lock.upgrade({ wait: 'forever' }));
    expect(await outcome).toBeInstanceOf(LockLostError);
    const next = await others.acquire('key', { wait: LONG_WAIT, ttl: RENEWED_TTL_MS });
    proxy.resume();
    // Sent behind the upgrade, over the same connection.
    await locks.inspect('key');
    await next.extend();
    expect(await reads()).toBe(false);
    expect(await next.release()).toBe(true);
    await serverHas(null);
  });

  it('takes no free key when it arrives after the end of its lease', async () => {
    const lock = await locks.acquire('key', { ...UPGRADEABLE, ttl: 800 });
    proxy.pause();
    expect(await outcomeOf(lock.upgrade({ wait: 'forever' }))).toBeInstanceOf(LockLostError);
    await serverHas(null);
    proxy.resume();
    await locks.inspect('key');
    expect(await modeAtServer()).toBeNull();
  });

  it('is carried out by the second request when the answer to a downgrade was lost', async () => {
    const lock = await locks.acquire('key');
    proxy.pause('to-client');
    const outcome = outcomeOf(lock.downgrade());
    await serverHas('together');
    breakConnection();
    expect(await outcome).toBe('done');
    expect(stateOf(lock)).toEqual(['shared', true]);
    await eventually(reads);
    expect(await others.tryAcquire('key')).toBeNull();
    expect(await lock.release()).toBe(true);
  });

  it.each(['shared', 'upgradeable'] as const)(
    'to %s is carried out by a renewal when a downgrade had no answer at all',
    async (to) => {
      const lock = await locks.acquire('key', { ...UPGRADEABLE, ttl: '6s' });
      await lock.upgrade();
      proxy.refuse();
      proxy.cut();
      const outcome = await outcomeOf(lock.downgrade({ to }));
      expect(outcome).toBeInstanceOf(LockStoreUnavailableError);
      expect(stateOf(lock)).toEqual([to, true]);
      expect(await reads()).toBe(false);
      proxy.accept();
      await eventually(reads, { withinMs: 10_000 });
      expect(stateOf(lock)).toEqual([to, true]);
    },
  );

  describe('in a process that waits for readers,', () => {
    const placesInLine = (): Promise<unknown> => server.command('ZCARD', '{lock:key}:queue');

    async function upgradingProcess(ttl: number): Promise<ChildScript> {
      const child = new ChildScript(PROCESS, ['upgrade', JSON.stringify({ ttl }), server.url]);
      ends.push(() => child.kill());
      await eventually(async () => expect(await placesInLine()).toBe(1), { withinMs: 20_000 });
      expect(await reads()).toBe(false);
      return child;
    }

    it('keeps others from nothing when that dies, but for its lease', async () => {
      const reader = await others.acquire('key', SHARED);
      const child = await upgradingProcess(60_000);
      await child.kill();
      await eventually(reads);
      expect(await placesInLine()).toBe(0);
      expect(await others.tryAcquire('key', UPGRADEABLE)).toBeNull();
      await reader.release();
      await server.command('DEL', 'lock:key', '{lock:key}:holders', 'child');
    });

    it('keeps readers out no longer than its lease when that is frozen', async () => {
      const reader = await others.acquire('key', SHARED);
      const child = await upgradingProcess(RENEWED_TTL_MS);
      process.kill(child.pid, 'SIGSTOP');
      await eventually(reads, { withinMs: 10_000 });
      await reader.release();
      expect(await others.tryAcquire('key', { ttl: 500, autoExtend: false })).not.toBeNull();
      await server.command('DEL', 'child', 'lock:key');
    });
  });
});

describe('an upgrade on a Redis that forgets', () => {
  let server: RedisServer;

  beforeEach(async () => {
    server = await RedisServer.start();
    ends.push(() => server.stop());
  });

  const restart = async (): Promise<void> => {
    await server.kill();
    await server.restart();
  };

  it('ends with the loss of the lock', async () => {
    const locks = await open({ redis: server.url, ttl: RENEWED_TTL_MS });
    const lock = await locks.acquire('key', UPGRADEABLE);
    await locks.acquire('key', SHARED);
    const outcome = outcomeOf(lock.upgrade({ wait: 'forever' }));
    await restart();
    expect(await outcome).toBeInstanceOf(LockLostError);
    expect(lock.isHeld).toBe(false);
  });

  it('waits for the end of the quarantine with a restart guard, and for readers that were forgotten', async () => {
    const guarded = { redis: server.url, ttl: '4s', restartGuard: { maxTtl: '4s' } } as const;
    const [locks, others] = [await open(guarded), await open(guarded)];
    const lock = await locks.acquire('key', { ...UPGRADEABLE, wait: LONG_WAIT });
    const reader = await others.acquire('key', { ...SHARED, wait: LONG_WAIT });
    await restart();
    const outcome = outcomeOf(lock.upgrade({ wait: LONG_WAIT }));
    // A new lock is granted when the quarantine is over.
    await (await others.acquire('another', { wait: LONG_WAIT })).release();
    expect([stateOf(lock), reader.isHeld]).toEqual([['upgradeable', true], true]);
    const before = reader.fencingToken;
    expect(await reader.release()).toBe(true);
    expect(await outcome).toBe('done');
    expect(stateOf(lock)).toEqual(['exclusive', true]);
    expect(lock.fencingToken).toBeGreaterThan(before);
  });
});

describe('an upgrade that replicas have to acknowledge', () => {
  let master: RedisServer;
  let replica: RedisServer;
  let locks: Locks;

  beforeEach(async () => {
    master = await RedisServer.start({ config: { 'repl-timeout': '600' } });
    ends.push(() => master.stop());
    replica = await RedisServer.start({ replicaOf: master });
    ends.push(() => replica.stop());
    locks = await open({
      redis: master.url,
      replicas: { ack: 1, timeout: 300 },
      nodeTimeout: 2_000,
    });
  });

  it('is taken back when they do not, and carried out when they do', async () => {
    const lock = await eventually(() => locks.tryAcquire('key', UPGRADEABLE), { withinMs: 15_000 });
    const others = await open({ redis: master.url });
    replica.freeze();
    const outcome = await outcomeOf(lock.upgrade({ wait: 0 }));
    expect(outcome).toBeInstanceOf(LockStoreUnavailableError);
    expect(outcome).toMatchObject({
      nodes: [{ kind: 'refused', message: expect.stringMatching(/acknowledged by 0 of the 1/) }],
    });
    expect(stateOf(lock)).toEqual(['upgradeable', true]);
    const reader = await eventually(() => others.tryAcquire('key', SHARED));
    replica.thaw();
    await reader.release();
    await lock.upgrade({ wait: LONG_WAIT });
    expect(stateOf(lock)).toEqual(['exclusive', true]);
    expect(await others.tryAcquire('key', SHARED)).toBeNull();
    expect(await replica.command('GET', 'lock:key')).toBe(await master.command('GET', 'lock:key'));
    expect(await lock.release()).toBe(true);
  });
});

describe('the change of a mode of keys in several slots of a Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  const keys = ['slot-a', 'slot-b'];

  beforeAll(async () => {
    cluster = await RedisCluster.start();
    client = new Cluster(cluster.startupNodes, { lazyConnect: true });
  }, 60_000);

  afterAll(async () => {
    client.disconnect();
    await cluster.stop();
  });

  it('is taken back for those that were upgraded, when readers of another one are not done in time', async () => {
    const [locks, others] = [await open({ redis: client }), await open({ redis: client })];
    const lock = await locks.acquire(keys, UPGRADEABLE);
    for (const busy of keys) {
      const reader = await others.acquire(busy, SHARED);
      await expect(lock.upgrade({ wait: 300 })).rejects.toThrow(LockNotAcquiredError);
      expect(stateOf(lock)).toEqual(['upgradeable', true]);
      for (const key of keys) {
        const joins = await eventually(() => others.tryAcquire(key, SHARED));
        await joins.release();
      }
      await reader.release();
    }
    await lock.upgrade({ wait: LONG_WAIT });
    for (const key of keys) expect(await others.tryAcquire(key, SHARED)).toBeNull();
    expect(await lock.release()).toBe(true);
    for (const key of keys) expect((await others.inspect(key)).held).toBe(false);
  });

  it('keeps the others where one of them is gone, which a renewal may put back', async () => {
    const { store } = await openStore({ redis: client });
    ends.push(() => store.close());
    const lease = request(keys, { token: newOwnerToken(systemRuntime) });
    const outcome = await store.acquire(lease);
    if (outcome.status !== 'granted') throw new Error(outcome.status);
    // They are asked for in this order.
    const [first = '', second = ''] = keys;
    await client.del(`lock:${second}`);
    const { token, ttlMs } = lease;
    const to = tokenIn('shared', token);
    const { fencingToken } = outcome;
    const downgrade = { keys, token, to, ttlMs, lastToken: fencingToken, phase: fencingToken };
    expect(await store.transfer!(downgrade)).toMatchObject({
      status: 'lost',
      reason: 'gone',
    });
    expect(await client.exists(`lock:${first}`)).toBe(1);
    await store.release({ ...lease, token: to });
  });
});
