import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { createCluster } from 'redis';
import {
  LockNotAcquiredError,
  LockService,
  LockStoreUnavailableError,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisSentinel } from '../support/redis-sentinel.js';
import { openStore, request } from './open-store.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/** Room for a busy machine; the option's default is for a network that is in order. */
const ACK_WITHIN_MS = 300;
const REPLICAS = { ack: 1, timeout: ACK_WITHIN_MS } as const;

let services: LockService[] = [];

beforeAll(() => {
  Logger.overrideLogger(false);
});

afterEach(async () => {
  await Promise.all(services.map((locks) => locks.shutdown(0)));
  services = [];
});

async function opened(options: LockModuleOptions): Promise<LockService> {
  const locks = new LockService({ ttl: '30s', ...options });
  services.push(locks);
  await locks.open();
  return locks;
}

const failureOf = async (request: Promise<unknown>): Promise<LockStoreUnavailableError> => {
  const result = await request.catch((error: unknown) => error);
  expect(result).toBeInstanceOf(LockStoreUnavailableError);
  return result as LockStoreUnavailableError;
};

const NOT_ACKNOWLEDGED = {
  kind: 'refused',
  message: `acknowledged by 0 of the 1 replicas that "replicas" asks for within ${String(ACK_WITHIN_MS)} ms`,
};

const storedAt = (server: RedisServer, key: string): Promise<unknown> =>
  server.command('GET', `lock:${key}`);

