import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LockService, LockStoreUnavailableError, type LockModuleOptions } from 'nestjs-holdfast';
import * as redis6 from 'redis';
import * as redis5 from 'redis-5';
import { redisSource, type RedisLocation } from '../../lib/store/redis/client/redis-location.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { take } from '../../lib/store/redis/scripts/plain.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { AUTHORITY } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { watchHandles } from '../support/no-leaks.js';
import { ownConnection } from '../support/own-connection.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisSentinel } from '../support/redis-sentinel.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { tlsProxy } from '../support/tls-proxy.js';

/** Backwards, so that what uses a server ends before it. */
let closings: (() => unknown)[] = [];

beforeAll(() => {
  Logger.overrideLogger(false);
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

/** Redis behind TLS; resolves with its port. */
async function behindTls(port: number): Promise<number> {
  const proxy = await tlsProxy(port);
  closings.push(proxy.stop);
  return proxy.port;
}

const ACQUIRES = new Set([acquireScript, take].flatMap(({ sha, lua }) => [sha, lua]));

/** A client of the port, as it is. */
async function connected(location: RedisLocation) {
  const client = redisSource(location, systemRuntime).connect(NO_EVENTS);
  client.connect();
  await eventually(() => client.state === 'ready');
  return {
    client,
    close: () => {
      client.disconnect();
    },
  };
}

const ignore = (): void => undefined;
const NO_EVENTS = {
  ...{ onConnect: ignore, onReady: ignore, onError: ignore },
  ...{ onClose: ignore, onEnd: ignore, onSlots: ignore },
};

/** The packages have nearly the same types, and here only what both have is used. */
const versions: [string, typeof redis6][] = [
  ['redis 6', redis6],
  ['redis 5', redis5 as unknown as typeof redis6],
];

describe.each(versions)('locks over clients of %s', (_version, redis) => {
  describe('with one server', () => {
    let server: RedisServer;

    beforeAll(async () => {
      server = await RedisServer.start();
    });

    afterAll(async () => {
      await server.stop();
    });

    const clientOf = (options: object = {}) => redis.createClient({ url: server.url, ...options });

    it('are refused at once, with the reply of the server, if a password is missing', async () => {
      const operator = ownConnection(server.port);
      await operator.connect();
      await operator.config('SET', 'requirepass', 'secret');
      closings.push(async () => {
        await operator.config('SET', 'requirepass', '');
        operator.disconnect();
      });
      const service = await open({ redis: clientOf() });
      const { nodes } = await outageOf(service.acquire('key', { wait: 'forever' }));
      expect(nodes[0]).toMatchObject({ kind: 'error', message: expect.stringContaining('NOAUTH') });
    });

    it('come back after a try to connect that throws', async () => {
      const client = clientOf();
      const service = await open({ redis: client });
      const duplicate = jest.spyOn(client, 'duplicate').mockImplementationOnce(() => {
        throw new Error('no duplicate');
      });
      await server.command('CLIENT', 'KILL', 'TYPE', 'NORMAL');
      const lock = await service.acquire('key');
      expect(duplicate.mock.calls.length).toBeGreaterThan(1);
      await lock.release();
    });

    it('are granted, renewed, released, and passed on in order over processes', async () => {
      const [one, other] = [await open({ redis: clientOf() }), await open({ redis: clientOf() })];
      const lock = await one.acquire(['a', 'b']);
      await lock.extend();
      expect(await other.inspect('a')).toMatchObject({ held: true });
      const order: number[] = [];
      const waits: Promise<void>[] = [];
      for (const [index, service] of [other, one, other].entries()) {
        waits.push(
          service.run('b', { wait: '25s' }, () => {
            order.push(index);
          }),
        );
        await eventually(async () => {
          const length = Number(await server.command('ZCARD', '{lock:b}:queue'));
          if (length < Math.min(index + 1, 2)) throw new Error('does not stand in line yet');
        });
      }
      expect(await lock.release()).toBe(true);
      await Promise.all(waits);
      expect(order).toHaveLength(3);
      expect(order.indexOf(0)).toBeLessThan(order.indexOf(2));
      expect(order[0]).toBe(0);
    });

    it('leave the client of the application alone, whatever it does', async () => {
      const client = clientOf({ RESP: 3 });
      await client.connect();
      closings.push(() => {
        client.destroy();
      });
      const before = [client.eventNames(), { ...client.options }];
      const lazy = clientOf();
      const closed = clientOf();
      await closed.connect();
      await closed.close();
      const subscribed = clientOf();
      await subscribed.connect();
      closings.push(() => {
        subscribed.destroy();
      });
      await subscribed.subscribe('news', () => undefined);
      for (const each of [client, lazy, closed, subscribed])
        expect(await (await open({ redis: each })).run('key', () => 'ran')).toBe('ran');
      expect([client.eventNames(), { ...client.options }]).toEqual(before);
      expect([client.isReady, lazy.isOpen, closed.isOpen]).toEqual([true, false, false]);
      expect(await client.ping()).toBe('PONG');
    });

    it('have two connections, and none after the shutdown', async () => {
      await eventually(async () => (await ourConnections(server)) === 0);
      const watch = watchHandles();
      const service = await open({ redis: clientOf() });
      await eventually(async () => (await ourConnections(server)) === 2);
      await service.shutdown();
      await eventually(async () => (await ourConnections(server)) === 0);
      await watch.expectNoneOpen();
    });

    it('are in the database that the options name', async () => {
      for (const options of [{ database: 3 }, { url: `${server.url}/3` }]) {
        const service = await open({ redis: clientOf(options) });
        const lock = await service.acquire('db');
        expect(await server.command('EXISTS', 'lock:db')).toBe(0);
        await lock.release();
      }
      expect(String(await server.command('INFO', 'keyspace'))).toContain('db3');
    });

    it('are refused a database that the server does not have, for good', async () => {
      const service = await open({ redis: clientOf({ database: 99 }) });
      const { nodes } = await outageOf(service.acquire('key'));
      expect(nodes[0]?.message).toContain('cannot use database 99');
    });

    it('do without the rights to name a connection', async () => {
      const rights = ['on', '>secret-of-user', '~*', '&*', '+@all', '-client'];
      await server.command('ACL', 'SETUSER', 'narrow', ...rights);
      const service = await open({
        redis: clientOf({ username: 'narrow', password: 'secret-of-user' }),
      });
      expect(await service.run('key', () => 'ran')).toBe('ran');
    });

    it('say when the password is wrong, without it', async () => {
      const service = await open({
        redis: clientOf({ username: 'nobody', password: 'the-wrong-one' }),
      });
      const { nodes } = await outageOf(service.acquire('key', { wait: '10s' }));
      expect(nodes[0]).toMatchObject({ message: expect.stringContaining('WRONGPASS') });
      expect(JSON.stringify(nodes)).not.toContain('the-wrong-one');
    });

    it.each(['a provider of the client', 'the option "credentials"'])(
      'log in with what %s returns at each connection',
      async (way) => {
        let password = 'first-password';
        const allow = () =>
          server.command(
            'ACL',
            'SETUSER',
            'locks',
            'on',
            'resetpass',
            `>${password}`,
            '~*',
            '&*',
            '+@all',
          );
        await allow();
        const credentials = async () => {
          await new Promise(setImmediate);
          return { username: 'locks', password };
        };
        const service = await open(
          way.startsWith('a provider')
            ? {
                redis: clientOf({
                  credentialsProvider: { type: 'async-credentials-provider', credentials },
                }),
              }
            : { redis: clientOf(), credentials },
        );
        expect(await service.run('key', () => 1)).toBe(1);
        password = 'second-password';
        await allow();
        await server.command('CLIENT', 'KILL', 'USER', 'locks');
        expect(await service.run('key', { wait: '20s' }, () => 2)).toBe(2);
      },
    );

    it('have the keyPrefix of the client before ours', async () => {
      const service = await open({ redis: clientOf({ keyPrefix: 'app:' }) });
      const lock = await service.acquire('key');
      expect(await server.command('EXISTS', 'app:lock:key')).toBe(1);
      await lock.release();
    });

    it('may be opened before the server is there', async () => {
      const port = await freePort();
      const service = await open({
        redis: redis.createClient({ socket: { port, host: '127.0.0.1' } }),
      });
      const failure = await outageOf(service.tryAcquire('key'));
      expect(failure.nodes).toEqual([
        expect.objectContaining({ node: `127.0.0.1:${String(port)}`, kind: 'connection' }),
      ]);
      const late = await RedisServer.start({ port });
      closings.push(() => late.stop());
      expect(await service.run('key', { wait: '20s' }, () => 'ran')).toBe('ran');
    });

    it('come back after a restart, even where the client never reconnects', async () => {
      const mortal = await RedisServer.start();
      closings.push(() => mortal.stop());
      const service = await open({
        redis: redis.createClient({ url: mortal.url, socket: { reconnectStrategy: false } }),
      });
      expect(await service.run('key', () => 1)).toBe(1);
      await mortal.restart();
      expect(await service.run('key', { wait: '20s' }, () => 2)).toBe(2);
    });

    it('do not send a request again whose connection broke before the answer', async () => {
      const proxy = await TcpProxy.start(server.port);
      closings.push(() => proxy.stop());
      const service = await open({
        redis: redis.createClient({ socket: { port: proxy.port, host: '127.0.0.1' } }),
      });
      await service.run('warm', () => undefined);
      const commands = await server.commandsSentDuring(async () => {
        const sent = proxy.whenClientSends('lock:cut');
        proxy.pause('to-client');
        const acquiring = service.tryAcquire('cut');
        const failure = outageOf(acquiring);
        await sent;
        await new Promise((resolve) => setTimeout(resolve, 50));
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

    it('are extended when the server is back behind a proxy that has closed each connection at once', async () => {
      const proxy = await TcpProxy.start(server.port);
      closings.push(() => proxy.stop());
      const service = await open({
        redis: redis.createClient({ socket: { port: proxy.port, host: '127.0.0.1' } }),
        nodeTimeout: '20s',
      });
      const lock = await service.acquire('key', { autoExtend: false });
      proxy.refuse();
      proxy.cut();
      for (let tries = 0; tries < 3; tries += 1) await outageOf(service.tryAcquire('other'));
      const extending = lock.extend();
      await outageOf(service.tryAcquire('other'));
      proxy.accept();
      await extending;
      expect(await lock.release()).toBe(true);
    });

    it('leave a connection that is silent', async () => {
      const proxy = await TcpProxy.start(server.port);
      closings.push(() => proxy.stop());
      const service = await open({
        redis: redis.createClient({ socket: { port: proxy.port, host: '127.0.0.1' } }),
        nodeTimeout: '500ms',
      });
      await service.run('key', () => undefined);
      proxy.dropSilently();
      expect(await service.run('key', { wait: '25s' }, () => 'ran')).toBe('ran');
    }, 40_000);
  });

  it('are kept over TLS', async () => {
    const server = await RedisServer.start();
    closings.push(() => server.stop());
    const port = await behindTls(server.port);
    const service = await open({
      redis: redis.createClient({
        socket: { host: '127.0.0.1', port, tls: true, ca: AUTHORITY },
      }),
    });
    expect(await service.run('key', () => 'ran')).toBe('ran');
    await service.shutdown();
    await eventually(async () => (await ourConnections(server)) === 0);
  });

  it('have the TLS options of the defaults of a Cluster', async () => {
    const server = await RedisServer.start();
    closings.push(() => server.stop());
    const port = await behindTls(server.port);
    const service = await open({
      redis: redis.createCluster({
        rootNodes: [{ socket: { host: '127.0.0.1', port } }],
        defaults: { socket: { tls: true } },
      }),
    });
    const { detail } = await outageOf(service.tryAcquire('key'));
    expect(detail).toContain('NODE_EXTRA_CA_CERTS');
  });

  it('survive a fail-over of Sentinel', async () => {
    if (redis === versions[1]?.[1]) return; // refused: see below
    const group = await RedisSentinel.start();
    closings.push(() => group.stop());
    const watch = watchHandles();
    const client = redis.createSentinel({
      name: group.name,
      sentinelRootNodes: group.sentinels,
    });
    const service = await open({ redis: client });
    expect(await service.run('key', () => 1)).toBe(1);
    await group.failOver();
    expect(await service.run('key', { wait: '25s' }, () => 2)).toBe(2);
    // A master that was demoted refuses writes and is left.
    await eventually(async () => (await ourConnections(group.master)) === 2, { withinMs: 20_000 });
    await service.shutdown();
    await watch.expectNoneOpen();
  }, 120_000);

  describe('with a Cluster', () => {
    let cluster: RedisCluster;

    beforeAll(async () => {
      cluster = await RedisCluster.start({ masters: 3 });
    }, 90_000);

    afterAll(async () => {
      await cluster.stop();
    });

    const clusterOf = (options: object = {}) =>
      redis.createCluster({
        rootNodes: cluster.startupNodes.map((socket) => ({ socket })),
        ...options,
      });

    it('are granted in all slots, and waited for by messages', async () => {
      const watch = watchHandles();
      const [one, other] = [await open({ redis: clusterOf() }), await open({ redis: clusterOf() })];
      for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) {
        const lock = await one.acquire(key, { ttl: '60s' });
        const waiting = other.acquire(key, { wait: '25s' });
        const master = await cluster.masterOf(`lock:${key}`);
        await eventually(async () => (await master.command('EXISTS', `{lock:${key}}:queue`)) === 1);
        await lock.release();
        await (await waiting).release();
      }
      await one.shutdown();
      await other.shutdown();
      await watch.expectNoneOpen();
    });

    it('follow a slot that moves: ASK, and MOVED', async () => {
      const service = await open({ redis: clusterOf() });
      const waiter = await open({ redis: clusterOf() });
      const key = 'moving';
      await service.run(key, () => undefined);
      const source = await cluster.masterOf(`lock:${key}`);
      const target = cluster.nodes.find((node) => node !== source);
      if (target === undefined) throw new Error('one node only');
      const slot = Number(await source.command('CLUSTER', 'KEYSLOT', `lock:${key}`));
      const ids = [
        await source.command('CLUSTER', 'MYID'),
        await target.command('CLUSTER', 'MYID'),
      ];
      await target.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(ids[0]));
      await source.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(ids[1]));
      for (;;) {
        const keys = (await source.command('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
        if (keys.length === 0) break;
        await source.command('MIGRATE', '127.0.0.1', target.port, '', 0, 5_000, 'KEYS', ...keys);
      }
      const { client, close } = await connected(clusterOf());
      await client.command('set', `{lock:${key}}:asked`, 'there');
      expect(await client.command('get', `{lock:${key}}:asked`)).toBe('there');
      expect(await source.command('CLUSTER', 'COUNTKEYSINSLOT', slot)).toBe(0);
      expect(client.ownerOf(slot)).toBe(`127.0.0.1:${String(source.port)}`);
      close();
      for (const node of [target, source, ...cluster.nodes])
        await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', String(ids[1]));
      const lock = await service.acquire(key, { ttl: '60s', wait: '20s' });
      const waiting = waiter.acquire(key, { wait: '25s' });
      await eventually(async () => (await target.command('EXISTS', `{lock:${key}}:queue`)) === 1);
      await lock.release();
      expect((await waiting).isHeld).toBe(true);
    }, 60_000);

    it('are inspected where their slot has moved to', async () => {
      const service = await open({ redis: clusterOf() });
      const lock = await service.acquire('inspected', { ttl: '60s' });
      await cluster.moveSlot('lock:inspected');
      expect(await service.inspect('inspected')).toMatchObject({ held: true });
      expect(await lock.release()).toBe(true);
    });

    it('begin while one of the named nodes is away', async () => {
      const port = await freePort();
      const service = await open({
        redis: clusterOf({
          rootNodes: [
            { socket: { host: '127.0.0.1', port } },
            { url: `redis://127.0.0.1:${String(cluster.nodes[0]?.port)}` },
          ],
        }),
      });
      expect(await service.run('key', { wait: '20s' }, () => 'ran')).toBe('ran');
    });
  });
});

describe('what node-redis makes besides', () => {
  it.each([
    ['a pool', () => redis6.createClientPool(), 'pool of node-redis. Give the client'],
    ['a pool of 5', () => redis5.createClientPool(), 'pool of node-redis. Give the client'],
    ['a legacy client', () => redis6.createClient().legacy(), 'legacy mode'],
    [
      'a Sentinel client of 5',
      () => redis5.createSentinel({ name: 'group', sentinelRootNodes: [{ host: 'a', port: 1 }] }),
      'Sentinel client of node-redis 5',
    ],
    [
      'a client of a Cluster with a database',
      () =>
        redis6.createCluster({ rootNodes: [{ url: 'redis://a:1' }], defaults: { database: 2 } }),
      'A Cluster has database 0 only',
    ],
  ])('is refused with what to give in its place: %s', (_what, client, sentence) => {
    const location = client() as unknown as RedisLocation;
    expect(() => new LockService({ redis: location })).toThrow(sentence);
  });
});
