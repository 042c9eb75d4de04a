import {
  Controller,
  Injectable,
  Module,
  Post,
  type INestApplication,
  type ModuleMetadata,
} from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import request from 'supertest';
import {
  LockModule,
  LockNotAcquiredError,
  LockService,
  LockStoreUnavailableError,
  WithLock,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { detailed } from '../../support/detail.js';
import { eventually, until } from '../../support/eventually.js';
import { freePort } from '../../support/free-port.js';
import { expectNoOpenHandles } from '../../support/no-leaks.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { RedisSentinel } from '../../support/redis-sentinel.js';
import { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { closeApps, startApp, type StartedApp } from './start-app.js';

const startWith = (options: LockModuleOptions): Promise<StartedApp> =>
  startApp({ imports: [LockModule.forRoot(options)] });

const serviceOf = async (options: LockModuleOptions): Promise<LockService> =>
  (await startWith(options)).app.get(LockService);

const clients: (Redis | Cluster)[] = [];

function ownedByTheTest<T extends Redis | Cluster>(client: T): T {
  client.on('error', () => undefined);
  clients.push(client);
  return client;
}

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});

afterEach(async () => {
  await closeApps();
  for (const client of clients.splice(0)) if (client.status !== 'end') client.disconnect();
  if (server.isRunning) await server.command('FLUSHALL');
});

afterAll(() => server.stop());

describe('the redis option', () => {
  /** Locks, and says under which name the lock is kept in the server. */
  async function keptBy(target: RedisServer, options: LockModuleOptions): Promise<unknown> {
    const { app, warnings } = await startWith(options);
    expect(warnings).toEqual([]);
    const lock = await app.get(LockService).acquire('order:42');
    const names = ((await target.command('KEYS', '*order:42')) as string[]).sort();
    await lock.release();
    return names;
  }

  it('takes a URL', async () => {
    expect(await keptBy(server, { redis: server.url })).toEqual(['lock:order:42']);
  });

  it('takes a URL with credentials and a database', async () => {
    const guarded = await RedisServer.start({ config: { requirepass: 's3cret' } });
    const redis = `redis://:s3cret@127.0.0.1:${String(guarded.port)}/3`;
    const locks = await serviceOf({ redis });
    const lock = await locks.acquire('order:42');
    const client = ownedByTheTest(new Redis(redis));
    expect(await client.exists('lock:order:42')).toBe(1);
    await lock.release();
    client.disconnect();
    await closeApps();
    await guarded.stop();
  });

  it('takes ioredis options', async () => {
    const redis = { host: '127.0.0.1', port: server.port };
    expect(await keptBy(server, { redis })).toEqual(['lock:order:42']);
  });

  it('takes an ioredis Redis, asks it for its address and key prefix, and leaves it as it was', async () => {
    const client = ownedByTheTest(new Redis(server.url, { keyPrefix: 'app:' }));
    await client.set('mine', '1');
    const listeners = client.eventNames().map((name) => [name, client.listenerCount(name)]);
    expect(await keptBy(server, { redis: client })).toEqual(['app:lock:order:42']);
    await closeApps();
    expect(client.status).toBe('ready');
    expect(client.eventNames().map((name) => [name, client.listenerCount(name)])).toEqual(
      listeners,
    );
    expect(await client.get('mine')).toBe('1');
  });

  it('takes a Redis that was never connected, and does not connect it', async () => {
    const client = ownedByTheTest(new Redis(server.url, { lazyConnect: true }));
    expect(await keptBy(server, { redis: client })).toEqual(['lock:order:42']);
    await closeApps();
    expect(client.status).toBe('wait');
  });

  it('takes an ioredis Cluster, and leaves it as it was', async () => {
    const cluster = await RedisCluster.start();
    const client = ownedByTheTest(new Cluster(cluster.startupNodes));
    await client.set('mine', '1');
    const { app, warnings } = await startWith({ redis: client });
    const locks = app.get(LockService);
    const keys = ['order:1', 'order:2', 'order:3', 'order:4'];
    const lock = await locks.acquire(keys);
    for (const key of keys) expect(await client.exists(`lock:${key}`)).toBe(1);
    await expect(locks.acquire('order:3', { wait: 0 })).rejects.toThrow(LockNotAcquiredError);
    await lock.release();
    expect(warnings).toEqual([]);
    await closeApps();
    expect(await client.get('mine')).toBe('1');
    client.disconnect();
    await cluster.stop();
  });

  it('takes the options of Sentinel', async () => {
    const group = await RedisSentinel.start();
    const redis = { sentinels: group.sentinels, name: group.name };
    expect(await keptBy(group.master, { redis })).toEqual(['lock:order:42']);
    await closeApps();
    await group.stop();
  });

  it('makes applications exclude each other', async () => {
    const [first, second] = [
      await serviceOf({ redis: server.url }),
      await serviceOf({ redis: server.url }),
    ];
    const lock = await first.acquire('order:42');
    await expect(second.acquire('order:42', { wait: 0 })).rejects.toThrow(LockNotAcquiredError);
    const waiting = second.acquire('order:42');
    await lock.release();
    await (await waiting).release();
  });

  it('leaves no connection and no timer after app.close()', async () => {
    await expectNoOpenHandles(async () => {
      const locks = await serviceOf({ redis: server.url });
      const lock = await locks.acquire('order:42');
      const waiting = locks.acquire('order:42');
      await lock.release();
      await (await waiting).release();
      await closeApps();
    });
  });
});

