import { Controller, Injectable, Module, Param, Post, type INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import {
  getLockServiceToken,
  InjectLockService,
  LockModule,
  LockNotAcquiredError,
  LockService,
  WithLock,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { createTestLocks, LockTestingModule, TestLocks } from 'nestjs-holdfast/testing';
import { expectNoOpenHandles } from '../support/no-leaks.js';

@Injectable()
class Orders {
  constructor(readonly locks: LockService) {}

  @WithLock('order:<orderId>')
  async pay(orderId: string): Promise<string> {
    return Promise.resolve(`paid ${orderId}`);
  }
}

@Controller('orders')
class OrdersController {
  constructor(private readonly orders: Orders) {}

  @Post(':id')
  async pay(@Param('id') id: string): Promise<string> {
    return this.orders.pay(id);
  }
}

describe('LockTestingModule in a unit test', () => {
  it('gives a service real locks without Redis, and TestLocks to play somebody else', async () => {
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot()],
      providers: [Orders],
    }).compile();
    const [orders, testLocks] = [module.get(Orders), module.get(TestLocks)];
    expect(await orders.pay('42')).toBe('paid 42');
    await testLocks.hold('order:42');
    await expect(orders.pay('42')).rejects.toThrow(LockNotAcquiredError);
    expect(testLocks.acquired).toEqual(['order:42']);
    await module.close();
  });

  it('serves a test that neither starts nor closes its module', async () => {
    await expectNoOpenHandles(async () => {
      const module = await Test.createTestingModule({
        imports: [LockTestingModule.forRoot()],
        providers: [Orders],
      }).compile();
      expect(await module.get(Orders).pay('42')).toBe('paid 42');
    });
  });

  it('is global unless told otherwise', async () => {
    @Module({ providers: [Orders], exports: [Orders] })
    class OrdersModule {}
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot(), OrdersModule],
    }).compile();
    expect(await module.get(Orders).pay('42')).toBe('paid 42');
    const unserved = Test.createTestingModule({
      imports: [LockTestingModule.forRoot({ isGlobal: false }), OrdersModule],
    }).compile();
    await expect(unserved).rejects.toThrow('OrdersModule');
  });

  it('gives its service and TestLocks to the module that imports it where it is not global', async () => {
    @Injectable()
    class Refunds {
      constructor(
        readonly locks: LockService,
        readonly testLocks: TestLocks,
      ) {}
    }
    @Module({
      imports: [LockTestingModule.forRoot({ isGlobal: false })],
      providers: [Refunds],
    })
    class RefundsModule {}
    const module = await Test.createTestingModule({ imports: [RefundsModule] }).compile();
    const { locks, testLocks } = module.get(Refunds);
    await testLocks.hold('refund');
    expect(await locks.tryAcquire('refund')).toBeNull();
  });

  it('takes the options of the module, and a name', async () => {
    class Jobs {
      constructor(@InjectLockService('jobs') readonly locks: LockService) {}

      @WithLock('job', { instance: 'jobs' })
      async run(): Promise<boolean> {
        return (await this.locks.inspect('job')).held;
      }
    }
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot({ name: 'jobs', wait: 0 })],
      providers: [Jobs],
    }).compile();
    const jobs = module.get(Jobs);
    expect(await jobs.run()).toBe(true);
    await module.get(TestLocks).hold('job');
    await expect(jobs.locks.acquire('job')).rejects.toThrow(LockNotAcquiredError);
    const wrong = Test.createTestingModule({
      imports: [LockTestingModule.forRoot({ ttl: 'soon' as '1s' })],
    }).compile();
    await expect(wrong).rejects.toThrow('Option "ttl"');
    expect(() => LockTestingModule.forRoot({ store: 'memory' } as object)).toThrow(
      'LockTestingModule has no option "store". The locks of a test are in memory: leave it out. Its options are keyPrefix, ttl,',
    );
  });

  it('gives every application that is made of one module its own locks', async () => {
    const locks = LockTestingModule.forRoot();
    const metadata = { imports: [locks], providers: [Orders] };
    const first = await Test.createTestingModule(metadata).compile();
    await first.get(TestLocks).hold('order:42');
    const second = await Test.createTestingModule(metadata).compile();
    expect(await second.get(Orders).pay('42')).toBe('paid 42');
    await expect(first.get(Orders).pay('42')).rejects.toThrow(LockNotAcquiredError);
    await Promise.all([first.close(), second.close()]);
  });
});

describe('an application with its own modules', () => {
  // Nobody listens there: that the tests pass shows that nobody is asked.
  const options: LockModuleOptions = { redis: 'redis://127.0.0.1:1' };

  @Module({
    imports: [LockModule.forRoot(options), LockModule.forRoot({ ...options, name: 'jobs' })],
    providers: [Orders],
    controllers: [OrdersController],
  })
  class AppModule {}

  let app: INestApplication;
  let locks: LockService;
  let testLocks: TestLocks;

  beforeEach(async () => {
    ({ locks, testLocks } = createTestLocks());
    const jobs = createTestLocks({ name: 'jobs' });
    const module = await Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(LockService)
      .useValue(locks)
      .overrideProvider(getLockServiceToken('jobs'))
      .useValue(jobs.locks)
      .compile();
    app = module.createNestApplication();
    await app.init();
  });

  afterEach(() => app.close());

  it('is tested with overrideProvider(LockService).useValue(createTestLocks().locks)', async () => {
    expect(app.get(LockService)).toBe(locks);
    await request(app.getHttpServer()).post('/orders/42').expect(201, 'paid 42');
    await testLocks.hold('order:42');
    const refused = await request(app.getHttpServer()).post('/orders/42');
    expect([refused.status, refused.body.code]).toEqual([409, 'LOCK_NOT_ACQUIRED']);
    await testLocks.reset();
    testLocks.fail();
    const failed = await request(app.getHttpServer()).post('/orders/42');
    expect([failed.status, failed.body.code]).toEqual([503, 'LOCK_STORE_UNAVAILABLE']);
  });
});

it('an application starts and closes with any stand-in for its LockService', async () => {
  @Injectable()
  class Refunds {
    constructor(private readonly locks: LockService) {}

    async refund(orderId: string): Promise<string> {
      return this.locks.run(`order:${orderId}`, () => 'refunded');
    }
  }
  const asked: string[] = [];
  const standIn = {
    run: async <T>(key: string, work: () => T): Promise<T> => {
      asked.push(key);
      return Promise.resolve(work());
    },
  };
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ redis: 'redis://127.0.0.1:1' })],
    providers: [Refunds],
  })
    .overrideProvider(LockService)
    .useValue(standIn)
    .compile();
  await module.init();
  expect(await module.get(Refunds).refund('42')).toBe('refunded');
  expect(asked).toEqual(['order:42']);
  await module.close();
});

it('LockTestingModule beside the application’s RedisLockModule is refused, and the way out is named', async () => {
  @Module({ imports: [LockModule.forRoot({ store: 'memory' })] })
  class AppModule {}
  const module = await Test.createTestingModule({
    imports: [AppModule, LockTestingModule.forRoot()],
  }).compile();
  await expect(module.init()).rejects.toThrow(
    /imported 2 times[^]*overrideProvider\(LockService\)\.useValue\(createTestLocks\(\)\.locks\)/,
  );
});
