import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { GlideClient, GlideClusterClient, Logger as GlideLogger } from '@valkey/valkey-glide';
import { LockService, LockStoreUnavailableError, type LockModuleOptions } from 'nestjs-holdfast';
import { plainReply, serverReply } from '../../lib/store/redis/client/glide/glide-replies.js';
import { configurationOf } from '../../lib/store/redis/client/glide/glide-shape.js';
import { isReply } from '../../lib/store/redis/client/reply-errors.js';
import { redisSource } from '../../lib/store/redis/client/redis-location.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { take } from '../../lib/store/redis/scripts/plain.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { AUTHORITY } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { watchHandles } from '../support/no-leaks.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { tlsProxy } from '../support/tls-proxy.js';

/** Backwards, so that what uses a server ends before it. */
let closings: (() => unknown)[] = [];

beforeAll(() => {
  Logger.overrideLogger(false);
  GlideLogger.init('off');
});

afterEach(async () => {
  for (const close of closings.reverse()) await close();
  closings = [];
});

async function open(options: LockModuleOptions): Promise<LockService> {
  const service = new LockService(options);
  closings.push(() => service.shutdown(0));
  await service.open();
  return service;
}

const outageOf = async (promise: Promise<unknown>): Promise<LockStoreUnavailableError> => {
  const error: unknown = await promise.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockStoreUnavailableError);
  return error as LockStoreUnavailableError;
};

const ourConnections = async (server: RedisServer): Promise<number> =>
  String(await server.command('CLIENT', 'LIST')).match(/ name=holdfast /g)?.length ?? 0;

const pipes = (): number =>
  process.getActiveResourcesInfo().filter((each) => each === 'PipeWrap').length;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const ACQUIRES = new Set([acquireScript, take].flatMap(({ sha, lua }) => [sha, lua]));

type Configuration = Parameters<typeof GlideClient.createClient>[0];

/** The application's client. It need not connect: only its configuration is read. */
async function clientAt(port: number, options: Partial<Configuration> = {}) {
  const client = await GlideClient.createClient({
    addresses: [{ host: '127.0.0.1', port }],
    lazyConnect: true,
    ...options,
  });
  closings.push(() => {
    client.close();
  });
  return client;
}

const ignore = (): void => undefined;

/** A client of the port, as it is. */
async function connected(port: number, events: { onClose?: () => void } = {}) {
  const source = redisSource(await clientAt(port), systemRuntime);
  const client = source.connect({
    ...{ onConnect: ignore, onReady: ignore, onError: ignore },
    ...{ onClose: ignore, onEnd: ignore, onSlots: ignore, ...events },
  });
  closings.push(() => {
    client.disconnect();
  });
  client.connect();
  await eventually(() => client.state === 'ready');
  return client;
}

async function proxyTo(port: number): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(port);
  closings.push(() => proxy.stop());
  return proxy;
}

