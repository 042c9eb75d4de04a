import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster, Redis } from 'ioredis';
import {
  LockConfigurationError,
  LockService,
  LockStoreUnavailableError,
  type Lock,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { eventually } from '../../support/eventually.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

let ends: (() => unknown)[] = [];
let logged: string[] = [];

beforeEach(() => {
  logged = [];
  const log = (message: unknown): void => void logged.push(String(message));
  Logger.overrideLogger({ log, error: log, warn: log });
});

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
  Logger.overrideLogger(false);
});

async function start(): Promise<RedisServer> {
  const server = await RedisServer.start();
  ends.push(() => server.stop());
  return server;
}

async function open(options: LockModuleOptions): Promise<LockService> {
  const service = new LockService(options);
  ends.push(() => service.shutdown(0));
  await service.open();
  return service;
}

async function proxyOf(server: RedisServer): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(server.port);
  ends.push(() => proxy.stop());
  return proxy;
}

async function outageOf(promise: Promise<unknown>): Promise<LockStoreUnavailableError> {
  const error: unknown = await promise.then(
    (value) => value,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(LockStoreUnavailableError);
  return error as LockStoreUnavailableError;
}

describe('track record: names of our own', () => {
  const KEYS = ['epoch', 'health', 'probe'];

  it.each(['lock:', '{app}:', ''])(
    'HF-7 with the prefix "%s", a start and a health check leave the locks of "health", "probe" and "epoch" alone',
    async (keyPrefix) => {
      const server = await start();
      const restartGuard = { maxTtl: 60_000, bootstrap: true };
      const options = { redis: server.url, keyPrefix, restartGuard };
      const lock = await (await open(options)).acquire(KEYS, { ttl: '60s', autoExtend: false });
      const other = await open(options);
      expect(await other.health()).toMatchObject({ hasQuorum: true });
      for (const key of KEYS) {
        expect(await server.command('PTTL', keyPrefix + key)).toBeGreaterThan(30_000);
        expect(await other.tryAcquire(key)).toBeNull();
      }
      expect(await lock.release()).toBe(true);
    },
  );

  it('HF-7 on a Cluster, too', async () => {
    const cluster = await RedisCluster.start();
    ends.push(() => cluster.stop());
    const redis = new Cluster(cluster.startupNodes, { lazyConnect: true });
    const lock = await (await open({ redis })).acquire(KEYS, { ttl: '60s', autoExtend: false });
    const other = await open({ redis });
    expect(await other.health()).toMatchObject({ hasQuorum: true });
    for (const key of KEYS) expect(await other.tryAcquire(key)).toBeNull();
    expect(await lock.release()).toBe(true);
  }, 60_000);
});

describe('track record: the database that was asked for', () => {
  let server: RedisServer;

  beforeEach(async () => {
    server = await start();
  });

  /** With all rights that locks need, but not the one to select a database. */
  async function userWithoutSelect(): Promise<string> {
    await server.command('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-select');
    return `redis://app:secret@127.0.0.1:${String(server.port)}`;
  }

  const idsOf = async (user: string): Promise<string[]> => {
    const clients = String(await server.command('CLIENT', 'LIST')).split('\n');
    const own = clients.filter(
      (line) => line.includes(` name=holdfast `) && line.includes(` user=${user} `),
    );
    return own.flatMap((line) => /^id=(\d+)/.exec(line)?.[1] ?? []);
  };

  /** Cuts the connections of that user, and resolves when new ones are there for them. */
  async function reconnected(
    user: string,
    areThere = (now: readonly string[], before: readonly string[]) => now.length === before.length,
  ): Promise<void> {
    const before = await idsOf(user);
    expect(before).not.toEqual([]);
    for (const id of before) await server.command('CLIENT', 'KILL', 'ID', id);
    await eventually(async () => {
      const now = await idsOf(user);
      return areThere(now, before) && !now.some((id) => before.includes(id));
    });
  }

  const inDatabase = async (database: number, key: string): Promise<number> => {
    const client = new Redis(server.url, { db: database });
    try {
      return await client.exists(key);
    } finally {
      client.disconnect();
    }
  };

  it.each([
    ['a user who must not select', 5, 'app', /cannot use database 5: NOPERM.*\+select/s],
    [
      'a server that has no such one',
      99,
      'default',
      /cannot use database 99: ERR .*out of range.*has/s,
    ],
  ])('HF-1 is used or nothing is: %s', async (_why, database, user, reason) => {
    const root = user === 'app' ? await userWithoutSelect() : server.url;
    const locks = await open({ redis: `${root}/${String(database)}` });
    const refusals = async (): Promise<void> => {
      for (let call = 0; call < 3; call += 1) {
        for (const attempt of [
          locks.tryAcquire('key'),
          locks.acquire('key', { wait: '20s' }),
          locks.inspect('key'),
        ]) {
          const error = await outageOf(attempt);
          expect(error.getStatus()).toBe(503);
          expect(error.nodes).toMatchObject([{ kind: 'error' }]);
          expect(error.detail).toMatch(reason);
        }
        const { hasQuorum, nodes } = await locks.health();
        expect(hasQuorum).toBe(false);
        expect(nodes[0]?.problem).toMatch(reason);
      }
    };
    await refusals();
    for (let time = 0; time < 2; time += 1) {
      await reconnected(user);
      await refusals();
    }
    expect(await server.command('DBSIZE')).toBe(0);
    expect(logged.join('\n')).toMatch(reason);
    expect(logged.join('\n')).not.toMatch(/granted again|EVALSHA|secret/);
    expect(logged).toHaveLength(1);
  });

  it('HF-1 is used once the user may, and by those who may in the meantime', async () => {
    const locks = await open({ redis: `${await userWithoutSelect()}/5` });
    const allowed = await open({ redis: `${server.url}/5` });
    const held = await allowed.acquire('key', { ttl: '60s' });
    await outageOf(locks.tryAcquire('key'));
    await server.command('ACL', 'SETUSER', 'app', '+select');
    expect(await locks.tryAcquire('key')).toBeNull();
    const again = `Redis at 127.0.0.1:${String(server.port)} is usable again. Locks are granted again.`;
    await eventually(() => logged.at(-1) === again);
    await held.release();
    await (await locks.acquire('key')).release();
    expect(await server.command('DBSIZE')).toBe(0);
    expect(await inDatabase(5, '{lock:key}:fence')).toBe(1);
  });

  it('HF-1 is asked for again after each reconnect, before anything else', async () => {
    const redis = `${await userWithoutSelect()}/5`;
    await server.command('ACL', 'SETUSER', 'app', '+select');
    const locks = await open({ redis });
    const lock = await locks.acquire('key', { ttl: '60s', autoExtend: false });
    await server.command('ACL', 'SETUSER', 'app', '-select');
    await lock.extend(); // what was selected before stays so
    // The second one, which is refused, comes back only after a pause.
    await reconnected('app', (now) => now.length > 0);
    await outageOf(lock.extend());
    await outageOf(locks.tryAcquire('other'));
    expect(lock.isHeld).toBe(true);
    await server.command('ACL', 'SETUSER', 'app', '+select');
    // The next try to connect may come later than the time limit of one request.
    await eventually(async () => {
      await lock.extend();
      return true;
    });
    expect(await lock.release()).toBe(true);
    expect(await server.command('DBSIZE')).toBe(0);
  });

  it('HF-1 is waited for by requests that are made while the connection is new', async () => {
    const proxy = await proxyOf(server);
    await userWithoutSelect();
    await server.command('ACL', 'SETUSER', 'app', '+select');
    const locks = await open({ redis: `redis://app:secret@127.0.0.1:${String(proxy.port)}/5` });
    await locks.run('key', () => undefined);
    proxy.delay(3);
    await server.command('ACL', 'SETUSER', 'app', '-select');
    proxy.cut();
    const keys = Array.from({ length: 100 }, (_, index) => `key:${String(index)}`);
    await Promise.all(keys.map((key) => outageOf(locks.acquire(key, { wait: '1s' }))));
    await server.command('ACL', 'SETUSER', 'app', '+select');
    // A connection that was refused before is no reason to wait: callers who meet that answer fail at once.
    await eventually(() => locks.run('key', () => undefined), { withinMs: 20_000 });
    proxy.cut();
    await Promise.all(keys.map((key) => locks.run(key, { wait: '20s' }, () => key)));
    expect(await server.command('DBSIZE')).toBe(0);
  });

  it.each([
    ['a node in a URL', () => new Cluster(['redis://127.0.0.1:1/5'], { lazyConnect: true })],
    [
      'its options',
      () => new Cluster([{ port: 1 }], { lazyConnect: true, redisOptions: { db: 5 } }),
    ],
  ])('HF-1 of a Cluster is 0, and another one in %s is refused', (_where, cluster) => {
    expect(() => new LockService({ redis: cluster() })).toThrow(LockConfigurationError);
    expect(() => new LockService({ redis: cluster() })).toThrow(/database 5.*Cluster/s);
  });

  it('HF-1 has to be a number', () => {
    const client = new Redis({ db: NaN, lazyConnect: true });
    for (const redis of [
      'redis://127.0.0.1/first',
      { port: 1, db: 1.5 },
      { port: 1, db: -1 },
      client,
    ])
      expect(() => new LockService({ redis })).toThrow(/database/);
  });
});

const ONLY_DATABASE_7 = /^# Keyspace\s+db7:\S+\s*$/;

describe('track record: a client that has selected a database', () => {
  it.each([
    ['connected', {}],
    ['lazy', { lazyConnect: true }],
    ['of another database', { db: 3 }],
  ])('HF-2 is followed there when it is handed over: %s', async (_what, settings) => {
    const server = await start();
    const client = new Redis(server.url, settings);
    ends.push(() => client.disconnect());
    await client.select(7);
    const locks = await open({ redis: client });
    await client.select(0); // too late: locks do not move
    client.disconnect(); // not to be killed with those of the locks
    for (let time = 0; time < 2; time += 1) {
      const lock = await locks.acquire('key', { wait: '20s' });
      expect(await server.command('INFO', 'keyspace')).toMatch(ONLY_DATABASE_7);
      await lock.release();
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal');
    }
  });

  it('HF-2 is followed there while its own connection is broken', async () => {
    const server = await start();
    const proxy = await proxyOf(server);
    const client = new Redis(proxy.port, { retryStrategy: () => 10 });
    ends.push(() => client.disconnect());
    client.on('error', () => undefined);
    await client.select(7);
    proxy.refuse();
    proxy.cut();
    await eventually(() => client.status === 'connect' || client.status === 'reconnecting');
    const locks = await open({ redis: client, nodeTimeout: 100 });
    proxy.accept();
    await locks.acquire('key', { wait: '20s' });
    expect(await server.command('INFO', 'keyspace')).toMatch(ONLY_DATABASE_7);
  });
});

describe('track record: one server, one vote', () => {
  it('HF-16 a server that a second address leads to after a reconnect does not vote twice, not even once', async () => {
    const [first, second, third] = [await start(), await start(), await start()];
    const address = await proxyOf(second);
    const locks = await open({
      redis: [first.url, `redis://127.0.0.1:${String(address.port)}`, third.url],
      nodeTimeout: 500,
    });
    await third.kill();
    address.delay(5, 'to-client'); // the vote would arrive before the look at who votes
    const held = await locks.acquire('held', { ttl: '120s', wait: '20s', autoExtend: false });
    for (let round = 0; round < 3; round += 1) {
      address.leadTo(first.port);
      address.cut();
      const keys = Array.from(
        { length: 20 },
        (_, index) => `key:${String(round)}:${String(index)}`,
      );
      const outages = keys.map((key) => outageOf(locks.acquire(key, { wait: '1s' })));
      let isFound = false;
      const asking = (async () => {
        while (!isFound) {
          await outageOf(locks.tryAcquire('now and then'));
          await new Promise(setImmediate); // what is refused at once must not keep answers out
        }
      })();
      await eventually(async () => {
        const { nodes, hasQuorum } = await locks.health();
        expect(hasQuorum).toBe(false);
        expect(nodes[1]).toMatchObject({
          reachable: true,
          problem: expect.stringContaining('same server'),
        });
      });
      isFound = true;
      await Promise.all([...outages, asking]);
      await outageOf(held.extend());
      await outageOf(locks.inspect('held'));
      await outageOf(locks.tryAcquire('other'));

      address.leadTo(second.port);
      address.cut();
      await (await locks.acquire('again', { wait: '20s' })).release();
      await held.extend();
    }
  });

  it('HF-16 whoever reached it first keeps the vote, whatever their order in the list', async () => {
    const [first, second, third] = [await start(), await start(), await start()];
    const address = await proxyOf(first);
    const locks = await open({
      redis: [`redis://127.0.0.1:${String(address.port)}`, second.url, third.url],
    });
    address.leadTo(second.port);
    address.cut();
    await eventually(async () => {
      const { nodes, hasQuorum } = await locks.health();
      expect(nodes.map(({ problem }) => problem)).toEqual([
        `is the same server as 127.0.0.1:${String(second.port)}`,
        undefined,
        undefined,
      ]);
      expect(hasQuorum).toBe(true);
    });
    await (await locks.acquire('key')).release();
    await third.kill();
    await outageOf(locks.acquire('key', { wait: '300ms' }));
  });
});

describe('track record: a blocked event loop', () => {
  const BLOCK_MS = 1_200;
  const NODE_TIMEOUT_MS = 1_000;
  const NOBODY_WAKES = new Int32Array(new SharedArrayBuffer(4));

  /** As a long computation would, but leaves the processor to the server. */
  const block = (): unknown => Atomics.wait(NOBODY_WAKES, 0, 0, BLOCK_MS);

  const sent = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));

  const calls: [string, (locks: LockService, lock: Lock) => Promise<unknown>][] = [
    ['tryAcquire', (locks) => locks.tryAcquire('other')],
    ['run with wait 0', (locks) => locks.run('other', { wait: 0 }, () => 'ran')],
    ['inspect', (locks) => locks.inspect('key')],
    ['extend', (_, lock) => lock.extend()],
    ['release', (_, lock) => lock.release()],
    ['forceRelease', (locks) => locks.forceRelease('key')],
    ['runOnce', (locks) => locks.runOnce('once', { wait: 0 }, () => 'ran')],
    ['health', async (locks) => expect(await locks.health()).toMatchObject({ hasQuorum: true })],
  ];

  it.each(calls)(
    'HF-17 a blocked event loop is not reported as an outage: %s',
    async (_what, call) => {
      const server = await start();
      const locks = await open({ redis: server.url, nodeTimeout: NODE_TIMEOUT_MS });
      for (const until of [sent, () => undefined]) {
        const lock = await locks.acquire('key', { ttl: '60s', autoExtend: false });
        await server.command('SCRIPT', 'FLUSH'); // two answers are needed
        const calling = call(locks, lock);
        await until();
        block();
        await calling;
        await server.command('FLUSHALL');
      }
    },
  );

  it('HF-17 is no outage of three masters, nor of acknowledged writes', async () => {
    const [first, second, third] = [await start(), await start(), await start()];
    const replica = await RedisServer.start({ replicaOf: first });
    ends.push(() => replica.stop());
    const nodeTimeout = NODE_TIMEOUT_MS;
    for (const options of [
      { redis: [first.url, second.url, third.url], nodeTimeout },
      { redis: first.url, nodeTimeout, replicas: { ack: 1, timeout: 500 } },
    ]) {
      const locks = await open(options);
      for (const until of [sent, () => undefined]) {
        const acquiring = locks.acquire('key', { wait: 0, ttl: '60s' });
        await until();
        block();
        await (await acquiring).release();
      }
      await locks.shutdown(0);
    }
  });

  it('HF-17 is no outage while it connects, and begins to listen', async () => {
    const server = await start();
    const holder = await open({ redis: server.url });
    const held = await holder.acquire('key', { ttl: '60s', autoExtend: false });
    const locks = new LockService({ redis: `${server.url}/0`, nodeTimeout: NODE_TIMEOUT_MS });
    ends.push(() => locks.shutdown(0));
    const opening = locks.open();
    await sent();
    block();
    await opening;
    const waiting = locks.acquire('key', { wait: '20s' });
    const connected = async (): Promise<boolean> =>
      String(await server.command('CLIENT', 'LIST')).includes('sub=');
    await connected();
    block();
    await eventually(async () => (await server.command('EXISTS', '{lock:key}:queue')) === 1);
    await held.release();
    await (await waiting).release();
    expect(logged).toEqual([]);
  });

  it('HF-17 does not hide a server that is silent', async () => {
    const server = await start();
    const locks = await open({ redis: server.url, nodeTimeout: 400 });
    server.freeze();
    const since = performance.now();
    const failing = outageOf(locks.tryAcquire('key'));
    await sent();
    block();
    expect((await failing).nodes).toMatchObject([{ kind: 'timeout' }]);
    expect(performance.now() - since).toBeLessThan(BLOCK_MS + 3_000);
    server.thaw();
  });
});

