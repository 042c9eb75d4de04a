import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import {
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  LockModule,
  LockNotAcquiredError,
  LockService,
  LockServiceClosedError,
  type LockLostError,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { LockLifecycle } from '../../../lib/nest/lock-lifecycle.js';
import { Program } from '../../claims/sample/program.js';
import { detailed } from '../../support/detail.js';
import { deferred, eventually, until } from '../../support/eventually.js';
import { expectNoOpenHandles } from '../../support/no-leaks.js';
import { RedisServer } from '../../support/redis-server.js';
import { closeApps, startApp } from './start-app.js';

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});

afterAll(() => server.stop());

const isHeld = async (key: string): Promise<boolean> =>
  (await server.command('EXISTS', `lock:${key}`)) === 1;

describe('app.close()', () => {
  afterEach(async () => {
    await closeApps();
    await server.command('FLUSHALL');
  });

  async function serviceOf(options: LockModuleOptions) {
    const { app, warnings } = await startApp({ imports: [LockModule.forRoot(options)] });
    return { locks: app.get(LockService), close: () => app.close(), warnings };
  }

  it('waits for holders, and gives back what they hold when they are done', async () => {
    const { locks, close } = await serviceOf({ redis: server.url });
    const [started, mayEnd] = [deferred(), deferred()];
    const work = locks.run('order:42', async (lock) => {
      started.resolve();
      await mayEnd.promise;
      return lock.isHeld;
    });
    await started.promise;
    let isClosed = false;
    const closing = close().then(() => (isClosed = true));
    await eventually(() =>
      locks.acquire('other', { wait: 0 }).then(
        async (lock) => {
          await lock.release();
          return false;
        },
        (error: unknown) => error instanceof LockServiceClosedError,
      ),
    );
    expect(isClosed).toBe(false);
    expect(await isHeld('order:42')).toBe(true);
    mayEnd.resolve();
    expect(await work).toBe(true);
    await closing;
    expect(await isHeld('order:42')).toBe(false);
  });

  it('sends those who wait away at once', async () => {
    const { locks, close } = await serviceOf({ redis: server.url });
    const lock = await locks.acquire('order:42');
    const waiting = Promise.allSettled([
      locks.acquire('order:42', { wait: '60s' }),
      locks.run(['order:41', 'order:42'], { wait: '60s' }, () => undefined),
    ]);
    const closing = close();
    for (const outcome of await waiting) {
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { code: 'LOCK_SERVICE_CLOSED' },
      });
    }
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await closing;
    expect(await server.command('KEYS', '*:queue')).toEqual([]);
  });

  it.each(['redis', 'memory'])(
    'cuts a holder that never ends off after shutdownTimeout, and tells it by its signal (%s)',
    async (kind) => {
      const place: LockModuleOptions =
        kind === 'redis' ? { redis: server.url } : { store: 'memory' };
      const { locks, close, warnings } = await serviceOf({ ...place, shutdownTimeout: 200 });
      const lock = await locks.acquire('order:42');
      const since = performance.now();
      await close();
      expect(performance.now() - since).toBeGreaterThanOrEqual(190);
      expect(lock.signal.aborted).toBe(true);
      expect((lock.signal.reason as LockLostError).reason).toBe('shutdown');
      expect(() => {
        lock.assertHeld();
      }).toThrow(detailed('the application shut down before the work ended'));
      expect(await isHeld('order:42')).toBe(false);
      expect(warnings).toEqual([
        expect.stringContaining('The shutdown ends 1 lock not released yet: "order:42" (held for'),
        expect.stringContaining('"order:42" was lost'),
      ]);
    },
  );

  it('with shutdownTimeout: 0 waits for nobody', async () => {
    const { locks, close } = await serviceOf({ redis: server.url, shutdownTimeout: 0 });
    const lock = await locks.acquire('order:42');
    await close();
    expect(lock.isHeld).toBe(false);
    expect(await isHeld('order:42')).toBe(false);
  });

  it('is over in time when Redis is silent, and does not reject', async () => {
    const silent = await RedisServer.start();
    const { locks, close } = await serviceOf({
      redis: silent.url,
      shutdownTimeout: 100,
      nodeTimeout: 100,
    });
    const lock = await locks.acquire('order:42');
    silent.freeze();
    const since = performance.now();
    await close();
    expect(performance.now() - since).toBeLessThan(5_000);
    expect(lock.isHeld).toBe(false);
    silent.thaw();
    await silent.stop();
  });

  it('is over one second after its deadline, however much there is to clean up', async () => {
    const silent = await RedisServer.start();
    const { locks, close } = await serviceOf({
      redis: silent.url,
      ttl: '10m',
      shutdownTimeout: 500,
    });
    await locks.run('order:42', () => undefined);
    silent.freeze();
    const attempts: Promise<unknown>[] = [];
    for (let i = 0; i < 60; i += 1) {
      attempts.push(locks.tryAcquire(`order:${String(i)}`).catch(() => null));
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    const since = performance.now();
    await close();
    expect(performance.now() - since).toBeLessThan(1_900);
    await Promise.all(attempts);
    silent.thaw();
    await silent.stop();
  });

  it('refuses every lock from then on', async () => {
    const { locks, close } = await serviceOf({ redis: server.url });
    await close();
    const closed = LockServiceClosedError;
    await expect(locks.acquire('key')).rejects.toThrow(closed);
    await expect(locks.acquire('key', { wait: 0 })).rejects.toThrow(closed);
    await expect(locks.tryAcquire('key')).rejects.toThrow(closed);
    await expect(locks.tryRun('key', () => undefined)).rejects.toThrow(closed);
  });

  it('called twice, together or one after the other, leaves nothing open', async () => {
    await expectNoOpenHandles(async () => {
      const { app } = await startApp({
        imports: [LockModule.forRoot({ redis: server.url, shutdownTimeout: '1h' })],
      });
      const close = (): Promise<void> => app.close();
      const lock = await app.get(LockService).acquire('order:42');
      // As Nest 11 does when it is told twice; Nest 12 lets the second call wait for the first.
      app.get(LockLifecycle).onModuleDestroy();
      const closing = Promise.all([close(), close()]);
      await lock.release();
      await closing;
      await close();
    });
  });

  it('lets the application’s onModuleDestroy and beforeApplicationShutdown take locks', async () => {
    const log: string[] = [];
    @Injectable()
    class Flusher implements OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown {
      constructor(private readonly locks: LockService) {}

      async onModuleDestroy(): Promise<void> {
        log.push(await this.locks.run('flush', { wait: '5s' }, () => 'flushed at destroy'));
      }

      async beforeApplicationShutdown(): Promise<void> {
        log.push(await this.locks.run('flush', () => 'flushed before shutdown'));
      }

      onApplicationShutdown(): void {
        log.push('shut down');
      }
    }
    await startApp({
      imports: [LockModule.forRoot({ redis: server.url })],
      providers: [Flusher],
    });
    await closeApps();
    expect(log).toEqual(['flushed at destroy', 'flushed before shutdown', 'shut down']);
    expect(await server.command('EXISTS', 'lock:flush')).toBe(0);
  });

  it('lets those who do not wait take locks until the server is closed, and nobody wait', async () => {
    const locks = new LockService({ store: 'memory' });
    const lock = await locks.acquire('order:42');
    locks.refuseWaiting();
    await expect(locks.acquire('order:42', { wait: '60s' })).rejects.toThrow(LockNotAcquiredError);
    expect(await locks.run('order:43', () => 'paid')).toBe('paid');
    await lock.release();
    await locks.shutdown();
    await expect(locks.acquire('order:43')).rejects.toThrow(LockServiceClosedError);
  });

  it('closes every service of an application with several', async () => {
    const { app } = await startApp({
      imports: [
        LockModule.forRoot({ redis: server.url, shutdownTimeout: 50 }),
        LockModule.forRoot({
          redis: server.url,
          shutdownTimeout: 50,
          name: 'jobs',
          keyPrefix: 'jobs:',
        }),
      ],
    });
    const locks = app.get(LockService);
    const lock = await locks.acquire('key');
    await app.close();
    expect(lock.isHeld).toBe(false);
    const clients = String(await server.command('CLIENT', 'LIST'));
    expect(clients).not.toContain('name=holdfast');
  });
});

