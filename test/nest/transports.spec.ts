import { EventEmitter } from 'node:events';
import {
  Catch,
  Controller,
  Get,
  Inject,
  Injectable,
  ParseIntPipe,
  SetMetadata,
  UseGuards,
  UseInterceptors,
  type CanActivate,
} from '@nestjs/common';
import type {
  CallHandler,
  ExceptionFilter,
  ExecutionContext,
  INestMicroservice,
  NestInterceptor,
  Type,
} from '@nestjs/common';
import {
  ClientProxyFactory,
  MessagePattern,
  Payload,
  RpcException,
  Transport,
  type ClientProxy,
} from '@nestjs/microservices';
import { WsException } from '@nestjs/websockets';
import { Test } from '@nestjs/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  LockInterceptor,
  LockKeyError,
  LockModule,
  LockNotAcquiredError,
  LockService,
  WithLock,
} from 'nestjs-holdfast';
import { LockTestingModule, TestLocks } from 'nestjs-holdfast/testing';
import { defer, lastValueFrom, NEVER, Observable, of, tap, throwError, toArray } from 'rxjs';
import { LockErrorInterceptor } from '../../lib/nest/handlers/lock-error.interceptor.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { CONFLICT as BODY, closeHttpApps, startHttpApp } from './http-app.js';

const CONFLICT = { ...BODY, retryAfterMs: expect.any(Number) };

const refusal = (): LockNotAcquiredError =>
  new LockNotAcquiredError({ keys: ['secret:1'], retryAfterMs: 1_000, waitedMs: 0 });

@Injectable()
class Refusing implements CanActivate {
  canActivate(): boolean {
    throw refusal();
  }
}

const asked: unknown[] = [];

@Injectable()
class Noting implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    asked.push(context.switchToRpc().getData());
    return true;
  }
}

@Controller()
class Handlers {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  @MessagePattern('piped')
  @WithLock(['order:<0>', 'raw:<request.body.raw>'])
  async piped(@Payload('id', ParseIntPipe) _id: number): Promise<unknown> {
    return this.locks.current()?.keys;
  }

  @MessagePattern('work')
  @WithLock('order:<0.id>')
  async work(@Payload() _order: object): Promise<void> {
    const lock = this.locks.current();
    await new Promise((resolve) => {
      lock?.signal.addEventListener('abort', resolve);
      this.locks.lose('order:5');
    });
  }

  @MessagePattern('newest')
  @WithLock('newest:<0.id>', { onLocked: 'replace' })
  async newest(@Payload() { isLast }: { isLast: boolean }): Promise<string> {
    if (isLast) return 'the last one';
    asked.push('newest');
    const signal = this.locks.current()?.signal;
    await new Promise((resolve) => signal?.addEventListener('abort', resolve));
    return 'replaced';
  }

  @MessagePattern('endless')
  @WithLock('order:<request.body.id>', { returns: 'observable' })
  endless(): Observable<unknown> {
    return new Observable((subscriber) => {
      subscriber.next(1);
      this.locks.lose('order:6');
    });
  }

  @MessagePattern('pay')
  @UseGuards(Noting)
  @WithLock('order:<order.id>')
  async pay(@Payload() order: { id: number }): Promise<unknown> {
    return { paid: order.id, under: this.locks.current()?.keys };
  }

  @MessagePattern('raw')
  @WithLock('order:<request.body.id>')
  async raw(): Promise<unknown> {
    return this.locks.current()?.keys;
  }

  @MessagePattern('service')
  async service(): Promise<void> {
    throw refusal();
  }

  @MessagePattern('guarded')
  @UseGuards(Refusing)
  async guarded(): Promise<void> {}

  @MessagePattern('stream')
  @WithLock('order:<request.body.id>', { returns: 'observable' })
  stream(): Observable<unknown> {
    return defer(async () => this.locks.current()?.keys);
  }
}

