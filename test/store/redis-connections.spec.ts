import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster, Redis } from 'ioredis';
import { LockService, LockStoreUnavailableError, type LockModuleOptions } from 'nestjs-holdfast';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { take } from '../../lib/store/redis/scripts/plain.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { expectNoOpenHandles } from '../support/no-leaks.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { openStore, heldMs } from './open-store.js';

beforeAll(() => {
  Logger.overrideLogger(false);
});

let services: LockService[] = [];
let clients: (Redis | Cluster)[] = [];

afterEach(async () => {
  await Promise.all(services.map((service) => service.shutdown(0)));
  for (const client of clients) client.disconnect();
  [services, clients] = [[], []];
});

async function open(options: LockModuleOptions): Promise<LockService> {
  const service = new LockService(options);
  services.push(service);
  await service.open();
  return service;
}

function owned<T extends Redis | Cluster>(client: T): T {
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

const ourConnections = async (server: RedisServer): Promise<number> =>
  String(await server.command('CLIENT', 'LIST')).match(/ name=holdfast /g)?.length ?? 0;

const failureOf = async (promise: Promise<unknown>): Promise<LockStoreUnavailableError> => {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(LockStoreUnavailableError);
  return error as LockStoreUnavailableError;
};

const ACQUIRES = new Set([acquireScript, take].flatMap(({ sha, lua }) => [sha, lua]));

/** Of the key that these tests lock: after a reconnect a trial key is acquired, too. */
const acquiresIn = (commands: readonly (readonly string[])[]): number =>
  commands.filter(([, first, , key]) => ACQUIRES.has(first ?? '') && key === 'lock:cut').length;

describe("the application's client", () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
  });

  beforeEach(async () => {
    await server.command('FLUSHALL');
  });

  afterAll(async () => {
    await server.stop();
  });

  it('is only asked for its address: it is not used, changed, listened to or closed', async () => {
    const client = owned(new Redis(server.url));
    await client.ping();
    const before = [Object.keys(client), client.eventNames(), { ...client.options }];

    const service = await open({ redis: client });
    const commands = await server.commandsSentDuring(async () => {
      await service.run('key', () => undefined);
      await client.echo('by the application');
    });
    await service.shutdown();

    expect(commands.filter(([name]) => name === 'echo')).toHaveLength(1);
    expect([Object.keys(client), client.eventNames(), { ...client.options }]).toEqual(before);
    expect('acquire' in client).toBe(false);
    expect(client.status).toBe('ready');
    expect(await client.ping()).toBe('PONG');
  });

  it('may be lazy: it is not connected by us, and we are', async () => {
    const client = owned(new Redis(server.url, { lazyConnect: true }));
    const service = await open({ redis: client });
    expect(await service.run('key', () => 'ran')).toBe('ran');
    expect(client.status).toBe('wait');
  });

  it('may be closed, in a transaction, or subscribed, and locks do not notice', async () => {
    const closed = owned(new Redis(server.url, { lazyConnect: true }));
    closed.disconnect();
    const busy = owned(new Redis(server.url));
    await busy.multi({ pipeline: false });
    const subscribed = owned(new Redis(server.url));
    await subscribed.subscribe('news');
    for (const client of [closed, busy, subscribed]) {
      const service = await open({ redis: client });
      expect(await service.run('key', () => 'ran')).toBe('ran');
    }
  });

  it.each([
    ['a client', () => owned(new Redis(server.url, { keyPrefix: 'app:', lazyConnect: true }))],
    ['options', () => ({ host: '127.0.0.1', port: server.port, keyPrefix: 'app:' })],
    ['a URL', () => `${server.url}?keyPrefix=app:`],
  ])('brings its keyPrefix, which stands before ours, as %s', async (_as, redis) => {
    const [holder, waiter] = [await open({ redis: redis() }), await open({ redis: redis() })];
    const lock = await holder.acquire('key', { ttl: '60s', autoExtend: false });
    expect(await server.command('EXISTS', 'app:lock:key')).toBe(1);

    const waiting = waiter.acquire('key', { wait: '25s' });
    await eventually(async () => (await server.command('EXISTS', '{app:lock:key}:queue')) === 1);
    await lock.release();
    expect((await waiting).isHeld).toBe(true);
  });

  it.each([
    ['commandTimeout', { commandTimeout: 1 }],
    ['stringNumbers', { stringNumbers: true }],
    ['no offline queue', { enableOfflineQueue: false }],
    ['automatic pipelines', { enableAutoPipelining: true }],
    ['RESP2', { protocol: 2 as const }],
    ['RESP3 with its own shapes', { protocol: 3 as const, replyMapping: 'resp3' as const }],
  ])('may have settings that would spoil locks: %s', async (_name, settings) => {
    const client = owned(new Redis(server.url, { ...settings, lazyConnect: true }));
    const [holder, waiter] = [await open({ redis: client }), await open({ redis: client })];
    const lock = await holder.acquire(['a', 'b']);
    await lock.extend();
    expect(await waiter.inspect('a')).toMatchObject({ held: true });
    const waiting = waiter.acquire('b', { wait: '25s' });
    await eventually(async () => (await server.command('EXISTS', '{lock:b}:queue')) === 1);
    expect(await lock.release()).toBe(true);
    expect((await waiting).isHeld).toBe(true);
  });
});

