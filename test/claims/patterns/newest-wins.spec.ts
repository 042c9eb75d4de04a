import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import {
  Controller,
  Get,
  Inject,
  Injectable,
  Logger,
  Query,
  type ExecutionContext,
  type INestApplication,
} from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LockLostError, LockNotAcquiredError, LockService, WithLock } from 'nestjs-holdfast';
import { WebSocket, WebSocketServer } from 'ws';
import { closeHttpApps, startHttpApp, type HttpApp } from '../../nest/http-app.js';
import { ChildScript } from '../../support/child-script.js';
import { deferred, eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { SearchController, SearchEngine } from './recipes.js';
import { Services } from './services.js';

interface Request {
  readonly query: { readonly user: string };
  user?: { readonly id: string };
}

let server: RedisServer;
const services = new Services();

beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await RedisServer.start();
});

beforeEach(() => server.command('FLUSHALL'));

afterEach(async () => {
  await closeHttpApps();
  await services.closeAll();
});

afterAll(async () => {
  await server.stop();
  Logger.overrideLogger(['log', 'warn', 'error']);
});

const aborted = async (signal: AbortSignal): Promise<void> => {
  if (!signal.aborted) await once(signal, 'abort');
};

describe.each([['Express'], ['Fastify']] as const)(
  'a search as the user types, on %s',
  (adapter) => {
    /** What the searches that ran were for. */
    const began: string[] = [];
    const stopped: string[] = [];

    @Injectable()
    class Waiting extends SearchEngine {
      async find(text: string, { signal }: { signal: AbortSignal | undefined }): Promise<string[]> {
        began.push(text);
        if (text !== 'holdfast' && signal !== undefined) {
          await aborted(signal);
          stopped.push(text);
        }
        return [text];
      }
    }

    /** The user is in the query. */
    const configure = (app: INestApplication): void => {
      app.useGlobalGuards({
        canActivate: (context: ExecutionContext) => {
          const request = context.switchToHttp().getRequest<Request>();
          request.user = { id: request.query.user };
          return true;
        },
      });
    };

    it('answers the newest request, and 409 those before it, in two processes', async () => {
      began.length = stopped.length = 0;
      const settings = { adapter, configure, options: { redis: server.url } };
      const parts = {
        controllers: [SearchController],
        providers: [{ provide: SearchEngine, useClass: Waiting }],
      };
      const apps: HttpApp[] = [];
      for (let count = 0; count < 2; count += 1) apps.push(await startHttpApp(parts, settings));
      const ask = (index: number, text: string) => apps[index % 2]!.get(`/search?user=7&q=${text}`);
      const words = ['h', 'ho', 'hol', 'hold'];
      const older = [];
      for (const [index, text] of words.entries()) {
        older.push(ask(index, text));
        await eventually(() => began.includes(text));
      }
      const last = await ask(0, 'holdfast');
      expect(last).toMatchObject({ status: 200, body: ['holdfast'] });
      for (const answer of await Promise.all(older)) {
        expect(answer).toMatchObject({ status: 409, retryAfter: null });
        expect(answer.body).toEqual({
          statusCode: 409,
          message: 'A newer request has taken the place of this one.',
          error: 'Conflict',
          code: 'LOCK_REPLACED',
        });
      }
      expect(stopped).toEqual(words);
      // Another user is not affected.
      expect(await apps[1]!.get('/search?user=8&q=holdfast')).toMatchObject({ status: 200 });
      expect(apps.flatMap(({ warnings }) => warnings)).toEqual([]);
    });
  },
);

it('a request whose client leaves while it waits to replace another one does not begin', async () => {
  const began: string[] = [];
  const gate = deferred();

  @Controller()
  class Handlers {
    @Get('work')
    @WithLock('work', { onLocked: 'replace', replaceWait: '30s' })
    async work(@Query('name') name: string): Promise<void> {
      began.push(name);
      await gate.promise;
    }
  }
  const settings = { options: { redis: server.url } };
  const { get, locks } = await startHttpApp({ controllers: [Handlers] }, settings);
  const outcomes: unknown[] = [];
  const onEnd = (call: unknown): void => void outcomes.push((call as { outcome: string }).outcome);
  subscribe('tracing:holdfast:acquire:asyncEnd', onEnd);
  const replacedCalls: string[] = [];
  locks.on('lost', ({ reason }) => replacedCalls.push(reason));
  const older = get('/work?name=older');
  await eventually(() => began.length === 1);
  const client = new AbortController();
  const leaving = get('/work?name=leaves', { signal: client.signal }).catch(() => 'left');
  await eventually(() => replacedCalls.length === 1);
  client.abort();
  expect(await leaving).toBe('left');
  await eventually(() => outcomes.includes('aborted'));
  unsubscribe('tracing:holdfast:acquire:asyncEnd', onEnd);
  gate.resolve();
  expect(await older).toMatchObject({ status: 409 });
  await eventually(async () => !(await locks.inspect('work')).held);
  expect(began).toEqual(['older']);
});