describe('a master with one replica', () => {
  let master: RedisServer;
  let replica: RedisServer;
  let wayToMaster: TcpProxy;
  let locks: LockService;
  /** The same without the option. */
  let control: LockService;

  beforeAll(async () => {
    master = await RedisServer.start({ config: { 'repl-timeout': '600' } });
    wayToMaster = await TcpProxy.start(master.port);
    replica = await RedisServer.start({ replicaOf: wayToMaster });
  }, 60_000);

  beforeEach(async () => {
    await master.command('FLUSHALL');
    locks = await opened({ redis: master.url, replicas: REPLICAS });
    control = await opened({ redis: master.url });
    await inStep();
  });

  afterEach(async () => {
    wayToMaster.delay(0);
    replica.thaw();
    if (!replica.isRunning) await replica.restart();
    await inStep();
  });

  afterAll(async () => {
    await replica.stop();
    await wayToMaster.stop();
    await master.stop();
  });

  /** The replica is there and has everything. */
  const inStep = (): Promise<unknown> =>
    eventually(
      async () => {
        await master.command('SET', 'step', String(Math.random()));
        expect(await master.command('GET', 'step')).toBe(await replica.command('GET', 'step'));
      },
      { withinMs: 20_000 },
    );

  it('has every lease on the replica when it is granted', async () => {
    wayToMaster.pause('to-client'); // a delay would be over before a busy machine has looked
    const unsafe = await control.acquire('unsafe');
    expect(await storedAt(replica, 'unsafe')).toBeNull();
    wayToMaster.resume('to-client');
    await unsafe.release();
    await inStep();

    wayToMaster.delay(50, 'to-client');
    for (const key of ['a', 'b', 'c']) {
      const lock = await locks.acquire(key);
      const stored = await storedAt(replica, key);
      expect(stored).toEqual(expect.any(String));
      expect(stored).toBe(await storedAt(master, key));
      expect(await replica.command('GET', `{lock:${key}}:fence`)).toBe(String(lock.fencingToken));
      await lock.release();
    }
  });

  it.each<[string, () => unknown]>([
    ['hangs', () => replica.freeze()],
    ['is gone', () => replica.kill()],
  ])('gives no lock when the replica %s, and keeps nothing of it', async (_what, fault) => {
    await fault();
    const { nodes } = await failureOf(locks.acquire('key', { wait: 0 }));
    expect(nodes).toEqual([{ node: `127.0.0.1:${String(master.port)}`, ...NOT_ACKNOWLEDGED }]);
    await eventually(async () => expect(await storedAt(master, 'key')).toBeNull());
    // Who does not ask for replicas goes on.
    await (await control.acquire('key', { wait: 0 })).release();
  });

  it('says that a lock is held, and not that replicas are missing, where both are so', async () => {
    const lock = await control.acquire('key');
    replica.freeze();
    await expect(locks.acquire('key', { wait: 0 })).rejects.toThrow(LockNotAcquiredError);
    await lock.release();
  });

  it('lets those who wait have the lock when the replica is back', async () => {
    replica.freeze();
    const waiting = locks.acquire('key', { wait: '25s' });
    await failureOf(locks.acquire('other', { wait: 0 }));
    replica.thaw();
    const lock = await waiting;
    expect(await storedAt(replica, 'key')).toBe(await storedAt(master, 'key'));
    await lock.release();
  });

  it('releases without the replica', async () => {
    const lock = await locks.acquire('key');
    replica.freeze();
    expect(await lock.release()).toBe(true);
    expect(await storedAt(master, 'key')).toBeNull();
  });

  it('loses a lease at its deadline whose renewals were not acknowledged', async () => {
    const ttl = 2_000;
    const safe = await locks.acquire('safe', { ttl });
    const unsafe = await control.acquire('unsafe', { ttl });
    const since = performance.now();
    replica.freeze();
    const { nodes } = await failureOf(safe.extend());
    expect(nodes).toMatchObject([NOT_ACKNOWLEDGED]);
    expect(safe.isHeld).toBe(true);
    const left = safe.remainingMs;
    expect(left).toBeLessThan(ttl - ACK_WITHIN_MS);

    if (!safe.signal.aborted) {
      await new Promise((resolve) => safe.signal.addEventListener('abort', resolve));
    }
    expect(safe.signal.reason).toMatchObject({ reason: 'store-unavailable' });
    expect(performance.now() - since).toBeLessThan(ttl + 1_000);
    expect(unsafe.isHeld).toBe(true);
    await unsafe.release();
  });

  it('keeps a lease whose renewal is acknowledged before its deadline', async () => {
    const lock = await locks.acquire('key', { ttl: 6_000, autoExtend: false });
    replica.freeze();
    await failureOf(lock.extend());
    const left = lock.remainingMs;
    replica.thaw();
    await eventually(() => lock.extend());
    expect(lock.remainingMs).toBeGreaterThan(left);
    expect(lock.isHeld).toBe(true);
    expect(await lock.release()).toBe(true);
  });

  it('asks the replicas once for what is written in the same moment', async () => {
    // Acknowledged in time also on a loaded machine: what is not is asked for again.
    const replicas = { ack: 1, timeout: '15s' } as const;
    const patient = await opened({ redis: master.url, nodeTimeout: '20s', replicas });
    await (await patient.acquire('warm')).release();
    const keys = Array.from({ length: 64 }, (_, index) => `key:${String(index)}`);
    let held: { release(): Promise<boolean> }[] = [];
    const sent = await master.commandsSentDuring(async () => {
      held = await Promise.all(keys.map((key) => patient.acquire(key)));
    });
    const count = (name: string): number => sent.filter(([each]) => each === name).length;
    expect(count('evalsha')).toBe(64);
    expect(count('wait')).toBeGreaterThan(0);
    expect(count('wait')).toBeLessThanOrEqual(16);
    await Promise.all(held.map((lock) => lock.release()));
  });

  it('does so while others are on their way, too, and mixes up nothing', async () => {
    wayToMaster.delay(20);
    const taken = await control.acquire('key:3');
    const results = await Promise.all(
      Array.from({ length: 24 }, async (_, index) => {
        await new Promise((resolve) => setTimeout(resolve, index * 4));
        return locks.tryAcquire(`key:${String(index)}`);
      }),
    );
    for (const [index, lock] of results.entries()) {
      const key = `key:${String(index)}`;
      if (index === 3) expect(lock).toBeNull();
      else {
        expect(lock?.keys).toEqual([key]);
        expect(await replica.command('GET', `{lock:${key}}:fence`)).toBe(
          String(lock?.fencingToken),
        );
      }
    }
    for (const lock of [taken, ...results]) await lock?.release();
  });

  it('is not waited for any shorter because somebody else asks with a short TTL', async () => {
    await (await locks.acquire('warm')).release();
    wayToMaster.delay(50);
    const [short, long] = await Promise.allSettled([
      locks.acquire('short', { ttl: 60, wait: 0 }),
      locks.acquire('long', { wait: 0 }),
    ]);
    expect([short.status, long.status]).toEqual(['rejected', 'fulfilled']);
  });

  it('keeps nobody waiting for longer than nodeTimeout when it hangs itself', async () => {
    const hasty = await opened({ redis: master.url, replicas: REPLICAS, nodeTimeout: 600 });
    master.freeze();
    try {
      const since = performance.now();
      const first = failureOf(hasty.acquire('first', { wait: 0 }));
      await new Promise((resolve) => setTimeout(resolve, 20));
      const second = failureOf(hasty.acquire('second', { wait: 0 }));
      await Promise.all([first, second]);
      expect(performance.now() - since).toBeLessThan(1_000);
    } finally {
      master.thaw();
    }
  });

  it('has what it wrote acknowledged although it had lost its scripts', async () => {
    wayToMaster.delay(50, 'to-client');
    await (await locks.acquire('warm')).release();
    await master.command('SCRIPT', 'FLUSH');
    const held = await Promise.all(['a', 'b', 'c'].map((key) => locks.acquire(key)));
    for (const key of ['a', 'b', 'c']) {
      const stored = await storedAt(replica, key);
      expect(stored).toEqual(expect.any(String));
      expect(stored).toBe(await storedAt(master, key));
    }
    await Promise.all(held.map((lock) => lock.release()));

    replica.freeze();
    await master.command('SCRIPT', 'FLUSH');
    const { nodes } = await failureOf(locks.acquire('key', { wait: 0 }));
    expect(nodes).toMatchObject([NOT_ACKNOWLEDGED]);
  });

  it('says how many replicas have a lease, when those are too few', async () => {
    const two = await opened({ redis: master.url, replicas: { ack: 2, timeout: '500ms' } });
    const { nodes } = await failureOf(two.acquire('key', { wait: 0 }));
    expect(nodes).toMatchObject([
      {
        message: 'acknowledged by 1 of the 2 replicas that "replicas" asks for within 500 ms',
      },
    ]);
  });
});