describe('our connections', () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
  });

  afterAll(async () => {
    await server.stop();
  });

  it('are one for commands and one for messages, whether anybody waits or not', async () => {
    const service = await open({ redis: server.url });
    await eventually(async () => (await ourConnections(server)) === 2);
    await service.shutdown();
    await eventually(async () => (await ourConnections(server)) === 0);
  });

  it('without "instance" are one for commands, and one more from the first wait on, and none after the shutdown', async () => {
    const holder = new Redis(server.url);
    try {
      for (const key of ['a', 'b', 'c']) await holder.set(`lock:${key}`, 'somebody', 'PX', 60_000);
      const service = await open({ redis: server.url, instance: false });
      expect(await ourConnections(server)).toBe(1);
      expect(await service.tryAcquire('a')).toBeNull();
      expect(await ourConnections(server)).toBe(1);

      const abort = new AbortController();
      const waits = ['a', 'b', 'c', 'a'].map((key) =>
        service.acquire(key, { wait: '25s', signal: abort.signal }),
      );
      const ended = Promise.allSettled(waits);
      for (const key of ['a', 'b', 'c'])
        await eventually(async () => (await holder.exists(`{lock:${key}}:queue`)) === 1);
      expect(await ourConnections(server)).toBe(2);
      abort.abort();
      await ended;
      await service.shutdown();
      await eventually(async () => (await ourConnections(server)) === 0);
    } finally {
      await holder.flushall();
      holder.disconnect();
    }
  });

  it('hear nothing of another deployment: inboxes have random names', async () => {
    const [one, other] = [
      await openStore({ redis: server.url }),
      await openStore({ redis: server.url }),
    ];
    try {
      await one.store.listen(() => undefined);
      await other.store.listen(() => undefined);
      const channels = (await server.command('PUBSUB', 'CHANNELS', 'holdfast:*')) as string[];
      expect(new Set(channels).size).toBe(2);
      for (const channel of channels) expect(channel).toMatch(/^holdfast:[\w-]{32,}$/);
    } finally {
      await one.store.close();
      await other.store.close();
    }
  });

  it.each([
    [
      'a client',
      (url: string) => owned(new Redis(url, { retryStrategy: () => null, lazyConnect: true })),
    ],
    ['options', (url: string) => ({ port: Number(new URL(url).port), retryStrategy: () => null })],
  ])('come back after a restart, even where %s never reconnects', async (_as, location) => {
    const mortal = await RedisServer.start();
    try {
      const service = await open({ redis: location(mortal.url) });
      expect(await service.run('key', () => 1)).toBe(1);
      await mortal.restart();
      expect(await service.run('key', { wait: '20s' }, () => 2)).toBe(2);
    } finally {
      await mortal.stop();
    }
  });

  it('may be opened before the server is there', async () => {
    const port = await freePort();
    const service = await open({ redis: `redis://127.0.0.1:${String(port)}` });
    const failure = await failureOf(service.tryAcquire('key'));
    expect(failure.nodes).toEqual([
      expect.objectContaining({ node: `127.0.0.1:${String(port)}`, kind: 'connection' }),
    ]);
    const late = await RedisServer.start({ port });
    try {
      expect(await service.run('key', { wait: '20s' }, () => 'ran')).toBe('ran');
    } finally {
      await late.stop();
    }
  });
});

