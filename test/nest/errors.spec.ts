import type { ServerResponse } from 'node:http';
import {
  Catch,
  Controller,
  Get,
  HttpException,
  Inject,
  Injectable,
  NotFoundException,
  Param,
  Post,
  Res,
  UseFilters,
  UseGuards,
  type ArgumentsHost,
  type CanActivate,
  type ExceptionFilter,
  type INestApplication,
  type MiddlewareConsumer,
  type NestInterceptor,
  type NestMiddleware,
  type NestModule,
  type PipeTransform,
  type Provider,
} from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR, HttpAdapterHost } from '@nestjs/core';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  LockFencedError,
  LockDeadlockError,
  LockError,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockService,
  LockServiceClosedError,
  LockStoreUnavailableError,
  setRetryAfter,
  WithLock,
  type Lock,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { retry } from 'rxjs';
import { ADAPTERS, closeHttpApps, CONFLICT, startHttpApp, type HttpApp } from './http-app.js';

const keys = ['secret:42'];

/** Whole seconds; a slow machine may be late by some. */
const aboutSeconds = (seconds: number): unknown =>
  expect.stringMatching(
    new RegExp(`^(${Array.from({ length: 10 }, (_, late) => seconds - late).join('|')})$`),
  );
const node = { node: 'r1:6379', kind: 'timeout', message: 'no answer' } as const;

const ERRORS = {
  held: () => new LockNotAcquiredError({ keys, retryAfterMs: 1_500, waitedMs: 0 }),
  soon: () => new LockNotAcquiredError({ keys, retryAfterMs: 0, waitedMs: 0 }),
  foreign: () => new LockNotAcquiredError({ keys, retryAfterMs: Infinity, waitedMs: 0 }),
  lost: () => new LockLostError({ keys, reason: 'stolen' }),
  fenced: () => new LockFencedError({ fencingToken: 7, keys, resource: 'secret:42' }),
  down: () => new LockStoreUnavailableError({ operation: 'acquire', keys, nodes: [node] }),
  closed: () => new LockServiceClosedError(keys),
  circle: () => new LockDeadlockError({ keys, circle: [...keys, 'other'] }),
  ours: () => new LockKeyError({ problem: 'secret:42 is wrong' }),
  theirs: () => new LockKeyError({ problem: 'secret:42 is wrong', fromRequest: true }),
  other: () => new NotFoundException('no such order'),
};
type Name = keyof typeof ERRORS;

/** What is wrong in the application itself. */
const LOGGED: ReadonlyMap<Name, string> = new Map([
  ['ours', 'secret:42 is wrong'],
  ['circle', 'that would never end'],
]);

@Injectable()
class Throwing implements CanActivate, PipeTransform, NestMiddleware {
  canActivate(): boolean {
    throw ERRORS.held();
  }

  transform(): never {
    throw ERRORS.held();
  }

  use(): void {
    throw ERRORS.held();
  }
}

@Injectable()
class Orders {
  constructor(@Inject(LockService) private readonly locks: LockService) {}

  @WithLock('secret:<id>')
  async pay(id: string): Promise<string> {
    return id;
  }

  async lose(): Promise<void> {
    await this.locks.run('secret:1', async () => {
      await this.locks.forceRelease('secret:1');
    });
  }
}

/** Catches everything, and answers in a way of its own. */
@Catch()
class CatchAll implements ExceptionFilter {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const status = error instanceof HttpException ? error.getStatus() : 500;
    const body = { mine: true, error: (error as Error).constructor.name };
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), body, status);
  }
}

@Catch(NotFoundException)
class CatchOther extends CatchAll {}

@Catch(NotFoundException, LockError)
class CatchSeveral extends CatchAll {}

@Catch(LockNotAcquiredError)
class CatchRefusals implements ExceptionFilter<LockNotAcquiredError> {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  catch(error: LockNotAcquiredError, host: ArgumentsHost): void {
    setRetryAfter(error, host);
    const response: unknown = host.switchToHttp().getResponse();
    this.host.httpAdapter.reply(response, { refused: error.keys }, 423);
  }
}

/** Of Express, or of Fastify. */
const rawOf = (response: ServerResponse | { readonly raw: ServerResponse }): ServerResponse =>
  'raw' in response ? response.raw : response;

@Catch(LockNotAcquiredError)
class EndBegun implements ExceptionFilter<LockNotAcquiredError> {
  catch(error: LockNotAcquiredError, host: ArgumentsHost): void {
    setRetryAfter(error, host);
    rawOf(host.switchToHttp().getResponse()).end('refused');
  }
}

@Controller()
class Handlers {
  constructor(private readonly orders: Orders) {}