describe('over TCP', () => {
  let app: INestMicroservice;
  let client: ClientProxy;

  const send = (pattern: string, data: unknown): Promise<unknown> =>
    lastValueFrom(client.send<unknown>(pattern, data));

  beforeAll(async () => {
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot({ shutdownTimeout: '100ms' })],
      controllers: [Handlers],
    }).compile();
    const options = { host: '127.0.0.1', port: await freePort() };
    app = module.createNestMicroservice({ transport: Transport.TCP, options, logger: false });
    await app.listen();
    client = ClientProxyFactory.create({ transport: Transport.TCP, options });
    await client.connect();
  });
  afterAll(async () => {
    await client.close();
    await app.close();
  });

  it('a handler runs under its lock, by the payload raw and as a parameter', async () => {
    expect(await send('pay', { id: 7 })).toEqual({ paid: 7, under: ['order:7'] });
    expect(await send('raw', { id: 7 })).toEqual(['order:7']);
    expect(await send('stream', { id: 7 })).toEqual(['order:7']);
  });

  it('a refusal is the answer, in the form of an RpcException', async () => {
    const lock = await app.get(LockService).acquire('order:7');
    for (const pattern of ['pay', 'raw', 'stream']) {
      await expect(send(pattern, { id: 7 })).rejects.toEqual(CONFLICT);
    }
    expect(await send('pay', { id: 8 })).toMatchObject({ paid: 8 });
    await lock.release();
  });

  it('the lock is taken after the guards and the pipes', async () => {
    expect(await send('piped', { id: '07', raw: '07' })).toEqual(['order:7', 'raw:07']);
    const lock = await app.get(LockService).acquire('order:7');
    asked.splice(0);
    await expect(send('pay', { id: 7 })).rejects.toEqual(CONFLICT);
    expect(asked).toEqual([{ id: 7 }]);
    await lock.release();
  });

  it('an outage is the answer, in the same form', async () => {
    const outage = { statusCode: 503, code: 'LOCK_STORE_UNAVAILABLE', retryAfterMs: 1_000 };
    app.get(TestLocks).fail();
    for (const pattern of ['pay', 'raw', 'stream'])
      await expect(send(pattern, { id: 7 })).rejects.toMatchObject(outage);
    app.get(TestLocks).recover();
  });

  it('so is a loss, which ends an endless stream', async () => {
    const loss = { statusCode: 409, code: 'LOCK_LOST' };
    await expect(send('work', { id: 5 })).rejects.toMatchObject(loss);
    await expect(send('endless', { id: 6 })).rejects.toMatchObject(loss);
  });

  it('so is that a newer call has come', async () => {
    asked.length = 0;
    const older = send('newest', { id: 7, isLast: false });
    const answer = { statusCode: 409, code: 'LOCK_REPLACED' };
    const failure = expect(older).rejects.toMatchObject(answer);
    await eventually(() => asked.length === 1);
    expect(await send('newest', { id: 7, isLast: true })).toBe('the last one');
    await failure;
  });

  it('so is one of a service or a guard', async () => {
    await expect(send('service', {})).rejects.toEqual(CONFLICT);
    await expect(send('guarded', {})).rejects.toEqual(CONFLICT);
  });
});

describe.each([
  ['as the application', true],
  ['without anything of the application', false],
])('in a hybrid application, %s', (_how, inheritAppConfig) => {
  const caught: unknown[] = [];
  let client: ClientProxy | undefined;

  afterEach(async () => {
    await client?.close();
    await closeHttpApps();
  });

  /** Sees what the interceptor made of it. */
  @Injectable()
  class Watching implements NestInterceptor {
    intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
      return next.handle().pipe(tap({ error: (error: unknown) => caught.push(error) }));
    }
  }

  @Controller()
  class Procedures {
    @MessagePattern('service')
    async service(): Promise<void> {
      throw refusal();
    }

    @MessagePattern('watched')
    @UseInterceptors(Watching)
    async watched(): Promise<void> {
      throw refusal();
    }

    @MessagePattern('guarded')
    @UseGuards(Refusing)
    async guarded(): Promise<void> {}

    @MessagePattern('fault')
    async fault(): Promise<void> {
      throw new LockKeyError({ problem: 'no such key' });
    }
  }

  const start = async (controller: Type, filters: readonly ExceptionFilter[] = []) => {
    const options = { host: '127.0.0.1', port: await freePort() };
    const started = await startHttpApp(
      { controllers: [controller] },
      {
        configure: (made) => {
          made.useGlobalFilters(...filters);
          made.connectMicroservice({ transport: Transport.TCP, options }, { inheritAppConfig });
        },
      },
    );
    await started.app.startAllMicroservices();
    const connected = ClientProxyFactory.create({ transport: Transport.TCP, options });
    client = connected;
    const send = (pattern: string) => lastValueFrom(connected.send<unknown>(pattern, {}));
    return { ...started, send };
  };

  it('lock errors of services are answered once, and faults logged', async () => {
    const { send, warnings } = await start(Procedures);
    await expect(send('service')).rejects.toEqual(CONFLICT);
    await expect(send('watched')).rejects.toEqual(CONFLICT);
    expect(caught.splice(0)).toEqual([expect.any(LockNotAcquiredError)]);
    await expect(send('fault')).rejects.toMatchObject({ statusCode: 500 });
    expect(warnings.filter((line) => line.includes('no such key'))).toHaveLength(1);
  });

  it('so are those of guards, also of a controller that has routes', async () => {
    @Controller()
    class Both {
      @MessagePattern('guarded')
      @UseGuards(Refusing)
      async guarded(): Promise<void> {}

      @Get()
      @UseGuards(Refusing)
      async route(): Promise<void> {}
    }
    const { send } = await start(Procedures);
    await expect(send('guarded')).rejects.toEqual(CONFLICT);
    await client?.close();
    const both = await start(Both);
    await expect(both.send('guarded')).rejects.toEqual(CONFLICT);
    expect((await both.get('/')).body).toEqual(BODY);
  });

  it('those of guards go to a filter of the application where it applies', async () => {
    @Catch(LockNotAcquiredError)
    class Apologizing implements ExceptionFilter {
      catch(): Observable<never> {
        return throwError(() => 'sorry');
      }
    }
    const { send } = await start(Procedures, [new Apologizing()]);
    await expect(send('guarded')).rejects.toEqual(inheritAppConfig ? 'sorry' : CONFLICT);
  });
});