describe('a connection that breaks', () => {
  let server: RedisServer;
  let proxy: TcpProxy;
  let service: LockService;

  beforeAll(async () => {
    server = await RedisServer.start();
  });

  beforeEach(async () => {
    proxy = await TcpProxy.start(server.port);
    service = await open({ redis: `redis://127.0.0.1:${String(proxy.port)}` });
    await service.run('warm-up', () => undefined);
  });

  afterEach(async () => {
    await Promise.all(services.map((each) => each.shutdown(0)));
    await proxy.stop();
  });

  afterAll(async () => {
    await server.stop();
  });

  it('an acquire whose connection breaks before the reply is unavailable; it is not sent again, and its keys are released', async () => {
    const commands = await server.commandsSentDuring(async () => {
      proxy.pause('to-client');
      const failing = failureOf(service.tryAcquire('cut', { ttl: '60s' }));
      await eventually(async () => (await server.command('EXISTS', 'lock:cut')) === 1);
      proxy.cut();
      proxy.resume();
      const { nodes } = await failing;
      expect(nodes[0]).toMatchObject({ kind: 'connection' });
      await eventually(async () => (await server.command('EXISTS', 'lock:cut')) === 0);
    });
    expect(acquiresIn(commands)).toBe(1);
    expect(await service.run('cut', { wait: '20s' }, () => 'free')).toBe('free');
  });

  it('and is back within the time limit costs nobody a release, an extension or a look; an acquire fails at once', async () => {
    const patient = await open({
      redis: `redis://127.0.0.1:${String(proxy.port)}`,
      nodeTimeout: '10s',
    });
    const [released, extended] = await Promise.all(
      ['released', 'extended'].map((key) => patient.acquire(key, { autoExtend: false })),
    );
    const forced = await service.acquire('forced', { autoExtend: false });
    proxy.refuse();
    proxy.cut();
    await eventually(async () => (await failureOf(patient.tryAcquire('other'))).nodes.length > 0);
    const asked = Promise.all([
      released?.release(),
      extended?.extend().then(() => 'extended'),
      patient.inspect('extended'),
      patient.forceRelease('forced'),
    ]);
    const since = performance.now();
    const { nodes } = await failureOf(patient.tryAcquire('other'));
    expect(nodes[0]).toMatchObject({ kind: 'connection' });
    expect(performance.now() - since).toBeLessThan(5_000);
    proxy.accept();
    expect(await asked).toEqual([
      true,
      'extended',
      { held: true, remainingMs: expect.any(Number) },
      true,
    ]);
    expect(await server.command('EXISTS', 'lock:released', 'lock:forced')).toBe(0);
    await Promise.all([extended?.release(), forced.release()]);
  });

  it('and stays away makes a release fail within its time limit', async () => {
    const lock = await service.acquire('cut', { autoExtend: false });
    proxy.refuse();
    proxy.cut();
    const since = performance.now();
    await expect(lock.release()).rejects.toThrow(LockStoreUnavailableError);
    expect(performance.now() - since).toBeLessThan(1_000 + 900);
    proxy.accept();
  });

  it('a connection that breaks between a release and its reply causes no loss: only the holder could have released it', async () => {
    const lock = await service.acquire('cut', { ttl: '60s' });
    proxy.pause('to-client');
    const releasing = lock.release();
    await eventually(async () => (await server.command('EXISTS', 'lock:cut')) === 0);
    proxy.cut();
    proxy.resume();
    expect(await releasing).toBe(true);
  });

  it('a connection that breaks between a renewal and its reply leaves the lock held', async () => {
    const lock = await service.acquire('renewed', { ttl: '60s', autoExtend: false });
    await lock.extend('50s'); // the server has the script from here on
    proxy.pause('to-client');
    const failing = failureOf(lock.extend('90s'));
    await eventually(async () => Number(await server.command('PTTL', 'lock:renewed')) > 60_000);
    proxy.cut();
    proxy.resume();
    await failing;
    expect(lock.isHeld).toBe(true);
    expect(await lock.release()).toBe(true);
  });

  it('is answered for at once, not after the time limit', async () => {
    const patient = await open({
      redis: `redis://127.0.0.1:${String(proxy.port)}`,
      nodeTimeout: '60s',
    });
    await patient.run('warm-up', () => undefined);
    proxy.pause('to-client');
    const failing = failureOf(patient.tryAcquire('at-once', { ttl: '90s' }));
    await eventually(async () => (await server.command('EXISTS', 'lock:at-once')) === 1);
    proxy.cut();
    proxy.resume();
    await failing;
    await eventually(async () => (await server.command('EXISTS', 'lock:at-once')) === 0);
  });

  it('is answered for when the service shuts down before it is back', async () => {
    const patient = await open({
      redis: `redis://127.0.0.1:${String(proxy.port)}`,
      nodeTimeout: '60s',
    });
    const lock = await patient.acquire('left', { ttl: '90s' });
    proxy.refuse();
    proxy.cut();
    await failureOf(patient.tryAcquire('other', { ttl: '90s' }));
    const waiting = [
      patient.inspect('left'),
      patient.getLeader('left'),
      patient.limiter('limited', { limit: 2 }).setLimit(3),
      lock.release(),
    ].map(failureOf);
    await patient.shutdown(0);
    await Promise.all(waiting);
  });

  it('or falls silent is given up after some seconds, and a new one opened', async () => {
    proxy.dropSilently();
    const failure = await failureOf(service.tryAcquire('silent', { ttl: '60s' }));
    expect(failure.nodes[0]).toMatchObject({ kind: 'timeout' });
    expect(await service.run('silent', { wait: '25s' }, () => 'ran')).toBe('ran');
  });

  it('does not keep waiting callers from asking again when the subscriber cannot be opened, and only the outage is logged', async () => {
    const { store, warnings } = await openStore({
      redis: `redis://127.0.0.1:${String(proxy.port)}`,
      nodeTimeoutMs: 200,
    });
    proxy.pause();
    expect(await store.listen(() => undefined)).toBe('polling');
    proxy.resume();
    await eventually(async () => (await store.listen(() => undefined)) === 'listening');
    expect(warnings.join('\n')).not.toContain('Cannot be notified of releases');
    await store.close();
  });

  it('of the subscriber makes everybody who waits look again', async () => {
    const holder = await open({ redis: server.url });
    await holder.acquire('key', { ttl: '60s', autoExtend: false });
    const waiting = service.acquire('key', { wait: '25s' });
    await eventually(async () => (await server.command('EXISTS', '{lock:key}:queue')) === 1);
    proxy.cut();
    await server.command('DEL', 'lock:key'); // nobody is told of this one
    expect((await waiting).isHeld).toBe(true);
  });
});

