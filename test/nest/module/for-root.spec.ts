import { Controller, Inject, Injectable, Module, Scope, type Type } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  getLockServiceToken,
  InjectLockService,
  LockConfigurationError,
  LockModule,
  LockNotAcquiredError,
  LockService,
  RedisLockModule,
  WithLock,
  type LockModuleOptions,
  type LockOptionsFactory,
} from 'nestjs-holdfast';
import { MemoryLockStore } from '../../../lib/store/memory/memory-lock-store.js';
import { deferred, type Deferred } from '../../support/eventually.js';
import { closeApps, startApp } from './start-app.js';
import { storeOption } from '../../../lib/options/location.js';

@Injectable()
class Orders {
  constructor(readonly locks: LockService) {}

  @WithLock('order:<orderId>')
  async pay(orderId: string, until?: Deferred<void>): Promise<string> {
    await until?.promise;
    return `paid ${orderId}`;
  }
}

@Injectable()
class Jobs {
  constructor(@InjectLockService('jobs') readonly locks: LockService) {}

  @WithLock('job', { instance: 'jobs' })
  async run(): Promise<boolean> {
    return (await this.locks.inspect('job')).held;
  }

  @WithLock('job')
  async runInDefault(): Promise<boolean> {
    return (await this.locks.inspect('job')).held;
  }
}

const memory: LockModuleOptions = { store: 'memory' };

afterEach(closeApps);

describe('RedisLockModule.forRoot', () => {
  it('is LockModule', () => {
    expect(LockModule).toBe(RedisLockModule);
  });

  it('provides the service, and makes @WithLock work', async () => {
    const { app } = await startApp({ imports: [LockModule.forRoot(memory)], providers: [Orders] });
    const orders = app.get(Orders);
    expect(orders.locks).toBe(app.get(LockService));
    const lock = await orders.locks.acquire('order:42');
    await expect(orders.pay('42')).rejects.toThrow(LockNotAcquiredError);
    await lock.release();
    expect(await orders.pay('42')).toBe('paid 42');
  });

  it('is global unless told otherwise: a module that does not import it gets the service', async () => {
    @Module({ providers: [Orders], exports: [Orders] })
    class OrdersModule {}
    const { app } = await startApp({ imports: [LockModule.forRoot(memory), OrdersModule] });
    expect(await app.get(Orders).pay('1')).toBe('paid 1');
  });

  it('with isGlobal: false serves the modules that import it', async () => {
    const locks = LockModule.forRoot({ ...memory, isGlobal: false });
    @Module({ imports: [locks], providers: [Orders], exports: [Orders] })
    class OrdersModule {}
    const { app } = await startApp({ imports: [OrdersModule] });
    expect(await app.get(Orders).pay('1')).toBe('paid 1');
  });

  it('with isGlobal: false an app does not start if a module with @WithLock does not import it', async () => {
    class Work {
      @WithLock('key')
      async work(): Promise<void> {}
    }
    @Module({ providers: [Work] })
    class ServicesModule {}
    @Module({ controllers: [Work] })
    class ControllersModule {}
    Controller()(Work);
    const locks = LockModule.forRoot({ ...memory, isGlobal: false });
    const services = startApp({ imports: [locks, ServicesModule] });
    await expect(services).rejects.toThrow(
      /dependencies of the Work[^]*isGlobal: false, in this module/,
    );
    await expect(services).rejects.toThrow('ServicesModule');
    const controllers = startApp({ imports: [locks, ControllersModule] });
    await expect(controllers).rejects.toThrow(
      /dependencies of the Work[^]*isGlobal: false, in this module/,
    );
    await expect(controllers).rejects.toThrow('ControllersModule');
  });

  it('refuses to be imported twice under one name: two memory stores would not exclude each other', async () => {
    const imports = [LockModule.forRoot(memory), LockModule.forRoot(memory)];
    await expect(startApp({ imports })).rejects.toThrow(
      'LockModule.forRoot was imported 2 times without a name. ' +
        "Import it once, in the root module, or give each its own: forRoot({ name: 'jobs', … }). " +
        'In a test of an application that imports it, replace the service: overrideProvider(LockService).useValue(createTestLocks().locks).',
    );
    const named = [
      LockModule.forRoot({ ...memory, name: 'jobs' }),
      LockModule.forRoot({ ...memory, name: 'jobs' }),
    ];
    await expect(startApp({ imports: named })).rejects.toThrow('2 times under the name "jobs"');
  });

  it('counts one dynamic module that is imported in several places once', async () => {
    const locks = LockModule.forRoot({ ...memory, isGlobal: false });
    @Module({ imports: [locks] })
    class Other {}
    const { app } = await startApp({ imports: [locks, Other], providers: [Orders] });
    expect(await app.get(Orders).pay('1')).toBe('paid 1');
  });
});