interface FakeContext {
  readonly type: string;
  readonly handler?: (...args: never[]) => unknown;
  readonly args?: readonly unknown[];
}

function contextOf({ type, handler = () => undefined, args = [] }: FakeContext): ExecutionContext {
  const at = (index: number) => () => args[index];
  return {
    getType: () => type,
    getClass: () => Handlers,
    getHandler: () => handler,
    getArgs: () => args,
    getArgByIndex: (index: number) => args[index],
    switchToHttp: () => ({ getRequest: at(0), getResponse: at(1), getNext: at(2) }),
    switchToRpc: () => ({ getData: at(0), getContext: at(1) }),
    switchToWs: () => ({ getClient: at(0), getData: at(1), getPattern: at(2) }),
  } as unknown as ExecutionContext;
}

class Calls {
  @SetMetadata('telegraf:listener', 'socket')
  @WithLock(['body:<request.body.id>', 'user:<user.id>', 'room:<request.query.room>'])
  async socket(): Promise<string> {
    return 'ran';
  }

  @SetMetadata('telegraf:listener', 'resolve')
  @WithLock(['order:<request.params.id>', 'user:<user.id>'])
  async resolve(): Promise<string> {
    return 'ran';
  }

  @WithLock('a', { onLocked: 'skip' })
  async skipping(): Promise<string | undefined> {
    return 'ran';
  }

  @WithLock('a')
  async *feed(): AsyncGenerator<string> {
    yield 'ran';
  }

  @SetMetadata('telegraf:listener', 'newest')
  @WithLock('newest:<request.params.id>', { onLocked: 'replace', replaceWait: '5s' })
  async newest(): Promise<string> {
    return 'ran';
  }

  @WithLock((id: string) => {
    asked.push(id);
    return id;
  })
  async keyed(id: string): Promise<string> {
    return id;
  }

  @WithLock('endless', { returns: 'observable' })
  endless(): Observable<never> {
    return defer(() => {
      asked.push('endless');
      return NEVER;
    });
  }

  @WithLock('<_id>', { onLocked: 'skip', returns: 'observable' })
  skippingStream(_id: string): Observable<string> {
    return of('ran');
  }
}