describe('a build of the latest version', () => {
  @Injectable()
  class Builds {
    readonly built: number[] = [];

    constructor(@Inject(LockService) private readonly locks: LockService) {}

    @WithLock('site:<siteId>', { onLocked: 'replace', replaceWait: '30s' })
    async build(siteId: string, version: number): Promise<void> {
      const signal = this.locks.current()?.signal;
      for (let page = 0; page < 3; page += 1) {
        signal?.throwIfAborted();
        await server.command('INCR', `pages:${siteId}`);
        if (version < 3 && page === 1 && signal !== undefined) await aborted(signal);
      }
      this.built.push(version);
    }
  }

  it('is the only one that ends, and never runs beside another', async () => {
    const { app } = await startHttpApp({ providers: [Builds] }, { options: { redis: server.url } });
    const builds = app.get(Builds);
    const ends: Promise<unknown>[] = [];
    for (const version of [1, 2]) {
      ends.push(builds.build('a', version).catch((error: unknown) => error));
      await eventually(async () => Number(await server.command('GET', 'pages:a')) === 2 * version);
    }
    await builds.build('a', 3);
    for (const end of await Promise.all(ends)) {
      expect(end).toBeInstanceOf(LockLostError);
      expect(end).toMatchObject({ reason: 'replaced', code: 'LOCK_REPLACED' });
      expect((end as LockLostError).intervention?.by).toMatch(
        /^Builds\.build in .+ \(process \d+ on .+\)$/,
      );
    }
    expect(builds.built).toEqual([3]);
  });
});

describe('one live connection for each user', () => {
  it('closes the connection before, in another process, too', async () => {
    const gateways = await Promise.all(
      Array.from({ length: 2 }, async () => {
        const locks = await services.open(server.url);
        const gateway = new WebSocketServer({ port: 0, host: '127.0.0.1' });
        gateway.on('connection', (socket) => {
          const connected = async (): Promise<void> => {
            const lock = await locks.acquire('live:7', { onLocked: 'replace' });
            lock.signal.addEventListener('abort', () => {
              socket.close(4_001, 'replaced');
            });
            socket.on('close', () => void lock.release());
            if (socket.readyState !== WebSocket.OPEN) await lock.release();
            socket.send('ready');
          };
          connected().catch(() => {
            socket.close(1_013, 'try again');
          });
        });
        await once(gateway, 'listening');
        return gateway;
      }),
    );
    const connect = async (index: number): Promise<WebSocket> => {
      const { port } = gateways[index]!.address() as AddressInfo;
      const socket = new WebSocket(`ws://127.0.0.1:${port}`);
      await once(socket, 'message');
      return socket;
    };
    const first = await connect(0);
    const closed = once(first, 'close');
    const second = await connect(1);
    const [code] = (await closed) as [number];
    expect(code).toBe(4_001);
    expect(second.readyState).toBe(WebSocket.OPEN);
    second.close();
    await once(second, 'close');
    await eventually(async () => (await server.command('EXISTS', 'lock:live:7')) === 0);
    for (const gateway of gateways) await new Promise((resolve) => gateway.close(resolve));
  });
});

describe('a call that replaces the holder, on Redis,', () => {
  const HOLDER = new URL('../../admin/holder-process.ts', import.meta.url);

  it('is the last of a burst', async () => {
    const all = await Promise.all([1, 2, 3].map(() => services.open(server.url)));
    const ends = new Map<number, unknown>();
    const calls: Promise<unknown>[] = [];
    const end = new AbortController();
    for (let index = 0; index < 10; index += 1) {
      const work = ({ signal }: { signal: AbortSignal }): Promise<unknown> =>
        Promise.race([aborted(signal), aborted(end.signal)]);
      const call = all[index % 3]!.run('key', { onLocked: 'replace', replaceWait: '60s' }, work);
      calls.push(
        call.then(
          () => ends.set(index, 'ended'),
          (error: unknown) => ends.set(index, (error as LockLostError).reason),
        ),
      );
      // It has drawn its number.
      await eventually(
        async () => Number(await server.command('GET', '{lock:key}:newest')) === index + 1,
      );
    }
    await eventually(() => ends.size === 9);
    end.abort();
    await Promise.all(calls);
    const expected = Array.from({ length: 10 }, (_, index) => [
      index,
      index < 9 ? 'replaced' : 'ended',
    ]);
    expect([...ends].toSorted(([one], [other]) => one - other)).toEqual(expected);
  });

  it('has the key of a frozen process after replaceWait', async () => {
    const locks = await services.open(server.url);
    const child = new ChildScript(HOLDER, ['key', server.url]);
    try {
      await eventually(async () => (await locks.inspect('key')).held, { withinMs: 30_000 });
      await eventually(async () => Number(await server.command('ZCARD', 'lock:{instances}')) === 2);
      process.kill(child.pid, 'SIGSTOP');
      const lock = await locks.acquire('key', { onLocked: 'replace', replaceWait: '100ms' });
      expect(lock.isHeld).toBe(true);
    } finally {
      await child.kill();
    }
  });

  it('leaves the lock of other software alone', async () => {
    const locks = await services.open(server.url);
    await server.command('SET', 'lock:key', 'of a script', 'PX', 60_000);
    const asking = locks.acquire('key', { onLocked: 'replace' });
    await expect(asking).rejects.toThrow(LockNotAcquiredError);
    expect(await server.command('GET', 'lock:key')).toBe('of a script');
  });

  it('needs one Redis', async () => {
    const other = await RedisServer.start();
    const third = await RedisServer.start();
    try {
      const locks = await services.open([server.url, other.url, third.url]);
      const asking = locks.acquire('key', { onLocked: 'replace' });
      await expect(asking).rejects.toThrow('Option "onLocked": \'replace\' needs one Redis');
      await services.closeAll();
    } finally {
      await Promise.all([other.stop(), third.stop()]);
    }
  });
});