describe('several services', () => {
  it('are told apart by name, beside the default one, in injection and by `instance`', async () => {
    const { app } = await startApp({
      imports: [LockModule.forRoot(memory), LockModule.forRoot({ ...memory, name: 'jobs' })],
      providers: [Orders, Jobs],
    });
    const [orders, jobs] = [app.get(Orders), app.get(Jobs)];
    expect(jobs.locks).toBe(app.get(getLockServiceToken('jobs')));
    expect(jobs.locks).not.toBe(orders.locks);
    expect(jobs.locks.name).toBe('jobs');
    expect(orders.locks.name).toBeUndefined();
    expect(await jobs.run()).toBe(true);
    expect(await jobs.runInDefault()).toBe(false);
  });

  it('take a symbol for a name', async () => {
    const name = Symbol('reports');
    class Reports {
      @InjectLockService(name) readonly locks!: LockService;

      @WithLock('report', { instance: name })
      async make(): Promise<boolean> {
        return (await this.locks.inspect('report')).held;
      }
    }
    const { app } = await startApp({
      imports: [LockModule.forRootAsync({ name, useFactory: () => memory })],
      providers: [Reports],
    });
    expect(await app.get(Reports).make()).toBe(true);
    expect(getLockServiceToken(name)).toBe(name);
  });

  it('end the start of an app when the one that is asked for is not there, and say which', async () => {
    const start = startApp({ imports: [LockModule.forRoot(memory)], providers: [Jobs] });
    await expect(start).rejects.toThrow(/jobs/);
  });

  it('getLockServiceToken gives the class without a name, and the same token for the same name', () => {
    expect(getLockServiceToken()).toBe(LockService);
    expect(getLockServiceToken('jobs')).toBe(getLockServiceToken('jobs'));
    expect(getLockServiceToken('jobs')).not.toBe(getLockServiceToken('mails'));
  });
});