describe('LockModule in a module that is loaded lazily', () => {
  @Injectable()
  class Orders {
    constructor(readonly locks: LockService) {}

    @WithLock('a')
    async pay(): Promise<unknown> {
      return this.locks.current()?.keys;
    }
  }

  it.each([[true], [false]])(
    'ends the load and says what to do, and leaves nothing open (isGlobal: %p)',
    async (isGlobal) => {
      await expectNoOpenHandles(async () => {
        const { app } = await startApp({});
        @Module({
          imports: [LockModule.forRoot({ redis: server.url, isGlobal })],
          providers: [Orders],
        })
        class Lazy {}
        const load = app.get(LazyModuleLoader).load(() => Lazy);
        await expect(load).rejects.toThrow(
          /^LockModule\.forRoot was loaded lazily.* Import it in the root module\. .*LockModule\.forFeature/,
        );
        await closeApps();
      });
    },
  );

  it('is not needed: what is loaded lazily locks by that of the root module', async () => {
    const { app } = await startWith({ redis: server.url });
    @Module({ imports: [LockModule.forFeature({ keyPrefix: 'lazy:' })], providers: [Orders] })
    class Lazy {}
    const module = await app.get(LazyModuleLoader).load(() => Lazy);
    expect(await module.get(Orders).pay()).toEqual(['lazy:a']);
  });
});