describe('a connection to a Cluster', () => {
  let cluster: RedisCluster;
  let proxies: TcpProxy[];

  beforeAll(async () => {
    cluster = await RedisCluster.start({ masters: 2 });
    proxies = await Promise.all(cluster.nodes.map(({ port }) => TcpProxy.start(port)));
  }, 60_000);

  afterAll(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    await cluster.stop();
  });

  const everyProxy = (...actions: ('pause' | 'cut' | 'resume' | 'refuse' | 'accept')[]): void => {
    for (const action of actions) {
      for (const proxy of proxies) {
        if (action === 'pause') proxy.pause('to-client');
        else proxy[action]();
      }
    }
  };

  const throughProxies = (settings: ConstructorParameters<typeof Cluster>[1] = {}): Cluster => {
    const natMap = Object.fromEntries(
      cluster.nodes.map(({ port }, index) => [
        `127.0.0.1:${String(port)}`,
        { host: '127.0.0.1', port: Number(proxies[index]?.port) },
      ]),
    );
    const startupNodes = Object.values(natMap);
    return owned(new Cluster(startupNodes, { lazyConnect: true, natMap, ...settings }));
  };

  it('HF-55 that is slow grants a lock of many keys, whose slots are asked one after the other', async () => {
    const service = await open({ redis: throughProxies(), nodeTimeout: '20s' });
    const keys = Array.from({ length: 500 }, (_, index) => `many:${String(index)}`);
    for (const proxy of proxies) proxy.delay(3);
    try {
      const lock = await service.acquire(keys, { wait: 0, ttl: '1m' });
      expect(lock.isHeld).toBe(true);
      await lock.release();
    } finally {
      for (const proxy of proxies) proxy.delay(0);
    }
  }, 60_000);

  it('that breaks sends no command twice, and release is no loss', async () => {
    const server = await cluster.masterOf('lock:cut');
    // However long it takes to connect again.
    const service = await open({ redis: throughProxies(), nodeTimeout: '20s' });
    await service.run('cut', () => undefined);
    const commands = await server.commandsSentDuring(async () => {
      everyProxy('pause');
      const failing = failureOf(service.tryAcquire('cut', { ttl: '60s' }));
      await eventually(async () => (await server.command('EXISTS', 'lock:cut')) === 1);
      everyProxy('cut', 'resume');
      await failing;
      await eventually(async () => (await server.command('EXISTS', 'lock:cut')) === 0);
    });
    expect(acquiresIn(commands)).toBe(1);

    const lock = await service.acquire('cut', { ttl: '60s', wait: '20s' });
    everyProxy('pause');
    const releasing = lock.release();
    await eventually(async () => (await server.command('EXISTS', 'lock:cut')) === 0);
    // Only this one: the release is sent once more, and the connection that it is sent over must not be cut a little later.
    proxies[cluster.nodes.findIndex(({ port }) => port === server.port)]?.cut();
    everyProxy('resume');
    expect(await releasing).toBe(true);
  });

  it('comes back, and reads numbers as numbers, whatever the settings of the given one', async () => {
    const client = throughProxies({
      clusterRetryStrategy: () => null,
      keyPrefix: 'app:',
      scaleReads: 'slave',
      shardedSubscribers: true,
      redisOptions: { stringNumbers: true, commandTimeout: 1 },
    });
    const server = await cluster.masterOf('app:lock:key');
    const [service, waiter] = [await open({ redis: client }), await open({ redis: client })];
    const lock = await service.acquire('key', { ttl: '60s' });
    expect(await server.command('EXISTS', 'app:lock:key')).toBe(1);
    await lock.extend();
    const waiting = waiter.acquire('key', { wait: '25s' });
    await eventually(async () => (await server.command('EXISTS', '{app:lock:key}:queue')) === 1);
    await lock.release();
    await (await waiting).release();
    expect(client.status).toBe('wait');

    everyProxy('refuse', 'cut');
    await failureOf(service.tryAcquire('key'));
    everyProxy('accept');
    expect(await service.run('key', { wait: '20s' }, () => 'ran')).toBe('ran');
  });
});