describe('in the execution context of', () => {
  const started = (async () => {
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory', shutdownTimeout: '100ms' })],
      providers: [LockInterceptor, Calls],
    }).compile();
    return module.init();
  })();
  afterAll(async () => (await started).close());

  const call = async (name: 'socket' | 'resolve' | 'skipping', context: FakeContext) => {
    const app = await started;
    const calls = app.get(Calls);
    const next: CallHandler = { handle: () => defer(() => calls[name]()) };
    const execution = contextOf({ ...context, handler: Calls.prototype[name] });
    return lastValueFrom(app.get(LockInterceptor).intercept(execution, next));
  };
  /** The response of a handler over HTTP, and the handler's call. */
  const request = async (name: keyof Calls, work: (calls: Calls) => unknown) => {
    const app = await started;
    const response = Object.assign(new EventEmitter(), { writableEnded: false });
    const args = [{ params: { id: 7 }, user: { id: 3 } }, response];
    const execution = contextOf({ type: 'http', args, handler: Calls.prototype[name] });
    const handle = jest.fn(() => defer(async () => work(app.get(Calls))));
    const answer = app.get(LockInterceptor).intercept(execution, { handle });
    return { answer, response, handle, locks: app.get(LockService) };
  };
  const socket = {
    handshake: { headers: {}, query: { room: 'north' } },
    data: { user: { id: 3 } },
  };

  it('a WebSocket, keys are of message, handshake and user, and a refusal is a WsException', async () => {
    const locks = (await started).get(LockService);
    const context = { type: 'ws', args: [socket, { id: 7 }, 'pay'] };
    const taken: (readonly string[])[] = [];
    const stop = locks.on('acquired', ({ keys }) => taken.push(keys));
    expect(await call('socket', context)).toBe('ran');
    stop();
    expect(taken).toEqual([['body:7', 'room:north', 'user:3']]);

    const lock = await locks.acquire('user:3');
    const refused = call('socket', context);
    await expect(refused).rejects.toBeInstanceOf(WsException);
    await expect(refused).rejects.toMatchObject({ cause: { keys: taken[0] } });
    const error = await refused.catch((thrown: unknown) => thrown as WsException);
    expect((error as WsException).getError()).toEqual({ ...CONFLICT, cause: { pattern: 'pay' } });
    await lock.release();
  });

  it('GraphQL, keys are of arguments and user, and a refusal stays as it is', async () => {
    const locks = (await started).get(LockService);
    const graphql = { req: { headers: {}, user: { id: 3 } } };
    const context = { type: 'graphql', args: [undefined, { id: 7 }, graphql, undefined] };
    expect(await call('resolve', context)).toBe('ran');
    const lock = await locks.acquire('order:7');
    await expect(call('resolve', context)).rejects.toBeInstanceOf(LockNotAcquiredError);
    await lock.release();
  });

  it('a transport of others, keys are of what it has in the place of a request, and a refusal stays as it is', async () => {
    const locks = (await started).get(LockService);
    const request = { params: { id: 7 }, user: { id: 3 } };
    const context = { type: 'telegraf', args: [request] };
    expect(await call('resolve', context)).toBe('ran');
    const lock = await locks.acquire('order:7');
    await expect(call('resolve', context)).rejects.toBeInstanceOf(LockNotAcquiredError);
    await lock.release();
  });

  it('GraphQL, the error of a subscription says what is for clients', async () => {
    const app = await started;
    const execution = contextOf({
      ...{ type: 'graphql', args: [undefined, {}, {}, undefined] },
      handler: Calls.prototype.feed,
    });
    const next = { handle: () => of(app.get(Calls).feed()) };
    const feed = app.get(LockInterceptor).intercept(execution, next);
    const iterator = (await lastValueFrom(feed)) as AsyncGenerator;
    const lock = await app.get(LockService).acquire('a');
    await expect(iterator.next()).rejects.toThrow(BODY.message);
    await lock.release();
  });

  it('HTTP, a refusal by a key of the request comes before the interceptors and pipes of the handler', async () => {
    const { answer, handle, locks } = await request('resolve', (calls) => calls.resolve());
    const lock = await locks.acquire('order:7');
    await expect(lastValueFrom(answer)).rejects.toBeInstanceOf(LockNotAcquiredError);
    expect(handle).not.toHaveBeenCalled();
    await lock.release();
    expect(await lastValueFrom(answer)).toBe('ran');
    expect(handle).toHaveBeenCalledTimes(1);
  });

  it('HTTP, a handler is not called whose caller leaves as the lock is granted', async () => {
    const { answer, handle, locks } = await request('resolve', (calls) => calls.resolve());
    const stop = locks.on('acquired', () => {
      stop();
      subscription.unsubscribe();
    });
    const released = new Promise((resolve) => locks.on('released', resolve));
    const subscription = answer.subscribe();
    await released;
    expect(handle).not.toHaveBeenCalled();
  });

  it('HTTP, another locked method that its interceptors call takes its own lock', async () => {
    const { answer, locks } = await request('resolve', async (calls) => [
      await calls.keyed('other'),
      await calls.resolve(),
    ]);
    const taken: (readonly string[])[] = [];
    const stop = locks.on('acquired', ({ keys }) => taken.push(keys));
    expect(await lastValueFrom(answer)).toEqual(['other', 'ran']);
    stop();
    expect(taken).toEqual([['order:7', 'user:3'], ['other']]);
  });

  it('HTTP, a function is asked for the key of a call once', async () => {
    asked.length = 0;
    const { answer } = await request('keyed', (calls) => calls.keyed('8'));
    expect(await lastValueFrom(answer)).toBe('8');
    expect(asked).toEqual(['8']);
  });

  it('HTTP, a call whose client goes away does not replace the holder', async () => {
    const { answer, response, handle, locks } = await request('newest', (calls) => calls.newest());
    const lock = await locks.acquire('newest:7');
    const replaced = new Promise((resolve) => {
      lock.signal.addEventListener('abort', resolve);
    });
    const taken = jest.fn();
    const stop = locks.on('acquired', taken);
    const call = expect(lastValueFrom(answer)).rejects.toThrow('The client went away');
    await replaced;
    response.emit('close');
    await call;
    stop();
    expect(taken).not.toHaveBeenCalled();
    expect(handle).not.toHaveBeenCalled();
    await lock.release().catch(() => undefined);
  });

  it('HTTP, an Observable that is skipped answers nothing, but does answer', async () => {
    const { answer, locks } = await request('skippingStream', (calls) =>
      lastValueFrom(calls.skippingStream('7')),
    );
    const lock = await locks.acquire('7');
    expect(await lastValueFrom(answer)).toBeUndefined();
    await lock.release();
    expect(await lastValueFrom(answer)).toBe('ran');
  });

  it.each([
    ['rpc', []],
    ['telegraf', [undefined]],
  ])('%s, an Observable that is skipped sends %j', async (type, sent) => {
    const app = await started;
    const lock = await app.get(LockService).acquire('7');
    const handler = Calls.prototype.skippingStream;
    const execution = contextOf({ type, args: [{}, {}], handler });
    const next = { handle: () => app.get(Calls).skippingStream('7') };
    const answer = app.get(LockInterceptor).intercept(execution, next);
    expect(await lastValueFrom(answer.pipe(toArray()))).toStrictEqual(sent);
    await lock.release();
  });

  it.each(['rpc', 'ws', 'telegraf'])(
    '%s, an Observable without an end gives its lock back when its subscriber leaves',
    async (type) => {
      const app = await started;
      const locks = app.get(LockService);
      const handler = Calls.prototype.endless;
      const execution = contextOf({ type, args: [{}, {}], handler });
      const next = { handle: () => defer(() => app.get(Calls).endless()) };
      const released = new Promise((resolve) => locks.on('released', resolve));
      asked.length = 0;
      const answer = app.get(LockInterceptor).intercept(execution, next).subscribe();
      await eventually(() => asked.includes('endless'));
      answer.unsubscribe();
      await released;
    },
  );

  it('an event, a skipped call answers nothing', async () => {
    const locks = (await started).get(LockService);
    const lock = await locks.acquire('a');
    expect(await call('skipping', { type: 'rpc', args: [{}, {}] })).toBeUndefined();
    await lock.release();
    expect(await call('skipping', { type: 'rpc', args: [{}, {}] })).toBe('ran');
  });

  it.each([
    ['http', LockNotAcquiredError],
    ['rpc', RpcException],
    ['ws', WsException],
    ['graphql', LockNotAcquiredError],
    ['telegraf', LockNotAcquiredError],
  ])('%s, errors of services get its form, and others pass', async (type, Exception) => {
    const fail = (error: Error): Promise<unknown> =>
      lastValueFrom(
        new LockErrorInterceptor().intercept(contextOf({ type, args: [{}, {}] }), {
          handle: () => defer(() => Promise.reject(error)),
        }),
      );
    await expect(fail(refusal())).rejects.toBeInstanceOf(Exception);
    const other = new Error('other');
    await expect(fail(other)).rejects.toBe(other);
    // What some code throws that is no error at all.
    await expect(fail(undefined as never)).rejects.toBeUndefined();
  });

  it('a microservice, interceptors between two of ours see the error as it was thrown', async () => {
    const context = contextOf({ type: 'rpc', args: [{}, {}] });
    const around = (handle: () => Observable<unknown>): Observable<unknown> =>
      new LockErrorInterceptor().intercept(context, { handle });
    const seen: unknown[] = [];
    const error = refusal();
    const answer = around(() =>
      around(() => throwError(() => error)).pipe(
        tap({ error: (thrown: unknown) => seen.push(thrown) }),
      ),
    );
    await expect(lastValueFrom(answer)).rejects.toBeInstanceOf(RpcException);
    expect(seen).toEqual([error]);
  });
});
