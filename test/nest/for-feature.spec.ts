import {
  Body,
  Controller,
  Global,
  Inject,
  Injectable,
  Module,
  Param,
  ParseIntPipe,
  Post,
  Scope,
  type DynamicModule,
} from '@nestjs/common';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  getLockServiceToken,
  LockModule,
  LockNotAcquiredError,
  LockService,
  RunOnce,
  WithLock,
} from 'nestjs-holdfast';
import { createTestLocks } from 'nestjs-holdfast/testing';
import { closeHttpApps, startHttpApp } from './http-app.js';

@Injectable()
class Orders {
  constructor(readonly locks: LockService) {}

  @WithLock('<0>')
  async pay(_id: string): Promise<readonly string[] | undefined> {
    return this.locks.current()?.keys;
  }

  @WithLock('<0>', { ttl: '5s', wait: 0, maxHold: '3s' })
  async hurry(_id: string): Promise<number | undefined> {
    return this.locks.current()?.remainingMs;
  }

  @WithLock('<0>', { onLocked: 'replace' })
  async newest(_id: string): Promise<readonly string[] | undefined> {
    return this.locks.current()?.keys;
  }

  @WithLock(function (this: Orders, id: string) {
    return [`${id}:b`, `${id}:a`];
  })
  async both(_id: string): Promise<readonly string[] | undefined> {
    return this.locks.current()?.keys;
  }

  @WithLock('<0>')
  async left(_id: string): Promise<number | undefined> {
    return this.locks.current()?.remainingMs;
  }

  @RunOnce('once:<id>')
  async once(id: string): Promise<string | undefined> {
    return id;
  }
}

class GivenOrders {
  @WithLock('order:<_id>')
  async pay(_id: string): Promise<void> {}
}

@Injectable({ scope: Scope.REQUEST })
class PerRequest extends Orders {}

@Controller('orders')
class OrdersController {
  constructor(
    readonly locks: LockService,
    readonly perRequest: PerRequest,
  ) {}

  @Post('request/:id')
  @WithLock('<request.params.id>')
  async byRequest(): Promise<string> {
    return String(this.locks.current()?.keys);
  }

  @Post('argument/:id')
  @WithLock('<0>')
  async byArgument(@Param('id', ParseIntPipe) _id: number): Promise<string> {
    return String(this.locks.current()?.keys);
  }

  @Post('scoped/:id')
  async scoped(@Param('id') id: string): Promise<string> {
    return String(await this.perRequest.pay(id));
  }
}

const MADE = Symbol('made by a factory');

@Module({
  imports: [LockModule.forFeature({ keyPrefix: 'orders:', ttl: '40s', wait: '20s' })],
  controllers: [OrdersController],
  providers: [
    Orders,
    PerRequest,
    {
      provide: MADE,
      useFactory: (locks: LockService) => new Orders(locks),
      inject: [LockService],
    },
  ],
})
class OrdersModule {}

@Injectable()
class Stock extends Orders {}

@Module({ providers: [Stock] })
class StockModule {}

@Module({ imports: [OrdersModule], providers: [] })
class ImportingModule {}

const start = () => startHttpApp({ imports: [OrdersModule, StockModule, ImportingModule] });

afterEach(closeHttpApps);