describe('locks over a client of valkey-glide', () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
  });

  afterAll(async () => {
    await server.stop();
  });

  it('are granted, renewed, released, and passed on in order over processes', async () => {
    const one = await open({ redis: await clientAt(server.port) });
    const other = await open({ redis: await clientAt(server.port) });
    const lock = await one.acquire(['a', 'b']);
    await lock.extend();
    expect(await other.inspect('a')).toMatchObject({ held: true });
    const order: string[] = [];
    const waits: Promise<void>[] = [];
    for (const [name, service] of [
      ['other', other],
      ['one', one],
    ] as const) {
      waits.push(
        service.run('b', { wait: '25s' }, () => {
          order.push(name);
        }),
      );
      await eventually(async () => {
        expect(await server.command('ZCARD', '{lock:b}:queue')).toBe(waits.length);
      });
    }
    const since = performance.now();
    expect(await lock.release()).toBe(true);
    await Promise.all(waits);
    expect(order).toEqual(['other', 'one']);
    expect(performance.now() - since).toBeLessThan(400); // by messages: callers poll every 500 ms
  });

  it('leave the client of the application alone, whatever it does', async () => {
    const messages: unknown[] = [];
    const subscribed = await clientAt(server.port, {
      lazyConnect: false,
      pubsubSubscriptions: {
        channelsAndPatterns: { 0: new Set(['news']) },
        callback: (message) => messages.push(message),
      },
      ...{ inflightRequestsLimit: 1, readFrom: 'preferReplica', clientName: 'application' },
    });
    const closed = await clientAt(server.port);
    closed.close();
    const own = Object.getOwnPropertyNames(subscribed);
    for (const redis of [subscribed, closed])
      expect(await (await open({ redis })).run('key', () => 'ran')).toBe('ran');
    expect(Object.getOwnPropertyNames(subscribed)).toEqual(own);
    expect(await subscribed.ping()).toBe('PONG');
    expect(await subscribed.customCommand(['client', 'getname'])).toBe('application');
    await server.command('PUBLISH', 'news', 'x');
    await eventually(() => messages.length === 1);
    expect(await server.command('PUBSUB', 'NUMSUB', 'news')).toEqual(['news', 1]);
  });

  it('have two connections, and nothing after the shutdown', async () => {
    const redis = await clientAt(server.port);
    await eventually(async () => (await ourConnections(server)) === 0);
    const before = pipes();
    const watch = watchHandles();
    const service = await open({ redis });
    await service.run('key', () => undefined);
    await eventually(async () => (await ourConnections(server)) === 2);
    await service.shutdown();
    await eventually(async () => (await ourConnections(server)) === 0);
    await eventually(() => pipes() <= before);
    await watch.expectNoneOpen();
  });

  it('are in the database of the configuration', async () => {
    const service = await open({ redis: await clientAt(server.port, { databaseId: 3 }) });
    const lock = await service.acquire('db');
    expect(await server.command('EXISTS', 'lock:db')).toBe(0);
    expect(String(await server.command('INFO', 'keyspace'))).toContain('db3');
    await lock.release();
  });

  it('are refused a database that the server does not have, for good', async () => {
    const service = await open({ redis: await clientAt(server.port, { databaseId: 99 }) });
    const { nodes } = await outageOf(service.acquire('key'));
    expect(nodes[0]?.message).toContain('cannot use database 99');
  });

  it('do without the rights to name a connection', async () => {
    const rights = ['on', '>secret-of-user', '~*', '&*', '+@all', '-client'];
    await server.command('ACL', 'SETUSER', 'narrow', ...rights);
    const credentials = { username: 'narrow', password: 'secret-of-user' };
    const service = await open({ redis: await clientAt(server.port, { credentials }) });
    expect(await service.run('key', () => 'ran')).toBe('ran');
  });

  it('say when the password is wrong, without it', async () => {
    const credentials = { username: 'nobody', password: 'the-wrong-one' };
    const service = await open({ redis: await clientAt(server.port, { credentials }) });
    const { nodes } = await outageOf(service.acquire('key', { wait: '10s' }));
    expect(nodes[0]).toMatchObject({ message: expect.stringContaining('WRONGPASS') });
    expect(JSON.stringify(nodes)).not.toContain('the-wrong-one');
  });

  it('log in with what the option "credentials" returns at each connection', async () => {
    let password = 'first-password';
    const rights = ['on', 'resetpass', '~*', '&*', '+@all'];
    const allow = () => server.command('ACL', 'SETUSER', 'locks', ...rights, `>${password}`);
    await allow();
    const credentials = () => ({ username: 'locks', password });
    const service = await open({ redis: await clientAt(server.port), credentials });
    expect(await service.run('key', () => 1)).toBe(1);
    password = 'second-password';
    await allow();
    await server.command('CLIENT', 'KILL', 'USER', 'locks');
    expect(await service.run('key', { wait: '20s' }, () => 2)).toBe(2);
  });

  it('are kept over TLS', async () => {
    const proxy = await tlsProxy(server.port);
    closings.push(proxy.stop);
    const trust = { tlsAdvancedConfiguration: { rootCertificates: AUTHORITY } };
    const untrusting = await open({ redis: await clientAt(proxy.port, { useTLS: true }) });
    await outageOf(untrusting.tryAcquire('key'));
    const redis = await clientAt(proxy.port, { useTLS: true, advancedConfiguration: trust });
    const service = await open({ redis });
    expect(await service.run('key', () => 'ran')).toBe('ran');
  });

  it('may be opened before the server is there', async () => {
    const port = await freePort();
    const service = await open({ redis: await clientAt(port) });
    const failure = await outageOf(service.tryAcquire('key'));
    expect(failure.nodes).toEqual([
      expect.objectContaining({
        node: `127.0.0.1:${String(port)}`,
        kind: 'connection',
        message: expect.stringContaining('ECONNREFUSED'),
      }),
    ]);
    const late = await RedisServer.start({ port });
    closings.push(() => late.stop());
    expect(await service.run('key', { wait: '20s' }, () => 'ran')).toBe('ran');
  });

  it('come back after a restart, and are passed on by messages', async () => {
    const mortal = await RedisServer.start();
    closings.push(() => mortal.stop());
    const one = await open({ redis: await clientAt(mortal.port) });
    const other = await open({ redis: await clientAt(mortal.port) });
    expect(await one.run('key', () => 1)).toBe(1);
    await mortal.restart();
    const lock = await one.acquire('key', { wait: '20s' });
    await eventually(async () => {
      expect(await ourConnections(mortal)).toBe(4);
    });
    const waiting = other.acquire('key', { wait: '20s' });
    await eventually(async () => {
      expect(await mortal.command('ZCARD', '{lock:key}:queue')).toBe(1);
    });
    const since = performance.now();
    await lock.release();
    await (await waiting).release();
    expect(performance.now() - since).toBeLessThan(400);
  });

  it('do not send a request again whose connection broke before the answer', async () => {
    const proxy = await proxyTo(server.port);
    const service = await open({ redis: await clientAt(proxy.port) });
    await service.run('warm', () => undefined);
    const commands = await server.commandsSentDuring(async () => {
      const sent = proxy.whenClientSends('lock:cut');
      proxy.pause('to-client');
      const failure = outageOf(service.tryAcquire('cut'));
      await sent;
      await sleep(50);
      proxy.cut();
      proxy.resume();
      expect((await failure).nodes[0]?.message).toContain('connection closed before the answer');
      await service.run('later', { wait: '20s' }, () => undefined);
    });
    const acquires = commands.filter(
      ([, first, , key]) => ACQUIRES.has(first ?? '') && key === 'lock:cut',
    );
    expect(acquires).toHaveLength(1);
  });

  it('do not send late what was asked for while the server was away', async () => {
    const proxy = await proxyTo(server.port);
    let closes = 0;
    const client = await connected(proxy.port, {
      onClose: () => {
        closes += 1;
      },
    });
    proxy.refuse();
    proxy.cut(); // with nothing under way: GLIDE tells nobody
    await sleep(100);
    const since = performance.now();
    await expect(client.command('incr', 'away')).rejects.toThrow('connection closed');
    expect(performance.now() - since).toBeLessThan(1_000);
    expect(closes).toBeGreaterThan(0);
    proxy.accept();
    await eventually(() => client.state === 'ready');
    await client.command('incr', 'back');
    await sleep(1_000);
    expect(await server.command('GET', 'away')).toBeNull();
  });

  it('leave a connection that is silent', async () => {
    const proxy = await proxyTo(server.port);
    const service = await open({ redis: await clientAt(proxy.port), nodeTimeout: '500ms' });
    await service.run('key', () => undefined);
    proxy.dropSilently();
    expect(await service.run('key', { wait: '25s' }, () => 'ran')).toBe('ran');
  }, 40_000);

  it('keep a connection whose server is slow', async () => {
    const client = await connected(server.port);
    const before = await client.command('client', 'id');
    await server.command('CLIENT', 'PAUSE', '1000', 'ALL');
    const since = performance.now();
    await client.command('ping');
    expect(performance.now() - since).toBeGreaterThan(500);
    expect(await client.command('client', 'id')).toBe(before);
  });

  it('keep the order of many requests', async () => {
    const client = await connected(server.port);
    await client.command('del', 'count');
    const counts = Array.from({ length: 2_000 }, () =>
      client.command('eval', "return redis.call('INCR', KEYS[1])", 1, 'count'),
    );
    expect(await Promise.all(counts)).toEqual(counts.map((_, index) => index + 1));
  });

  it('notice that a subscription was made anew', async () => {
    const proxy = await proxyTo(server.port);
    const client = await connected(server.port);
    const source = redisSource(await clientAt(proxy.port), systemRuntime);
    const through = source.connect({
      ...{ onConnect: ignore, onReady: ignore, onError: ignore },
      ...{ onClose: ignore, onEnd: ignore, onSlots: ignore },
    });
    const heard: string[] = [];
    let isEnded = false;
    const subscriber = through.openSubscriber({
      onMessage: (message) => heard.push(message),
      ...{ onError: ignore, onMoved: ignore },
      onEnd: () => {
        isEnded = true;
      },
    });
    closings.push(() => {
      subscriber.disconnect();
    });
    await subscriber.connect();
    await subscriber.subscribe('channel', 'plain');
    await client.command('publish', 'channel', 'hello');
    await eventually(() => heard.includes('hello'));
    expect(isEnded).toBe(false);
    proxy.cut();
    await eventually(() => isEnded);
    expect(subscriber.isReady).toBe(false);
  });

  it('have replies as other clients give them', async () => {
    const client = await connected(server.port);
    expect(await client.command('eval', "return {1, 'a', false, {2, 'b'}}", 0)).toEqual([
      ...[1, 'a', null],
      [2, 'b'],
    ]);
    expect(await client.command('pubsub', 'NUMSUB', 'x')).toEqual(['x', 0]);
    expect(await client.command('pexpire', 'none', 1)).toBe(0);
    for (const [script, text] of [
      ["return redis.error_reply('LOADING busy')", 'LOADING busy'],
      ["return redis.error_reply('READONLY no')", 'READONLY no'],
      ["return redis.error_reply('OOM much')", 'OOM much'],
      ["return redis.error_reply('NOPERM not you')", 'NOPERM not you'],
    ] as const) {
      await eventually(() => client.state === 'ready');
      const error: unknown = await client.command('eval', script, 0).catch((e: unknown) => e);
      expect([isReply(error), (error as Error).message]).toEqual([true, text]);
    }
    await eventually(() => client.state === 'ready');
    const unknown: unknown = await client
      .evalsha('0'.repeat(40), [1, 'key'], true)
      .catch((error: unknown) => error);
    expect((unknown as Error).message).toMatch(/^NOSCRIPT /);
  });

  it('refuse IAM, with which GLIDE connects again unnoticed, unless "credentials" are given', async () => {
    const redis = await clientAt(server.port);
    const iamConfig = { clusterName: 'c', region: 'r', service: 'Elasticache' };
    Reflect.set(redis, 'config', { ...configurationOf(redis), credentials: { iamConfig } });
    expect(() => new LockService({ redis })).toThrow(/logs in .* with IAM.*"credentials"/);
    expect(
      () => new LockService({ redis, credentials: () => ({ password: 'token' }) }),
    ).not.toThrow();
  });

  it('never connect again unnoticed, and leave nothing behind that tries to', async () => {
    const proxy = await proxyTo(server.port);
    const client = await connected(proxy.port);
    const before = await client.command('client', 'id');
    proxy.cut(); // with nothing under way
    await expect(client.command('incr', 'unverified')).rejects.toThrow('connection closed');
    await eventually(() => client.state === 'ready');
    expect(await client.command('client', 'id')).not.toBe(before);
    expect(await server.command('GET', 'unverified')).toBeNull();
  });

  it('are at the master, whichever of several addresses it has', async () => {
    const replica = await RedisServer.start({ config: { replicaof: `127.0.0.1 ${server.port}` } });
    closings.push(() => replica.stop());
    const addresses = [replica, server].map(({ port }) => ({ host: '127.0.0.1', port }));
    for (const order of [addresses, addresses.toReversed()]) {
      const service = await open({ redis: await clientAt(server.port, { addresses: order }) });
      expect(await service.run('key', () => 'ran')).toBe('ran');
    }
  });

  it('refuse a client that does not say where Redis is', async () => {
    const redis = await clientAt(server.port);
    Reflect.set(redis, 'config', undefined);
    expect(() => new LockService({ redis })).toThrow(/valkey-glide that cannot be used/);
  });
});