describe('a master that is made a replica while it lives', () => {
  const WAIT_MS = 1_500;

  /** How long somebody goes on waiting for a lock there. */
  async function waitedFor(options: LockModuleOptions): Promise<number> {
    const [master, other] = await Promise.all([RedisServer.start(), RedisServer.start()]);
    try {
      const locks = await opened({ ...options, redis: master.url });
      await master.command('REPLICAOF', '127.0.0.1', other.port);
      const since = performance.now();
      await failureOf(locks.acquire('key', { wait: WAIT_MS }));
      return performance.now() - since;
    } finally {
      await Promise.all(services.map((each) => each.shutdown(0)));
      services = [];
      await Promise.all([master.stop(), other.stop()]);
    }
  }

  it('is an outage that passes, without the option', async () => {
    expect(await waitedFor({})).toBeGreaterThan(WAIT_MS - 50);
  });

  it('is an outage that passes for renewals and releases, too', async () => {
    const master = await RedisServer.start();
    const { store } = await openStore({ redis: master.url });
    try {
      const leases = [request('one'), request('two')];
      for (const lease of leases) await store.acquire(lease);
      // Of nobody: it keeps its data, and takes no writes.
      await master.command('REPLICAOF', '127.0.0.1', 1);
      const outage = { status: 'unavailable', transient: true };
      expect(await store.extend(leases)).toMatchObject([outage, outage]);
      expect(await store.release(request(['one', 'two'], leases[0]))).toMatchObject(outage);
    } finally {
      await store.close();
      await master.stop();
    }
  });

  it('is an outage that passes, with the option', async () => {
    expect(await waitedFor({ replicas: REPLICAS })).toBeGreaterThan(WAIT_MS - 50);
  });
});

describe('an answer that comes too late', () => {
  it('that the script is unknown does not have it sent again, after its own clean-up', async () => {
    const master = await RedisServer.start();
    const replica = await RedisServer.start({ replicaOf: master });
    const way = await TcpProxy.start(master.port);
    try {
      const redis = `redis://127.0.0.1:${String(way.port)}`;
      const locks = await opened({ redis, replicas: REPLICAS, nodeTimeout: 400, ttl: '60s' });
      const sent = await master.commandsSentDuring(async () => {
        way.pause('to-client');
        await failureOf(locks.acquire('key', { wait: 0 }));
        way.resume('to-client');
        // Everything that was held has come through when this has.
        await eventually(() => locks.inspect('key'));
      });
      const evals = sent.filter(([name, lua]) => name === 'eval' && lua?.includes('holder_of'));
      expect(evals).toEqual([]);
    } finally {
      await Promise.all(services.map((each) => each.shutdown(0)));
      services = [];
      await way.stop();
      await Promise.all([replica.stop(), master.stop()]);
    }
  });
});