describe('LockModule.forFeature', () => {
  it('puts its prefix before the keys of the decorated methods of its module, and of no other', async () => {
    const { app } = await start();
    expect(await app.get(Orders).pay('7')).toEqual(['orders:7']);
    expect(await app.get(Stock).pay('7')).toEqual(['7']);
  });

  it('does so for keys of functions, for what factories make, and for handlers', async () => {
    const { app, post } = await start();
    expect(await app.get(Orders).both('7')).toEqual(['orders:7:a', 'orders:7:b']);
    expect(await app.get<Orders>(MADE).pay('7')).toEqual(['orders:7']);
    expect((await post('/orders/request/7')).body).toBe('orders:7');
    expect((await post('/orders/argument/07')).body).toBe('orders:7');
    expect((await post('/orders/scoped/7')).body).toBe('orders:7');
  });

  it('gives no wait to methods that replace the holder, which know none', async () => {
    const { app } = await start();
    expect(await app.get(Orders).newest('7')).toEqual(['orders:7']);
  });

  it('excludes others by the whole key, and names it in the error', async () => {
    const { app, locks } = await start();
    const lock = await locks.acquire('orders:7');
    const error = await app
      .get(Orders)
      .hurry('7')
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect(error).toMatchObject({ keys: ['orders:7'] });
    await lock.release();
  });

  it('gives its TTL and its wait to methods that name none', async () => {
    const { app, locks } = await start();
    const orders = app.get(Orders);
    expect(await orders.left('7')).toBeGreaterThan(30_000);
    expect(await orders.hurry('7')).toBeLessThanOrEqual(5_000);
    const lock = await locks.acquire('orders:8');
    const waited = orders.pay('8');
    await expect(orders.hurry('8')).rejects.toThrow(LockNotAcquiredError);
    await lock.release();
    expect(await waited).toEqual(['orders:8']);
  });

  it('lets a call nest in a section by hand that holds the whole key', async () => {
    const { app, locks } = await start();
    const keys = await locks.run('orders:7', () => app.get(Orders).pay('7'));
    expect(keys).toEqual(['orders:7']);
  });

  it('names work that is to be done once', async () => {
    const { app, locks } = await start();
    expect(await app.get(Orders).once('7')).toBe('7');
    expect((await locks.runOnce('orders:once:7', () => 'again')).outcome).toBe('done-elsewhere');
  });

  it('does not reach modules that import the one that has it', async () => {
    @Module({ imports: [OrdersModule], providers: [{ provide: Stock, useClass: Stock }] })
    class Outer {}
    const { app } = await startHttpApp({ imports: [Outer] });
    expect(await app.get(Stock).pay('7')).toEqual(['7']);
  });

  it('does not reach objects that another module made', async () => {
    const ALIAS = Symbol('another name of the stock');
    const PASSED_ON = Symbol('the stock, passed on');
    @Module({ providers: [Stock], exports: [Stock] })
    class Store {}
    @Module({
      imports: [Store, LockModule.forFeature({ keyPrefix: 'shop:' })],
      providers: [
        { provide: ALIAS, useExisting: Stock },
        { provide: PASSED_ON, useFactory: (stock: Stock) => stock, inject: [Stock] },
      ],
    })
    class Shop {}
    const { app } = await startHttpApp({ imports: [Store, Shop] });
    for (const token of [Stock, ALIAS, PASSED_ON])
      expect(await app.get<Stock>(token).pay('7')).toEqual(['7']);
  });

  /** A module that passes on the object that a factory makes in a module with other defaults. */
  function passedOn(useFactory: (locks: LockService) => Orders): new () => object {
    @Module({
      imports: [LockModule.forFeature({ keyPrefix: 'store:' })],
      providers: [{ provide: MADE, useFactory, inject: [LockService] }],
      exports: [MADE],
    })
    class Store {}
    const given = { provide: 'passed on', useFactory: (orders: Orders) => orders, inject: [MADE] };
    @Module({ imports: [Store], providers: [given] })
    class Shop {}
    return Shop;
  }

  it('refuses an object of factories that two modules provide, with different ones', async () => {
    await expect(
      startHttpApp({ imports: [passedOn((locks) => new Orders(locks))] }),
    ).rejects.toThrow(
      /^(Store and Shop|Shop and Store) provide one object of Orders, and LockModule\.forFeature\(\) differs between them\. .*useExisting/,
    );
  });

  it('tells modules with different options apart, however Nest does', async () => {
    const OTHER = Symbol('another');
    const made = (provide: symbol) => ({
      provide,
      useFactory: (locks: LockService) => new Orders(locks),
      inject: [LockService],
    });
    @Module({ imports: [LockModule.forFeature({ ttl: '40s' })], providers: [made(MADE)] })
    class Slow {}
    @Module({ imports: [LockModule.forFeature({ ttl: '20s' })], providers: [made(OTHER)] })
    class Quick {}
    const { app } = await startHttpApp(
      { imports: [Slow, Quick] },
      { moduleIdGeneratorAlgorithm: 'deep-hash' },
    );
    expect(await app.get<Orders>(MADE).left('7')).toBeGreaterThan(30_000);
    expect(await app.get<Orders>(OTHER).left('7')).toBeLessThanOrEqual(20_000);
  });

  it('names the method whose key is too long with its prefix, and blames the sender for it', async () => {
    @Controller('long')
    class Long {
      @Post()
      @WithLock((fields: Record<string, string>) => `${fields.a}`.padEnd(1_020, 'x'))
      async work(@Body() _fields: Record<string, string>): Promise<void> {}
    }
    @Module({
      imports: [LockModule.forFeature({ keyPrefix: 'orders:' })],
      controllers: [Long],
    })
    class LongModule {}
    const { app, post } = await startHttpApp({ imports: [LongModule] });
    await expect(app.get(Long).work({ a: '7' })).rejects.toMatchObject({
      detail: expect.stringMatching(/^@WithLock on Long.work: A lock key has at most 1024 /),
    });
    expect((await post('/long', { a: '7' })).status).toBe(400);
  });

  it('reaches modules that import one that exports it, whoever makes their classes', async () => {
    const shared = LockModule.forFeature({ keyPrefix: 'shared:' });
    @Module({ imports: [shared], exports: [shared] })
    class Defaults {}
    @Module({ imports: [Defaults], exports: [Defaults] })
    class MoreDefaults {}
    const made = { provide: MADE, useFactory: (locks: LockService) => new Orders(locks) };
    @Module({ imports: [MoreDefaults], providers: [Orders, { ...made, inject: [LockService] }] })
    class Shop {}
    const { app } = await startHttpApp({ imports: [Shop] });
    expect(await app.get(Orders).pay('7')).toEqual(['shared:7']);
    expect(await app.get<Orders>(MADE).pay('7')).toEqual(['shared:7']);
  });

  it('is given by hand to an object that is bound by hand: it belongs to no module', async () => {
    const { app, locks } = await start();
    const bound = locks.bind(new Orders(locks), { keyPrefix: 'orders:', ttl: '1m' });
    expect(await bound.pay('7')).toEqual(['orders:7']);
    expect(await bound.left('7')).toBeGreaterThan(30_000);
    const first = await locks.acquire('orders:8');
    await expect(bound.pay('8')).rejects.toBeInstanceOf(LockNotAcquiredError);
    await expect(app.get(Orders).pay('8')).rejects.toBeInstanceOf(LockNotAcquiredError);
    await first.release();
    expect(() => locks.bind(new Orders(locks), { prefix: 'orders:' } as object)).toThrow(
      'bind() has no option "prefix"',
    );
  });

  it('of an earlier application is forgotten where a given value is provided again', async () => {
    const orders = new GivenOrders();
    const start = async (...imports: readonly DynamicModule[]) => {
      @Module({ imports: [...imports], providers: [{ provide: GivenOrders, useValue: orders }] })
      class Feature {}
      const { app, locks } = await startHttpApp({ imports: [Feature] });
      const taken: string[] = [];
      locks.on('acquired', ({ keys }) => taken.push(...keys));
      await orders.pay('1');
      await app.close();
      return taken;
    };
    expect(await start(LockModule.forFeature({ keyPrefix: 'one:' }))).toEqual(['one:order:1']);
    expect(await start()).toEqual(['order:1']);
  });

  it.each([
    ['without one', []],
    ['with one of its own', [LockModule.forFeature({ keyPrefix: 'two:' })]],
  ])(
    'is kept by an instance that Nest made for one module, and another one provides, %s',
    async (_, features) => {
      @Injectable({ scope: Scope.TRANSIENT })
      class Given {
        @WithLock('order:<_id>')
        async pay(_id: string): Promise<void> {}
      }
      @Module({
        imports: [LockModule.forFeature({ keyPrefix: 'one:' })],
        providers: [Given],
        exports: [Given],
      })
      class One {}
      const given = { provide: 'given', useFactory: (made: Given) => made, inject: [Given] };
      @Module({ imports: [One, ...features], providers: [given] })
      class Two {}
      const { app, locks } = await startHttpApp({ imports: [Two] });
      const taken: string[] = [];
      locks.on('acquired', ({ keys }) => taken.push(...keys));
      await app.get<Given>('given').pay('1');
      expect(taken).toEqual(['one:order:1']);
    },
  );

  it('given by hand, is forgotten when the object is bound again without one', async () => {
    const orders = new GivenOrders();
    const [one, two] = [createTestLocks(), createTestLocks()];
    one.locks.bind(orders, { keyPrefix: 'one:' });
    await orders.pay('1');
    two.locks.bind(orders);
    await orders.pay('1');
    expect([one.testLocks.acquired, two.testLocks.acquired]).toEqual([
      ['one:order:1'],
      ['order:1'],
    ]);
  });

  it('given by hand, is kept for each service of the object', async () => {
    class Both extends Orders {
      @WithLock('<0>', { instance: 'jobs' })
      async work(_id: string): Promise<boolean> {
        return (await jobs.inspect('jobs:7')).held;
      }
    }
    const named = LockModule.forRoot({ store: 'memory', name: 'jobs' });
    const { app, locks } = await startHttpApp({ imports: [named] });
    const jobs = app.get<LockService>(getLockServiceToken('jobs'));
    const both = locks.bind(new Both(locks), { keyPrefix: 'orders:' });
    jobs.bind(both, { keyPrefix: 'jobs:' });
    expect([await both.pay('7'), await both.work('7')]).toEqual([['orders:7'], true]);
  });

  it('given by hand, is refused for a handler, whose requests would ignore it', async () => {
    @Controller()
    class Routes {
      @Post('routes/:id')
      @WithLock('<_id>')
      async pay(@Param('id') _id: string): Promise<void> {
        await Promise.resolve();
      }
    }
    const { locks } = await start();
    expect(() => locks.bind(new Routes(), { keyPrefix: 'routes:' })).toThrow(
      '@WithLock on Routes.pay: requests lock before their object is known',
    );
    locks.bind(new Routes());
  });

  it('given by hand, goes before that of the modules that provide the object', async () => {
    const made = passedOn((locks) => locks.bind(new Orders(locks), { keyPrefix: 'mine:' }));
    const { app } = await startHttpApp({ imports: [made] });
    expect(await app.get<Orders>(MADE).pay('7')).toEqual(['mine:7']);
  });

  it.each([
    ['no object', undefined, 'takes its options as an object, received undefined'],
    ['an unknown option', { prefix: 'a' }, 'has no option "prefix"'],
    ['a wrong TTL', { ttl: 'soon' }, 'LockModule.forFeature(): Option "ttl"'],
    [
      'braces in the prefix',
      { keyPrefix: '{a}:' },
      'of at most 256 characters that a key may begin with',
    ],
    ['an empty prefix', { keyPrefix: '' }, 'of at most 256 characters that a key may begin with'],
    ['a long prefix', { keyPrefix: 'a'.repeat(257) }, 'of at most 256 characters'],
    ['a list', [], 'takes its options as an object, received a list'],
    ['a Date', new Date(), 'takes its options as an object, received a value'],
    ['a Map', new Map(), 'takes its options as an object, received a value'],
  ])('refuses %s', (_what, options, text) => {
    expect(() => LockModule.forFeature(options as object)).toThrow(text);
  });

  it('refuses options that a method cannot work with, at the start', async () => {
    @Injectable()
    class Held {
      @WithLock('a', { minHold: '10s' })
      async hold(): Promise<void> {}
    }
    const imports = [LockModule.forFeature({ ttl: '1s' })];
    @Module({ imports, providers: [Held] })
    class Short {}
    await expect(startHttpApp({ imports: [Short] })).rejects.toThrow(
      /@WithLock on Held.hold: "minHold" \(10000 ms\) is longer than the TTL/,
    );
  });

  it('refuses a module that imports it, and another that exports it', async () => {
    const shared = LockModule.forFeature({ ttl: '1s' });
    @Module({ imports: [shared], exports: [shared] })
    class Defaults {}
    @Module({ imports: [Defaults, LockModule.forFeature({ wait: '1s' })], providers: [Orders] })
    class Both {}
    await expect(startHttpApp({ imports: [Both] })).rejects.toThrow(
      'Both imports LockModule.forFeature() twice, once through Defaults.',
    );
  });

  it('refuses a module that imports it beside a global one that exports it, which it names', async () => {
    const shared = LockModule.forFeature({ ttl: '1s' });
    @Global()
    @Module({ imports: [shared], exports: [shared] })
    class Defaults {}
    @Module({ imports: [LockModule.forFeature({ wait: '1s' })], providers: [Orders] })
    class Shop {}
    await expect(startHttpApp({ imports: [Defaults, Shop] })).rejects.toThrow(
      /^Shop imports LockModule\.forFeature\(\) twice, once through the global Defaults\. .*LockModule\.forRoot\(\)\.$/,
    );
  });

  it('refuses a module that imports it twice', async () => {
    const imports = [LockModule.forFeature({ ttl: '1s' }), LockModule.forFeature({ wait: '1s' })];
    @Module({ imports, providers: [Orders] })
    class Twice {}
    await expect(startHttpApp({ imports: [Twice] })).rejects.toThrow(
      'Twice imports LockModule.forFeature() twice.',
    );
  });
});