describe('locks over a Cluster client of valkey-glide', () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await RedisCluster.start();
  }, 60_000);

  afterAll(async () => {
    await cluster.stop();
  });

  const clusterClient = async (options: object = {}) => {
    const client = await GlideClusterClient.createClient({
      addresses: cluster.startupNodes,
      lazyConnect: true,
      ...options,
    });
    closings.push(() => {
      client.close();
    });
    return client;
  };

  it('are granted, passed on by messages, and released', async () => {
    const one = await open({ redis: await clusterClient() });
    const other = await open({ redis: await clusterClient() });
    for (const key of ['a', 'b', 'c', 'd']) {
      const lock = await one.acquire(key);
      const waiting = other.acquire(key, { wait: '20s' });
      const owner = await cluster.masterOf(`lock:${key}`);
      await eventually(async () => {
        expect(await owner.command('ZCARD', `{lock:${key}}:queue`)).toBe(1);
      });
      const since = performance.now();
      await lock.release();
      await (await waiting).release();
      expect(performance.now() - since).toBeLessThan(400);
    }
    expect(await one.run(['x', 'y', 'z'], () => 'ran')).toBe('ran');
  });

  it('leave no connection behind', async () => {
    const before = pipes();
    const service = await open({ redis: await clusterClient() });
    await service.run('key', () => undefined);
    await service.shutdown();
    for (const node of cluster.nodes)
      await eventually(async () => (await ourConnections(node)) === 0);
    await eventually(() => pipes() <= before + 1); // that of the application
  });

  it('know their masters', async () => {
    const client = redisSource(await clusterClient(), systemRuntime).connect({
      ...{ onConnect: ignore, onReady: ignore, onError: ignore },
      ...{ onClose: ignore, onEnd: ignore, onSlots: ignore },
    });
    closings.push(() => {
      client.disconnect();
    });
    client.connect();
    await eventually(() => client.state === 'ready');
    const addresses = cluster.nodes.map(({ port }) => `127.0.0.1:${String(port)}`);
    expect(
      client
        .masters()
        .map(({ address }) => address)
        .sort(),
    ).toEqual(addresses.sort());
    for (const master of client.masters()) expect(await master.command('ping')).toBe('PONG');
    expect(addresses).toContain(client.ownerOf(0));
    expect(client.ownerOf(16_383)).not.toBe(client.ownerOf(0));
    await expect(client.command('eval', 'return 1', 2, 'a', 'b')).rejects.toThrow(/^CROSSSLOT /);
    await client.command('del', 'count');
    const counts = Array.from({ length: 1_000 }, () =>
      client.command('eval', "return redis.call('INCR', KEYS[1])", 1, 'count'),
    );
    expect(await Promise.all(counts)).toEqual(counts.map((_, index) => index + 1));
  });

  it('are granted at one master while a hundred requests wait for another one', async () => {
    const service = await open({ redis: await clusterClient(), nodeTimeout: '5s', wait: 0 });
    const [frozen] = cluster.nodes;
    const there: string[] = [];
    const here: string[] = [];
    for (let i = 0; there.length < 100 || here.length < 100; i += 1) {
      const key = `of ${String(i)}`;
      const isThere = (await cluster.masterOf(`lock:${key}`)) === frozen;
      (isThere ? there : here).push(key);
    }
    for (const [key] of [there, here]) await service.run(key!, () => undefined);
    let answered = 0;
    frozen!.freeze();
    const waiting = Promise.all(
      there.map((key) => service.run(key, () => undefined).finally(() => (answered += 1))),
    );
    try {
      await Promise.all(here.map((key) => service.run(key, () => undefined)));
      expect(answered).toBe(0);
    } finally {
      frozen!.thaw();
      await waiting;
    }
  });

  it('refuse "replicas", whose acknowledgement GLIDE could make false', async () => {
    const redis = await clusterClient();
    expect(() => new LockService({ redis, replicas: { ack: 1, timeout: '500ms' } })).toThrow(
      /"replicas" cannot be used with this client/,
    );
  });

  it('are refused another database', async () => {
    const redis = await clusterClient({ databaseId: 2 });
    expect(() => new LockService({ redis })).toThrow(/A Cluster has database 0 only/);
  });

  it('survive the restart of a node', async () => {
    const service = await open({ redis: await clusterClient() });
    expect(await service.run('a', () => 1)).toBe(1);
    const owner = await cluster.masterOf('lock:a');
    await owner.restart();
    expect(await service.run('a', { wait: '25s' }, () => 2)).toBe(2);
  }, 40_000);
});

it.each([
  [
    'An error was signalled by the server: - NoScriptError: No matching script.',
    'NOSCRIPT No matching script.',
  ],
  ['An error was signalled by the server: - ResponseError: unknown', 'ERR unknown'],
  ['An error was signalled by the server: - TryAgain', 'TRYAGAIN'],
  ['WRONGTYPE: Operation against a key', 'WRONGTYPE Operation against a key'],
  ['timed out', undefined],
  ['Reached maximum inflight requests- ClientError', undefined],
  [
    'Received connection error `FatalReceiveError: channel closed`. Will attempt to reconnect',
    undefined,
  ],
])('reads the reply of %j', (message, reply) => {
  expect(serverReply(message)).toBe(reply);
});

it('makes lists of maps and sets', () => {
  const reply = [{ key: 'a', value: true }, new Set(['b']), [false]];
  expect(plainReply(reply)).toEqual(['a', 1, ['b'], [0]]);
  const stream = [
    {
      key: '1-0',
      value: [
        ['field', 'value'],
        ['other', 'text'],
      ],
    },
  ];
  expect(plainReply(stream)).toEqual([['1-0', ['field', 'value', 'other', 'text']]]);
});
