import {
  Controller,
  Get,
  Injectable,
  Module,
  NotFoundException,
  Param,
  Post,
  UseGuards,
  type CanActivate,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import {
  LockModule,
  LockNotAcquiredError,
  LockNotBoundError,
  LockService,
  WithLock,
} from 'nestjs-holdfast';
import { lastValueFrom, Observable, Subject, toArray } from 'rxjs';
import { ADAPTERS, closeHttpApps, CONFLICT, startHttpApp } from '../../nest/http-app.js';
import { Gate } from '../../nest/gate.js';
import { RedisServer } from '../../support/redis-server.js';

afterEach(closeHttpApps);

describe.each(ADAPTERS)('on %s', (adapter) => {
  it('TR-31 a guard beneath the decorator still denies', async () => {
    let ran = 0;

    @Injectable()
    class Deny implements CanActivate {
      canActivate(): boolean {
        return false;
      }
    }

    @Controller()
    class Guarded {
      @Get('beneath')
      @WithLock('a')
      @UseGuards(Deny)
      async beneath(): Promise<void> {
        ran += 1;
      }

      @Get('above')
      @UseGuards(Deny)
      @WithLock('a')
      async above(): Promise<void> {
        ran += 1;
      }
    }

    const { get, locks } = await startHttpApp({ controllers: [Guarded] }, { adapter });
    let taken = 0;
    locks.on('acquired', () => (taken += 1));
    expect((await get('/beneath')).status).toBe(403);
    expect((await get('/above')).status).toBe(403);
    expect([ran, taken]).toEqual([0, 0]);
  });

  it('TR-32 above and beneath @Get and @Cron the decorator works, and so do they', async () => {
    @Controller()
    class Routes {
      constructor(private readonly locks: LockService) {}

      @WithLock('a')
      @Get('above/:id')
      async above(@Param('id') id: string): Promise<string> {
        return `${id} ${String(this.locks.current()?.keys)}`;
      }

      @Get('beneath/:id')
      @WithLock('a')
      async beneath(@Param('id') id: string): Promise<string> {
        return `${id} ${String(this.locks.current()?.keys)}`;
      }
    }

    const ran: string[] = [];
    @Injectable()
    class Jobs {
      @WithLock('a', { onLocked: 'skip' })
      @Cron('0 0 1 1 *', { name: 'above', waitForCompletion: true })
      async above(): Promise<void> {
        ran.push('above');
      }

      @Cron('0 0 1 1 *', { name: 'beneath', waitForCompletion: true })
      @WithLock('a', { onLocked: 'skip' })
      async beneath(): Promise<void> {
        ran.push('beneath');
      }
    }

    const { app, get, locks } = await startHttpApp(
      { imports: [ScheduleModule.forRoot()], controllers: [Routes], providers: [Jobs] },
      { adapter },
    );
    expect((await get('/above/1')).body).toBe('1 a');
    expect((await get('/beneath/2')).body).toBe('2 a');

    const jobs = ['above', 'beneath'].map((name) => app.get(SchedulerRegistry).getCronJob(name));
    for (const job of jobs) await job.fireOnTick();
    expect(ran).toEqual(['above', 'beneath']);
    const lock = await locks.acquire('a');
    for (const job of jobs) await job.fireOnTick();
    await lock.release();
    expect(ran).toHaveLength(2);
  });

  it('TR-33 contention answers 409 with Retry-After', async () => {
    const gate = new Gate();

    @Controller()
    class Busy {
      @Post(':id')
      @WithLock('a:<id>', { ttl: '4s' })
      async work(@Param('id') id: string): Promise<string> {
        await gate.pass();
        return id;
      }
    }

    const { post } = await startHttpApp({ controllers: [Busy] }, { adapter });
    const first = post('/1');
    await gate.reached;
    expect(await post('/1')).toMatchObject({
      status: 409,
      body: CONFLICT,
      retryAfter: expect.stringMatching(/^[1-4]$/),
    });
    gate.open();
    expect((await first).status).toBe(201);
  });

  it("TR-34 the method's own exception is untouched", async () => {
    @Injectable()
    class Orders {
      @WithLock('order:<id>')
      async find(id: string): Promise<never> {
        throw new NotFoundException(`no order ${id}`);
      }
    }

    @Controller()
    class Finding {
      constructor(private readonly orders: Orders) {}

      @Get(':id')
      @WithLock('a:<id>')
      find(@Param('id') id: string): Promise<never> {
        return this.orders.find(id);
      }
    }

    const { get } = await startHttpApp(
      { controllers: [Finding], providers: [Orders] },
      { adapter },
    );
    const { status, body } = await get('/7');
    expect(status).toBe(404);
    expect(body).toEqual({ statusCode: 404, message: 'no order 7', error: 'Not Found' });
  });

  it('TR-39 the Redis clients of the application are not touched on shutdown', async () => {
    const redis = await RedisServer.start();
    const client = new Redis(redis.port);
    try {
      const gate = new Gate();

      @Controller()
      class Busy {
        @Get('work')
        @WithLock('a')
        async work(): Promise<string | null> {
          await gate.pass();
          await client.set('used', 'to the end');
          return client.get('used');
        }
      }

      const { app, get } = await startHttpApp(
        { controllers: [Busy] },
        { adapter, options: { redis: client, shutdownTimeout: '10s' } },
      );
      // A connection that is kept alive would delay the closing of the server.
      const answer = get('/work', { headers: { connection: 'close' } }).catch(() => undefined);
      await gate.reached;
      const closed = app.close();
      gate.open();
      await closed;
      await answer;
      expect(client.status).toBe('ready');
      expect(await client.get('used')).toBe('to the end');
    } finally {
      client.disconnect();
      await redis.stop();
    }
  });
});

describe('in any application', () => {
  let locks: LockService;

  beforeAll(async () => {
    locks = new LockService({ store: 'memory' });
    await locks.open();
  });
  afterAll(() => locks.shutdown());

  it("TR-35 the refusal of an inner lock is not taken for the call's own", async () => {
    class Jobs {
      @WithLock('outer', { onLocked: 'skip' })
      async skipping(): Promise<string | undefined> {
        return this.inner();
      }

      @WithLock('outer', { onLocked: () => 'instead' })
      async falling(): Promise<string> {
        return this.inner();
      }

      @WithLock('inner')
      async inner(): Promise<string> {
        return 'ran';
      }
    }
    const jobs = locks.bind(new Jobs());
    const lock = await locks.acquire('inner');
    await expect(jobs.skipping()).rejects.toMatchObject({ keys: ['inner'] });
    await expect(jobs.falling()).rejects.toBeInstanceOf(LockNotAcquiredError);
    await lock.release();
    const outer = await locks.acquire('outer');
    expect(await jobs.skipping()).toBeUndefined();
    expect(await jobs.falling()).toBe('instead');
    await outer.release();
  });

  it('TR-36 without a lock service the call is an error, and the method does not run', async () => {
    let ran = 0;
    @Injectable()
    class Orders {
      @WithLock('a')
      async pay(): Promise<void> {
        ran += 1;
      }

      @WithLock('a', { onLocked: 'skip' })
      async skip(): Promise<void> {
        ran += 1;
      }
    }
    await expect(new Orders().pay()).rejects.toBeInstanceOf(LockNotBoundError);
    await expect(new Orders().skip()).rejects.toBeInstanceOf(LockNotBoundError);
    expect(ran).toBe(0);

    @Module({ providers: [Orders] })
    class WithoutLocks {}
    const start = NestFactory.createApplicationContext(WithoutLocks, {
      logger: false,
      abortOnError: false,
    });
    await expect(start).rejects.toThrow('import LockModule.forRoot({ … }) in the root module');
  });

  it('TR-37 two applications in one process keep their own locks', async () => {
    @Injectable()
    class Orders {
      constructor(readonly locks: LockService) {}

      @WithLock('a')
      async pay(): Promise<string[]> {
        const held = await Promise.all(services.map((each) => each.inspect('a')));
        return held.map(({ held }, index) => (held ? `held in ${index}` : 'free'));
      }
    }

    const start = () =>
      NestFactory.createApplicationContext(
        {
          module: class {},
          imports: [LockModule.forRoot({ store: 'memory' })],
          providers: [Orders],
        },
        { logger: false },
      );
    const apps = [await start(), await start()];
    const services = apps.map((app) => app.get(LockService));
    expect(await apps[0]!.get(Orders).pay()).toEqual(['held in 0', 'free']);
    expect(await apps[1]!.get(Orders).pay()).toEqual(['free', 'held in 1']);
    await apps[1]!.close();
    services.pop();
    expect((await apps[0]!.get(Orders).pay())[0]).toBe('held in 0');
    await apps[0]!.close();
  });

  it('TR-38 a stream is locked to its end, and an async generator is still one', async () => {
    const source = new Subject<number>();
    class Streams {
      @WithLock('a', { returns: 'observable' })
      observable(): Observable<number> {
        return source;
      }

      @WithLock('a')
      async *generator(): AsyncGenerator<number> {
        yield 1;
        yield 2;
      }
    }
    const streams = locks.bind(new Streams());
    const held = async (): Promise<boolean> => (await locks.inspect('a')).held;

    const acquired = new Promise((resolve) => locks.on('acquired', resolve));
    const values = lastValueFrom(streams.observable().pipe(toArray()));
    await acquired;
    await new Promise(setImmediate);
    source.next(1);
    expect(await held()).toBe(true);
    source.complete();
    expect(await values).toEqual([1]);
    expect(await held()).toBe(false);

    const seen: unknown[] = [];
    for await (const value of streams.generator()) seen.push(value, await held());
    expect(seen).toEqual([1, true, 2, true]);
    expect(await held()).toBe(false);
  });

  it('TR-40 nothing of the object is overwritten: the service comes by a symbol', async () => {
    @Injectable()
    class Named {
      lockService = 'mine';
      locks = 'mine';
      redlock = 'mine';

      @WithLock('a')
      async work(): Promise<object> {
        return Object.assign({}, this);
      }
    }
    const app = await NestFactory.createApplicationContext(
      { module: class {}, imports: [LockModule.forRoot({ store: 'memory' })], providers: [Named] },
      { logger: false },
    );
    const named = app.get(Named);
    const fields = { lockService: 'mine', locks: 'mine', redlock: 'mine' };
    expect(await named.work()).toEqual(fields);
    expect(Reflect.ownKeys(named)).toEqual(Object.keys(fields));
    await app.close();
  });

  it('TR-41 a key without a value, and an empty list of keys, are refused', async () => {
    let ran = 0;
    class Orders {
      @WithLock('order:<id>')
      async named(id: unknown): Promise<unknown> {
        ran += 1;
        return id;
      }

      @WithLock((ids: string[]) => ids)
      async listed(ids: string[]): Promise<unknown> {
        ran += 1;
        return ids;
      }
    }
    const orders = locks.bind(new Orders());
    for (const value of [undefined, null, '', NaN, {}, Symbol('id')]) {
      await expect(orders.named(value)).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
    }
    await expect(orders.listed([])).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
    await expect(locks.acquire([])).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
    expect(ran).toBe(0);
    expect(() => {
      class Empty {
        async work(): Promise<void> {}
      }
      const descriptor = Object.getOwnPropertyDescriptor(Empty.prototype, 'work')!;
      WithLock([] as unknown as ['a'])(Empty.prototype, 'work', descriptor as never);
    }).toThrow('@WithLock on Empty.work has no key');
  });

  it('TR-43 name and length of the method are kept', () => {
    class Orders {
      @WithLock('order:<from>:<to>')
      async transfer(from: string, to: string, _amount = 0): Promise<string> {
        return from + to;
      }
    }
    const { transfer } = Orders.prototype;
    expect([transfer.name, transfer.length]).toEqual(['transfer', 2]);
  });
});

describe('with Redis', () => {
  let redis: RedisServer;

  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterEach(closeHttpApps);
  afterAll(() => redis.stop());

  it('TR-33 contention between two processes’ applications answers 409 with Retry-After', async () => {
    const gate = new Gate();

    @Controller()
    class Busy {
      @Post(':id')
      @WithLock('a:<request.params.id>', { ttl: '4s' })
      async work(): Promise<void> {
        await gate.pass();
      }
    }

    const options = { redis: redis.url };
    const one = await startHttpApp({ controllers: [Busy] }, { options });
    const two = await startHttpApp({ controllers: [Busy] }, { options, adapter: 'Fastify' });
    const first = one.post('/1');
    await gate.reached;
    const { status, body, retryAfter } = await two.post('/1');
    expect([status, body]).toEqual([409, CONFLICT]);
    expect(retryAfter).toMatch(/^[1-4]$/);
    gate.open();
    expect((await first).status).toBe(201);
    expect((await two.post('/1')).status).toBe(201);
  });
});