describe('<class>', () => {
  abstract class Crud {
    @Inject(LockService)
    readonly locks!: LockService;

    @WithLock('<class>:<request.params.id>')
    @Post('request/:id')
    async byRequest(): Promise<string> {
      return String(this.locks.current()?.keys);
    }

    @WithLock('<class>:<0>')
    @Post('argument/:id')
    async byArgument(@Param('id') _id: string): Promise<string> {
      return String(this.locks.current()?.keys);
    }
  }

  @Controller('invoices')
  class Invoices extends Crud {}

  @Controller('customers')
  class Customers extends Crud {}

  it.each(['request', 'argument'])('is the class of the object (%s)', async (path) => {
    const { post } = await startHttpApp({ controllers: [Invoices, Customers] });
    expect((await post(`/invoices/${path}/7`)).body).toBe('Invoices:7');
    expect((await post(`/customers/${path}/7`)).body).toBe('Customers:7');
  });

  it('refuses the name that a minifier gives, at the start', async () => {
    class Named {
      @WithLock('<class>:a')
      async work(): Promise<void> {}
    }
    Object.defineProperty(Named, 'name', { value: 'e' });
    await expect(
      startHttpApp({ providers: [{ provide: Named, useFactory: () => new Named() }] }),
    ).rejects.toThrow(/asks for <class>, and the class is called "e", as a minifier calls it/);
  });
});