describe('a Cluster with a replica for each master', () => {
  let cluster: RedisCluster;
  let client: Cluster;

  beforeAll(async () => {
    cluster = await RedisCluster.start({ masters: 3, replicas: 3 });
    client = new Cluster(cluster.startupNodes, { lazyConnect: true });
  }, 90_000);

  afterAll(async () => {
    client.disconnect();
    await cluster.stop();
  });

  /** One key of each of the masters, in their order. */
  async function keysOfMasters(): Promise<readonly string[]> {
    const keys = new Map<number, string>();
    for (let number = 0; keys.size < 3; number += 1) {
      const key = `order:${String(number)}`;
      keys.set((await cluster.masterOf(`lock:${key}`)).port, key);
    }
    return cluster.nodes.slice(0, 3).map(({ port }) => String(keys.get(port)));
  }

  it('waits for the replica of the master that has the key, and for no other', async () => {
    const locks = await opened({ redis: client, replicas: REPLICAS });
    const [first, second, third] = (await keysOfMasters()) as [string, string, string];
    const all = await locks.acquire([first, second, third]);
    await all.extend();
    await all.release();

    const replica = cluster.nodes[4];
    replica?.freeze();
    try {
      await failureOf(locks.acquire(second, { wait: 0 }));
      await failureOf(locks.acquire([first, second, third], { wait: 0 }));
      await eventually(async () => expect((await locks.inspect(first)).held).toBe(false));
      await (await locks.acquire([first, third], { wait: 0 })).release();
    } finally {
      replica?.thaw();
    }
    await (await locks.acquire([first, second, third], { wait: '20s' })).release();
  });

  it('a request follows a slot to the master to which it has moved', async () => {
    const locks = await opened({ redis: client, replicas: REPLICAS });
    const [key] = (await keysOfMasters()) as [string];
    const [from, to] = cluster.nodes as [RedisServer, RedisServer];
    await (await locks.acquire(key, { wait: 0 })).release();
    const slot = Number(await from.command('CLUSTER', 'KEYSLOT', `lock:${key}`));
    await from.command('DEL', `{lock:${key}}:fence`, `{lock:${key}}:queue`);
    const id = String(await to.command('CLUSTER', 'MYID'));
    await to.command('CLUSTER', 'SETSLOT', slot, 'NODE', id);
    await from.command('CLUSTER', 'SETSLOT', slot, 'NODE', id);

    const lock = await locks.acquire(key, { wait: 0 });
    expect(await to.command('GET', `lock:${key}`)).toEqual(expect.any(String));
    await lock.extend();
    await lock.release();
  });

  it.each(['ioredis', 'node-redis'])(
    'runs guarded commands once although their slot moves: %s',
    async (library) => {
      const rootNodes = cluster.startupNodes.map((socket) => ({ socket }));
      const redis = library === 'ioredis' ? client : createCluster({ rootNodes });
      const locks = await opened({ redis, replicas: REPLICAS });
      const [key] = (await keysOfMasters()) as [string];
      const data = `{lock:${key}}:total`;
      const lock = await locks.acquire(key, { wait: 0 });
      const add = (count: number) => lock.guarded([['incrby', data, count]]);
      await add(1);
      await cluster.moveSlot(`lock:${key}`, 0, () => failureOf(add(10)));
      expect(await add(100)).toEqual([101]);
      expect(await lock.release()).toBe(true);
    },
  );

  it('goes on after a fail-over of which the old master stays as a replica', async () => {
    const locks = await opened({ redis: client, replicas: REPLICAS });
    const key = String((await keysOfMasters())[2]);
    const lock = await locks.acquire(key, { ttl: '60s' });
    const [old, promoted] = [cluster.nodes[2], cluster.nodes[5]] as [RedisServer, RedisServer];
    await promoted.command('CLUSTER', 'FAILOVER');
    await eventually(async () => {
      expect(await promoted.command('ROLE')).toContain('master');
      expect(await old.command('ROLE')).toContain('slave');
    });
    await eventually(() => lock.extend(), { withinMs: 10_000 });
    expect(await lock.release()).toBe(true);
    const waiting = await locks.acquire(key, { wait: '20s' });
    await waiting.release();
  });
});

describe('a fail-over of Sentinel right after a grant', () => {
  it('finds the lease on the new master', async () => {
    const group = await RedisSentinel.start();
    try {
      const redis = { sentinels: group.sentinels, name: group.name };
      const [holder, other] = await Promise.all([
        opened({ redis, replicas: REPLICAS, ttl: '90s' }),
        opened({ redis }),
      ]);
      const lock = await holder.acquire('key');
      await group.failOver();

      expect(await storedAt(group.master, 'key')).toEqual(expect.any(String));
      await eventually(async () => expect((await other.inspect('key')).held).toBe(true), {
        withinMs: 20_000,
      });
      expect(await other.tryAcquire('key')).toBeNull();
      // There has to be a replica again before a renewal counts.
      await failureOf(lock.extend());
      await group.rejoin();
      await eventually(() => lock.extend(), { withinMs: 30_000 });
      expect(lock.isHeld).toBe(true);
      expect(await lock.release()).toBe(true);
    } finally {
      await Promise.all(services.map((locks) => locks.shutdown(0)));
      services = [];
      await group.stop();
    }
  }, 120_000);
});