describe('track record: an address that leads to another server', () => {
  it('HF-24 waiters are called after a planned fail-over that closes no connection', async () => {
    const [old, promoted] = [await start(), await start()];
    await promoted.command('REPLICAOF', '127.0.0.1', old.port);
    await eventually(async () =>
      String(await promoted.command('INFO', 'replication')).includes('master_link_status:up'),
    );
    const address = await proxyOf(old);
    const options = { redis: `redis://127.0.0.1:${String(address.port)}`, ttl: '60s' } as const;
    const [holder, waiter] = [await open(options), await open(options)];
    const handOverMs = async (server: RedisServer): Promise<number> => {
      const lock = await holder.acquire('key');
      const waiting = waiter.acquire('key', { wait: '30s' });
      await eventually(async () => (await server.command('ZCARD', '{lock:key}:queue')) === 1);
      const since = performance.now();
      await lock.release();
      await (await waiting).release();
      return performance.now() - since;
    };
    expect(await handOverMs(old)).toBeLessThan(2_000);

    address.leadTo(promoted.port);
    await promoted.command('REPLICAOF', 'NO', 'ONE');
    await old.command('REPLICAOF', '127.0.0.1', promoted.port);
    for (const locks of [holder, waiter]) {
      await eventually(() =>
        locks.acquire('another', { wait: 0 }).then(
          (lock) => lock.release(),
          () => false,
        ),
      );
    }
    expect(await handOverMs(promoted)).toBeLessThan(2_000);
  });
});