describe('close', () => {
  let server: RedisServer;
  let proxy: TcpProxy;
  let closedPort: number;

  beforeAll(async () => {
    server = await RedisServer.start();
    proxy = await TcpProxy.start(server.port);
    closedPort = await freePort();
  });

  afterAll(async () => {
    await proxy.stop();
    await server.stop();
  });

  const unreachable = (): { host: string; port: number } => ({
    host: '127.0.0.1',
    port: closedPort,
  });

  it.each([
    ['a server that is not there', () => unreachable()],
    ['Sentinels that are not there', () => ({ sentinels: [unreachable()], name: 'group' })],
    [
      'a Cluster that is not there',
      () => owned(new Cluster([unreachable()], { lazyConnect: true })),
    ],
  ])('while connecting to %s leaves no timer and no socket', async (_what, location) => {
    await expectNoOpenHandles(async () => {
      const redis = location();
      const atOnce = new LockService({ redis });
      const opening = atOnce.open();
      await atOnce.shutdown();
      await opening;
      const later = new LockService({ redis, nodeTimeout: 200 });
      await later.open();
      await failureOf(later.tryAcquire('key'));
      await later.shutdown();
    });
  });

  it('while the server is silent leaves no timer and no socket', async () => {
    await expectNoOpenHandles(async () => {
      proxy.pause();
      const { store } = await openStore({
        redis: `redis://127.0.0.1:${String(proxy.port)}`,
        nodeTimeoutMs: 100,
      });
      const listening = store.listen(() => undefined);
      await store.close();
      expect(await listening).toBe('polling');
      proxy.resume();
    });
  });

  it('after use leaves no timer and no socket, also when it is called twice', async () => {
    await expectNoOpenHandles(async () => {
      const { store } = await openStore({ redis: server.url });
      expect(await store.listen(() => undefined)).toBe('listening');
      await store.close();
      await store.close();
      await expect(heldMs(store, 'key')).rejects.toThrow(LockStoreUnavailableError);
    });
  });
});