describe('the keyPrefix option', () => {
  it('is what every key in Redis begins with, and separates applications', async () => {
    const [first, second] = [
      await serviceOf({ redis: server.url, keyPrefix: 'first:' }),
      await serviceOf({ redis: server.url, keyPrefix: 'second:' }),
    ];
    const lock = await first.acquire('order:42');
    const other = await second.acquire('order:42');
    const keys = await server.namesInUse();
    for (const key of keys) expect(key).toMatch(/^\{?(first|second):order:42/);
    await Promise.all([lock.release(), other.release()]);
  });

  it('may be empty', async () => {
    const locks = await serviceOf({ redis: server.url, keyPrefix: '' });
    const lock = await locks.acquire('order:42');
    expect(await server.command('EXISTS', 'order:42')).toBe(1);
    await lock.release();
  });

  it('may hold one Cluster hash tag, so that all locks are in one slot', async () => {
    const locks = await serviceOf({ redis: server.url, keyPrefix: '{app}:' });
    const lock = await locks.acquire('order:42');
    expect(await server.command('EXISTS', '{app}:order:42')).toBe(1);
    await lock.release();
  });
});

describe('the nodeTimeout option', () => {
  it('bounds a request to a Redis that is silent', async () => {
    const proxy = await TcpProxy.start(server.port);
    const redis = `redis://127.0.0.1:${String(proxy.port)}`;
    const patient = await serviceOf({ redis });
    const impatient = await serviceOf({ redis, nodeTimeout: 50 });
    proxy.pause();
    const since = performance.now();
    const refusals = [patient, impatient].map((locks) => locks.acquire('order:42', { wait: 0 }));
    await expect(Promise.race(refusals)).rejects.toThrow(detailed('no answer within 50 ms'));
    expect(performance.now() - since).toBeGreaterThanOrEqual(49);
    await Promise.allSettled(refusals);
    proxy.resume();
    await closeApps();
    await proxy.stop();
  });

  it('longer than a timer of Node can be is not over at once', async () => {
    const proxy = await TcpProxy.start(server.port);
    proxy.delay(10);
    const redis = `redis://127.0.0.1:${String(proxy.port)}`;
    const { app, warnings } = await startWith({ redis, nodeTimeout: '45d', ttl: '45d' });
    const lock = await app.get(LockService).acquire('order:42');
    expect(await server.command('PTTL', 'lock:order:42')).toBeGreaterThan(44 * 86_400_000);
    expect(await lock.release()).toBe(true);
    expect(warnings).toEqual([]);
    await closeApps();
    await proxy.stop();
  });
});

describe('the fencingTokenRetention option', () => {
  it('is how much longer than the lease the last fencing token is kept', async () => {
    const locks = await serviceOf({ redis: server.url, fencingTokenRetention: '1h', ttl: 10_000 });
    const lock = await locks.acquire('order:42');
    const ttlMs = Number(await server.command('PTTL', '{lock:order:42}:fence'));
    expect(ttlMs).toBeGreaterThan(3_600_000);
    // 1,024 fencing tokens are reserved, each of 1 µs.
    expect(ttlMs).toBeLessThanOrEqual(3_610_000 + 2);
    await lock.release();
  });
});

describe('a start while Redis is down', () => {
  @Controller('orders')
  class OrdersController {
    @Post(':id')
    @WithLock('order:<request.params.id>')
    async pay(): Promise<string> {
      return Promise.resolve('paid');
    }
  }

  async function startHttp(metadata: ModuleMetadata) {
    const warnings: string[] = [];
    const record = (message: unknown): void => void warnings.push(String(message));
    const module = await Test.createTestingModule(metadata)
      .setLogger({ log: () => undefined, warn: record, error: record })
      .compile();
    const app: INestApplication = module.createNestApplication();
    await app.init();
    return { app, warnings };
  }

  it('the start succeeds and warns once; calls get 503 until Redis is available, which is logged', async () => {
    const port = await freePort();
    const { app, warnings } = await startHttp({
      imports: [LockModule.forRoot({ redis: `redis://:pass-word@127.0.0.1:${String(port)}` })],
      controllers: [OrdersController],
    });
    const locks = app.get(LockService);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const answer = await request(app.getHttpServer()).post('/orders/42');
      expect(answer.status).toBe(503);
      expect(answer.body).toEqual({
        statusCode: 503,
        message: 'The lock store is not available. Try again later.',
        error: 'Service Unavailable',
        code: 'LOCK_STORE_UNAVAILABLE',
      });
      expect(answer.headers['retry-after']).toBe('1');
    }
    const waiting = locks.acquire('order:43', { wait: '20s' });
    expect(warnings).toEqual([
      expect.stringMatching(
        new RegExp(`^Redis at 127\\.0\\.0\\.1:${String(port)} is not usable yet: .*ECONNREFUSED`),
      ),
    ]);
    expect(warnings.join()).not.toContain('pass-word');

    const late = await RedisServer.start({ port, config: { requirepass: 'pass-word' } });
    await eventually(async () => {
      const { status } = await request(app.getHttpServer()).post('/orders/42');
      return status === 201;
    });
    expect(await (await waiting).release()).toBe(true);
    await eventually(() => {
      expect(warnings.slice(1)).toEqual([
        `Redis at 127.0.0.1:${String(port)} is usable again. Locks are granted again.`,
      ]);
    });
    await app.close();
    await late.stop();
  });

  it('is over within nodeTimeout when Redis accepts connections and says nothing', async () => {
    const proxy = await TcpProxy.start(server.port);
    proxy.pause();
    const { app, warnings } = await startWith({
      redis: `redis://127.0.0.1:${String(proxy.port)}`,
      nodeTimeout: 100,
    });
    expect(warnings).toEqual([expect.stringContaining('is not usable yet')]);
    const locks = app.get(LockService);
    await expect(locks.acquire('key', { wait: 0 })).rejects.toThrow(LockStoreUnavailableError);
    proxy.resume();
    await eventually(async () => (await locks.inspect('key').catch(() => null)) !== null);
    expect(await (await locks.acquire('key')).release()).toBe(true);
    await closeApps();
    await proxy.stop();
  });

  it('ends with app.close() as fast as ever, and leaves nothing open', async () => {
    const port = await freePort();
    await expectNoOpenHandles(async () => {
      const { app } = await startWith({ redis: `redis://127.0.0.1:${String(port)}` });
      const waiting = app.get(LockService).acquire('key', { wait: '20s' });
      const refused = expect(waiting).rejects.toThrow(detailed('shutting down'));
      const since = performance.now();
      await closeApps();
      await refused;
      expect(performance.now() - since).toBeLessThan(3_000);
    });
  });

  it('warns of a wrong password, and does not show it', async () => {
    const guarded = await RedisServer.start({ config: { requirepass: 's3cret' } });
    const { warnings } = await startWith({
      redis: `redis://:wr0ng@127.0.0.1:${String(guarded.port)}`,
    });
    expect(warnings).toEqual([expect.stringMatching(/WRONGPASS/)]);
    expect(warnings.join()).not.toContain('wr0ng');
    await closeApps();
    await guarded.stop();
  });

  it('warns when a full Redis may evict locks', async () => {
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    const { warnings } = await startWith({ redis: server.url });
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    expect(warnings).toEqual([expect.stringContaining('maxmemory-policy "allkeys-lru"')]);
  });
});

it('a client of the application that breaks does not concern the locks', async () => {
  const client = ownedByTheTest(new Redis(server.url, { retryStrategy: () => null }));
  const locks = await serviceOf({ redis: client });
  const ended = until(client, 'end');
  client.disconnect();
  await ended;
  expect(await (await locks.acquire('order:42')).release()).toBe(true);
});