  @Get('throw/:name')
  throw(@Param('name') name: Name): never {
    throw ERRORS[name]();
  }

  @Post('pay/:id')
  pay(@Param('id') id: string): Promise<string> {
    return this.orders.pay(id);
  }

  @Post('locked/:id')
  @WithLock('secret:<id>')
  async locked(@Param('id') id: string): Promise<string> {
    return id;
  }

  @Get('lose')
  lose(): Promise<void> {
    return this.orders.lose();
  }

  @Get('guarded')
  @UseGuards(Throwing)
  guarded(): void {}

  @Get('piped/:id')
  piped(@Param('id', Throwing) _id: string): void {}

  @Get('middleware')
  middleware(): void {}

  @Get('filtered')
  @UseFilters(CatchAll)
  filtered(): never {
    throw ERRORS.held();
  }

  @Get('begun')
  @UseFilters(EndBegun)
  begun(@Res() response: ServerResponse): never {
    rawOf(response).write('begun, then ');
    throw ERRORS.held();
  }

  @Get('filtered/guard')
  @UseFilters(CatchRefusals)
  @UseGuards(Throwing)
  filteredGuard(): void {}
}

class WithMiddleware implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(Throwing).forRoutes('middleware');
  }
}

afterEach(closeHttpApps);

describe.each(ADAPTERS)('a lock error, on %s', (adapter) => {
  const start = ({
    providers = [],
    configure,
    ...options
  }: Partial<LockModuleOptions> & {
    providers?: Provider[];
    configure?: (app: INestApplication) => void;
  } = {}): Promise<HttpApp> =>
    startHttpApp(
      {
        imports: [{ module: WithMiddleware }],
        controllers: [Handlers],
        providers: [Orders, ...providers],
      },
      {
        adapter,
        options: { store: 'memory', ...options },
        ...(configure !== undefined && { configure }),
      },
    );

  it.each<[Name, string | null, object]>([
    ['held', '2', CONFLICT],
    ['soon', '1', CONFLICT],
    ['foreign', '1', CONFLICT],
    [
      'lost',
      null,
      {
        statusCode: 409,
        message:
          'The lock was lost while the work ran. The work may have taken effect: check before you try again.',
        error: 'Conflict',
        code: 'LOCK_LOST',
      },
    ],
    [
      'fenced',
      null,
      {
        statusCode: 409,
        message: 'This was changed by another request meanwhile. Nothing was changed now.',
        error: 'Conflict',
        code: 'LOCK_FENCED',
      },
    ],
    [
      'down',
      '1',
      {
        statusCode: 503,
        message: 'The lock store is not available. Try again later.',
        error: 'Service Unavailable',
        code: 'LOCK_STORE_UNAVAILABLE',
      },
    ],
    [
      'closed',
      '1',
      {
        statusCode: 503,
        message: 'The service is shutting down. Try again later.',
        error: 'Service Unavailable',
        code: 'LOCK_SERVICE_CLOSED',
      },
    ],
    [
      'circle',
      '1',
      {
        statusCode: 409,
        message: 'This operation and another one waited for each other. Try again later.',
        error: 'Conflict',
        code: 'LOCK_DEADLOCK',
      },
    ],
    [
      'theirs',
      null,
      {
        statusCode: 400,
        message: 'A value that identifies what to lock is missing or not valid.',
        error: 'Bad Request',
        code: 'LOCK_KEY_INVALID',
      },
    ],
    [
      'ours',
      null,
      {
        statusCode: 500,
        message: 'Internal server error',
        error: 'Internal Server Error',
        code: 'LOCK_KEY_INVALID',
      },
    ],
  ])(
    'answers with its status, a body without the key, and Retry-After (%s)',
    async (name, retryAfter, body) => {
      const { get, warnings } = await start();
      const answer = await get(`/throw/${name}`);
      expect(answer.body).toEqual(body);
      expect(answer.status).toBe(answer.body.statusCode);
      expect(answer.retryAfter).toBe(retryAfter);
      // Nobody would see what is wrong in the application.
      expect(warnings.join()).toMatch(LOGGED.get(name) ?? /^$/);
    },
  );

  it('leaves the head of a response that has begun', async () => {
    const { url } = await start();
    const answer = await fetch(`${url}/begun`);
    expect(answer.headers.get('retry-after')).toBeNull();
    expect(await answer.text()).toBe('begun, then refused');
  });

  it.each(['/guarded', '/piped/1', '/middleware'])(
    'answers the same wherever it comes from (%s)',
    async (path) => {
      const { get } = await start();
      expect(await get(path)).toMatchObject({ status: 409, body: CONFLICT, retryAfter: '2' });
    },
  );

  it('of a service is the answer of the request', async () => {
    const { get, post, locks } = await start();
    await locks.acquire('secret:1', { ttl: '60s' });
    expect(await post('/pay/1')).toMatchObject({
      status: 409,
      body: CONFLICT,
      retryAfter: aboutSeconds(60),
    });
    expect((await post('/pay/2')).body).toBe(2);
    await locks.forceRelease('secret:1');
    expect((await get('/lose')).body.code).toBe('LOCK_LOST');
  });

  it.each([
    ['locked', 'APP_INTERCEPTOR'],
    ['locked', 'useGlobalInterceptors'],
    ['pay', 'APP_INTERCEPTOR'],
    ['pay', 'useGlobalInterceptors'],
  ])(
    'leaves no Retry-After on the answer of an interceptor that tried again (%s, %s)',
    async (path, where) => {
      const held: Lock[] = [];
      const retrying: NestInterceptor = {
        intercept: (_context, next) =>
          next.handle().pipe(retry({ count: 1, delay: async () => held.pop()?.release() })),
      };
      const { post, locks } = await start(
        where === 'APP_INTERCEPTOR'
          ? { providers: [{ provide: APP_INTERCEPTOR, useValue: retrying }] }
          : { configure: (app) => void app.useGlobalInterceptors(retrying) },
      );
      held.push(await locks.acquire('secret:1'));
      expect(await post(`/${path}/1`)).toMatchObject({ status: 201, retryAfter: null });
      await locks.acquire('secret:1');
      expect(await post(`/${path}/1`)).toMatchObject({
        status: 409,
        retryAfter: expect.stringMatching(/^[1-9]\d*$/),
      });
    },
  );

  it('leaves other errors alone', async () => {
    const { get } = await start();
    const { status, body, retryAfter } = await get('/throw/other');
    expect([status, body.message, retryAfter]).toEqual([404, 'no such order', null]);
  });

  it.each<[string, Parameters<typeof start>[0]]>([
    [
      'useGlobalFilters',
      { configure: (app) => void app.useGlobalFilters(new CatchAll(app.get(HttpAdapterHost))) },
    ],
    ['APP_FILTER', { providers: [{ provide: APP_FILTER, useClass: CatchAll }] }],
    ['one for several', { providers: [{ provide: APP_FILTER, useClass: CatchSeveral }] }],
    [
      'two APP_FILTERs, the later of which catches others',
      {
        providers: [
          { provide: APP_FILTER, useClass: CatchAll },
          { provide: APP_FILTER, useClass: CatchOther },
        ],
      },
    ],
  ])('goes to the catch-all filter of the application: %s', async (_where, settings) => {
    const { get } = await start(settings);
    const mine = { mine: true, error: 'LockNotAcquiredError' };
    for (const path of ['/throw/held', '/piped/1']) {
      expect(await get(path)).toMatchObject({ status: 409, body: mine, retryAfter: '2' });
    }
    for (const path of ['/guarded', '/middleware']) {
      expect(await get(path)).toMatchObject({ status: 409, body: mine });
    }
    expect(await get('/throw/down')).toMatchObject({ status: 503, body: { mine: true } });
  });

  it('goes to the filter of its controller or method', async () => {
    const { get } = await start();
    expect(await get('/filtered')).toMatchObject({
      status: 409,
      body: { mine: true, error: 'LockNotAcquiredError' },
      retryAfter: '2',
    });
    expect(await get('/filtered/guard')).toMatchObject({
      status: 423,
      body: { refused: keys },
      retryAfter: '2',
    });
  });

  it('passes by a filter of the application that does not catch it', async () => {
    const { get } = await start({ providers: [{ provide: APP_FILTER, useClass: CatchOther }] });
    expect(await get('/guarded')).toMatchObject({ status: 409, body: CONFLICT, retryAfter: '2' });
    expect(await get('/throw/other')).toMatchObject({ status: 404, body: { mine: true } });
  });

  it('names the key where the application wants it', async () => {
    const { post, locks } = await start({ errors: { exposeKeys: true } });
    await locks.acquire('secret:1');
    expect((await post('/pay/1')).body).toEqual({ ...CONFLICT, keys: ['secret:1'] });
  });

  it('has the status and body that the application gives it', async () => {
    const { post, locks } = await start({
      errors: { body: (error, body) => ({ ...body, statusCode: 423, about: error.keys.length }) },
    });
    await locks.acquire('secret:1', { ttl: '60s' });
    expect(await post('/pay/1')).toMatchObject({
      status: 423,
      body: { ...CONFLICT, statusCode: 423, about: 1 },
      retryAfter: aboutSeconds(60),
    });
  });
});