describe('RedisLockModule.forRootAsync', () => {
  const OPTIONS = 'LOCK_OPTIONS';

  @Module({ providers: [{ provide: OPTIONS, useValue: memory }], exports: [OPTIONS] })
  class ConfigModule {}

  @Injectable()
  class OptionsFactory implements LockOptionsFactory {
    constructor(@Inject(OPTIONS) readonly options: LockModuleOptions) {}

    async createLockOptions(): Promise<LockModuleOptions> {
      return Promise.resolve(this.options);
    }
  }

  @Module({ imports: [ConfigModule], providers: [OptionsFactory], exports: [OptionsFactory] })
  class FactoryModule {}

  type AsyncOptions = Parameters<typeof LockModule.forRootAsync>[0];

  it.each<[string, AsyncOptions]>([
    [
      'useFactory, inject and imports',
      {
        imports: [ConfigModule],
        inject: [OPTIONS],
        useFactory: (options: LockModuleOptions) => options,
      },
    ],
    ['an asynchronous useFactory', { useFactory: async () => Promise.resolve(memory) }],
    ['useClass', { imports: [ConfigModule], useClass: OptionsFactory }],
    ['useExisting', { imports: [FactoryModule], useExisting: OptionsFactory }],
  ])('takes %s', async (_form, options) => {
    const { app } = await startApp({
      imports: [LockModule.forRootAsync(options)],
      providers: [Orders],
    });
    expect(await app.get(Orders).pay('1')).toBe('paid 1');
  });

  it('takes name and isGlobal beside the factory, and says so when the factory returns them', async () => {
    const named = LockModule.forRootAsync({
      name: 'jobs',
      isGlobal: false,
      useFactory: () => memory,
    });
    const { app } = await startApp({ imports: [named] });
    expect(app.get(getLockServiceToken('jobs'))).toBeInstanceOf(LockService);
    const wrong = LockModule.forRootAsync({
      useFactory: () => ({ ...memory, name: 'jobs' }) as LockModuleOptions,
    });
    await expect(startApp({ imports: [wrong] })).rejects.toThrow(
      'LockModule has no option "name". Put it beside "useFactory" in forRootAsync, not into the object that useFactory returns.',
    );
  });

  it('does not start if the options depend on the request: each request would have a service of its own', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Tenant {}

    @Injectable()
    class OptionsOfTenant implements LockOptionsFactory {
      constructor(readonly tenant: Tenant) {}

      createLockOptions(): LockModuleOptions {
        return { store: 'memory' };
      }
    }

    @Module({ providers: [Tenant], exports: [Tenant] })
    class Tenants {}

    const useFactory = (): LockModuleOptions => ({ store: 'memory' });
    for (const options of [
      { inject: [REQUEST], useFactory },
      { imports: [Tenants], inject: [Tenant], useFactory, name: 'jobs' },
      { imports: [Tenants], useClass: OptionsOfTenant },
    ]) {
      const start = startApp({ imports: [LockModule.forRootAsync(options)] });
      await expect(start).rejects.toThrow(LockConfigurationError);
      await expect(start).rejects.toThrow(/depend on the request.*put the tenant into the key/s);
    }
  });

  it('takes options that depend on a transient provider', async () => {
    @Injectable({ scope: Scope.TRANSIENT })
    class Settings {
      readonly store = 'memory';
    }

    @Module({ providers: [Settings], exports: [Settings] })
    class Configuration {}

    const { app } = await startApp({
      imports: [
        LockModule.forRootAsync({
          imports: [Configuration],
          inject: [Settings],
          useFactory: ({ store }: Settings) => ({ store }),
        }),
      ],
    });
    expect(await app.get(LockService).run('key', () => 'ran')).toBe('ran');
  });

  it('does not start if the factory throws, or returns no options, and rejects with the reason', async () => {
    const throwing = LockModule.forRootAsync({
      useFactory: () => {
        throw new Error('no configuration');
      },
    });
    await expect(startApp({ imports: [throwing] })).rejects.toThrow('no configuration');
    const empty = LockModule.forRootAsync({ useFactory: () => undefined as never });
    await expect(startApp({ imports: [empty] })).rejects.toThrow(
      "LockModule needs an options object, received undefined. Write LockModule.forRoot({ redis: 'redis://localhost:6379' }).",
    );
  });
});

describe('two applications in one process', () => {
  const startOrders = async (imports: Type[]): Promise<Orders> =>
    (await startApp({ imports, providers: [Orders] })).app.get(Orders);

  it('do not exclude each other on memory stores, of one module class too', async () => {
    @Module({ imports: [LockModule.forRoot(memory)] })
    class Shared {}
    const [first, second] = [await startOrders([Shared]), await startOrders([Shared])];
    const until = deferred();
    const inFirst = first.pay('42', until);
    expect(await second.pay('42')).toBe('paid 42');
    await expect(first.pay('42')).rejects.toThrow(LockNotAcquiredError);
    until.resolve();
    await inFirst;
  });

  it('do when they are given one store', async () => {
    @Module({ imports: [LockModule.forRoot({ store: storeOption(new MemoryLockStore()) })] })
    class Shared {}
    const [first, second] = [await startOrders([Shared]), await startOrders([Shared])];
    const lock = await first.locks.acquire('order:42');
    await expect(second.pay('42')).rejects.toThrow(LockNotAcquiredError);
    const waiting = second.locks.acquire('order:42');
    await lock.release();
    await (await waiting).release();
  });

  it('close one by one: the other goes on', async () => {
    const a = await startApp({ imports: [LockModule.forRoot(memory)], providers: [Orders] });
    const b = await startApp({ imports: [LockModule.forRoot(memory)], providers: [Orders] });
    await a.app.close();
    await expect(a.app.get(Orders).pay('1')).rejects.toThrow('shutting down');
    expect(await b.app.get(Orders).pay('1')).toBe('paid 1');
  });
});