describe.each(['express', 'fastify'])('an application on %s that receives SIGTERM', (platform) => {
  let program: Program;
  let url: string;
  const agent = new Agent({ keepAlive: true });

  afterEach(async () => {
    agent.destroy();
    await program.kill();
    await server.command('FLUSHALL');
  });

  async function open(env: Readonly<Record<string, string>> = {}): Promise<void> {
    program = new Program('test/nest/module/shutdown-app.ts', {
      PLATFORM: platform,
      REDIS_URL: server.url,
      ...env,
    });
    [, url] = (await program.says(/open on (\S+)/)) as unknown as [string, string];
  }

  function post(path: string, keepAlive: Agent | false = false): Promise<[number, string]> {
    return new Promise((resolve, reject) => {
      httpRequest(`${url}/${path}`, { method: 'POST', agent: keepAlive }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        response.once('end', () => {
          resolve([response.statusCode ?? 0, body]);
        });
      })
        .once('error', reject)
        .end();
    });
  }

  it('a shutdown finishes the request that holds a lock, refuses waiting requests at once, and ends', async () => {
    await open();
    const paying = post('orders/42');
    await program.says(/works on 42/);
    const waiting = [post('waiting/42'), post('waiting/42')];
    await eventually(async () => (await server.command('ZCARD', '{lock:order:42}:queue')) === 1);

    program.signal('SIGTERM');
    for (const [status, body] of await Promise.all(waiting)) {
      expect(status).toBe(503);
      expect(JSON.parse(body)).toMatchObject({ statusCode: 503, code: 'LOCK_SERVICE_CLOSED' });
    }
    expect(await isHeld('order:42')).toBe(true);
    program.signal('SIGUSR2');
    expect(await paying).toEqual([201, 'paid 42']);
    // Nest ends the process by the signal that it got.
    expect(await program.ended).toEqual({ code: null, signal: 'SIGTERM' });
    expect(await isHeld('order:42')).toBe(false);
    expect(program.output).not.toMatch(/ERROR|WARN/);
  });

  it('ends by itself after app.close() without shutdown hooks', async () => {
    await open({ HOOKS: 'no' });
    const paying = post('orders/42');
    await program.says(/works on 42/);
    program.signal('SIGHUP');
    program.signal('SIGUSR2');
    expect(await paying).toEqual([201, 'paid 42']);
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.output).toContain('closed');
    expect(await isHeld('order:42')).toBe(false);
  });

  it('takes the locks back at the deadline, though a client keeps the server from closing', async () => {
    await open({ SHUTDOWN_TIMEOUT: '300ms' });
    // A request that never becomes whole: the server waits for the rest of it.
    const slow = connect(Number(new URL(url).port), '127.0.0.1');
    slow.on('error', () => undefined);
    await until(slow, 'connect');
    slow.write('POST /orders/1 HTTP/1.1\r\nHost: here\r\n');
    const endless = post('endless/42', agent).catch((error: unknown) => error);
    await program.says(/works on 42/);

    program.signal('SIGTERM');
    await program.says(/aborted: shutdown/);
    await eventually(async () => !(await isHeld('order:42')));
    const answer = await endless;
    expect(answer).toEqual([409, expect.stringContaining('LOCK_LOST')]);
    slow.destroy();
    agent.destroy();
    expect(await program.ended).toEqual({ code: null, signal: 'SIGTERM' });
  });
});
