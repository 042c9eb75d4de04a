import 'reflect-metadata';
import { isDeepStrictEqual } from 'node:util';
import {
  Controller,
  Get,
  Injectable,
  Module,
  Param,
  Post,
  Scope,
  UseGuards,
  type CanActivate,
  type Provider,
  type Type,
} from '@nestjs/common';
import { ContextIdFactory, ModuleRef, NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  getLockServiceToken,
  LockModule,
  LockNotBoundError,
  LockService,
  WithLock,
} from 'nestjs-holdfast';
import { closeHttpApps, CONFLICT, startHttpApp, type HttpApp } from './http-app.js';

@Injectable()
class Orders {
  ran = 0;

  @WithLock('order')
  async pay(): Promise<void> {
    this.ran += 1;
  }
}

/** Whether the object's calls are locked: refused while somebody else holds the lock, run when not. */
async function expectLocked(
  { locks }: Pick<HttpApp, 'locks'>,
  object: { ran: number; pay(): Promise<unknown> },
): Promise<void> {
  const ran = object.ran;
  const lock = await locks.acquire('order');
  await expect(object.pay()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
  expect(object.ran).toBe(ran);
  await lock.release();
  await object.pay();
  expect(object.ran).toBe(ran + 1);
}

const start = (providers: Provider[], controllers: Type[] = []): Promise<HttpApp> =>
  startHttpApp({ providers, controllers });

afterEach(closeHttpApps);

describe('a mock in the place of the LockService', () => {
  it('is refused by decorated methods, which do not run, and the error says what to give', async () => {
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory' })],
      providers: [Orders],
    })
      .overrideProvider(LockService)
      .useValue({ run: (_key: string, work: () => unknown) => work() })
      .compile();
    await module.init();
    const orders = module.get(Orders);
    const call = orders.pay();
    await expect(call).rejects.toThrow(LockNotBoundError);
    await expect(call).rejects.toThrow(
      'Orders.pay has @WithLock, and something else was provided as its LockService, so the method did not run. In a test import ' +
        'LockTestingModule.forRoot() from nestjs-holdfast/testing, or provide createTestLocks().locks instead of the mock.',
    );
    expect(orders.ran).toBe(0);
    await module.close();
  });
});

describe('the LockService of a decorated object', () => {
  it('is injected into singletons, request-scoped and transient providers', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest extends Orders {}
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient extends Orders {}
    const started = await start([Orders, PerRequest, Transient]);
    await expectLocked(started, started.app.get(Orders));
    const id = ContextIdFactory.create();
    await expectLocked(started, await started.app.resolve(PerRequest, id));
    await expectLocked(started, await started.app.resolve(Transient));
    await expectLocked(started, await started.app.get(ModuleRef).create(Orders));
  });

  it('is injected into subclasses: inheriting, overriding with a super call, of abstract bases', async () => {
    @Injectable()
    class Overriding extends Orders {
      override async pay(): Promise<void> {
        await super.pay();
      }
    }
    @Injectable()
    class Repeating extends Orders {
      @WithLock(['order', 'other'])
      override async pay(): Promise<void> {
        await super.pay();
      }
    }
    abstract class Base {
      ran = 0;
      protected abstract work(): void;

      @WithLock('order')
      async pay(): Promise<void> {
        this.work();
      }
    }
    @Injectable()
    class Derived extends Base {
      protected work(): void {
        this.ran += 1;
      }
    }
    const started = await start([Overriding, Repeating, Derived]);
    await expectLocked(started, started.app.get(Overriding));
    await expectLocked(started, started.app.get(Repeating));
    await expectLocked(started, started.app.get(Derived));
    expect(started.warnings).toEqual([]);
  });

  it('is injected into classes with #private members and into controllers', async () => {
    @Injectable()
    class Private {
      #ran = 0;

      get ran(): number {
        return this.#ran;
      }

      @WithLock('order')
      async pay(): Promise<void> {
        this.#ran += 1;
      }
    }
    @Controller()
    class Paying {
      #ran = 0;

      @Get('pay/:id')
      @WithLock('order:<id>')
      async pay(@Param('id') id: string): Promise<string> {
        this.#ran += 1;
        return `${id} ${String(this.#ran)}`;
      }
    }
    const started = await start([Private], [Paying]);
    await expectLocked(started, started.app.get(Private));
    expect((await started.get('/pay/7')).body).toBe('7 1');
    await started.locks.acquire('order:7');
    expect((await started.get('/pay/7')).body).toEqual(CONFLICT);
  });

  it('is bound to what factories make and to given values, when the module starts', async () => {
    const value = new Orders();
    const started = await start([
      { provide: 'made', useFactory: () => new Orders() },
      { provide: 'given', useValue: value },
    ]);
    await expectLocked(started, started.app.get<Orders>('made'));
    await expectLocked(started, value);
  });

  it('is bound by hand to any other object, and without it nothing runs', async () => {
    const started = await start([]);
    const orders = new Orders();
    await expect(orders.pay()).rejects.toThrow(LockNotBoundError);
    await expect(orders.pay()).rejects.toThrow('call locks.bind(object) first');
    expect(orders.ran).toBe(0);
    expect(started.locks.bind(orders)).toBe(orders);
    await expectLocked(started, orders);
    const { pay } = Orders.prototype;
    await expect(Reflect.apply(pay, undefined, [])).rejects.toThrow(LockNotBoundError);
  });

  it('is one of several, by name, also in one class', async () => {
    @Injectable()
    class Both {
      constructor(readonly locks: LockService) {}

      @WithLock('a')
      async first(): Promise<boolean> {
        return (await this.locks.inspect('a')).held;
      }

      @WithLock('a', { instance: 'jobs' })
      async second(): Promise<boolean> {
        return (await this.locks.inspect('a')).held;
      }
    }
    const { app, locks } = await startHttpApp({
      imports: [LockModule.forRoot({ store: 'memory', name: 'jobs' })],
      providers: [Both],
    });
    const jobs = app.get<LockService>(getLockServiceToken('jobs'));
    const both = app.get(Both);
    expect([await both.first(), await both.second()]).toEqual([true, false]);
    const lock = await jobs.acquire('a');
    await expect(both.second()).rejects.toMatchObject({ code: 'LOCK_NOT_ACQUIRED' });
    expect(await both.first()).toBe(true);
    await lock.release();

    const made = locks.bind(new Both(locks));
    expect(await made.first()).toBe(true);
    await expect(made.second()).rejects.toThrow("LockModule.forRoot({ name: 'jobs', … })");
    jobs.bind(made);
    expect(await made.second()).toBe(false);
  });

  it('is not seen by spread, deep equality or freezing', async () => {
    @Injectable()
    class Frozen {
      static ran = 0;
      constructor() {
        Object.freeze(this);
      }

      get ran(): number {
        return Frozen.ran;
      }

      @WithLock('order')
      async pay(): Promise<void> {
        Frozen.ran += 1;
      }
    }
    const started = await start([Orders, Frozen]);
    const orders = started.app.get(Orders);
    expect(Object.assign({}, orders)).toEqual({ ran: 0 });
    expect(Reflect.ownKeys(orders)).toEqual(['ran']);
    expect(isDeepStrictEqual(orders, new Orders())).toBe(true);
    expect(JSON.stringify(orders)).toBe('{"ran":0}');
    await expectLocked(started, started.app.get(Frozen));
  });
});

describe('at start-up', () => {
  it('an override without the decorator is reported, once', async () => {
    class Unlocked extends Orders {
      override async pay(): Promise<void> {
        this.ran += 1;
      }
    }
    const { warnings } = await start([Unlocked, { provide: 'again', useClass: Unlocked }]);
    expect(warnings).toEqual([
      'Unlocked.pay overrides Orders.pay, which has @WithLock, without a lock of its own. Repeat @WithLock there if the override needs the lock.',
    ]);
  });

  it('an override is not reported that calls what it overrides, also by the name of the class', async () => {
    class Named extends Orders {
      override async pay(): Promise<void> {
        await Orders.prototype.pay.call(this);
      }
    }
    expect((await start([Named])).warnings).toEqual([]);
  });

  it('a second forRoot under the same name is an error', async () => {
    const twice = startHttpApp({ imports: [LockModule.forRoot({ store: 'memory' })] });
    await expect(twice).rejects.toThrow('LockModule.forRoot was imported 2 times');
  });
});

describe('@WithLock is refused when the class is defined', () => {
  const decorate = (target: object, name: string): (() => void) => {
    const descriptor = Object.getOwnPropertyDescriptor(target, name);
    return () => {
      WithLock('a')(target, name, descriptor as never);
    };
  };

  it('on static methods, accessors and fields', () => {
    class Wrong {
      static async still(): Promise<void> {}

      get accessor(): number {
        return Date.now();
      }
    }
    expect(decorate(Wrong, 'still')).toThrow(
      '@WithLock can only be applied to instance methods: Wrong.still is static, and no LockService is injected into a class.',
    );
    expect(decorate(Wrong.prototype, 'accessor')).toThrow(
      '@WithLock on Wrong.accessor is on an accessor. Move its work into an async method.',
    );
    expect(decorate(Wrong.prototype, 'field')).toThrow('@WithLock on Wrong.field is on a property');
  });

  it('twice on one method', () => {
    const twice = decorate(Orders.prototype, 'pay');
    expect(twice).toThrow(
      "Orders.pay has @WithLock twice. Give one of them all keys: @WithLock(['a', 'b']).",
    );
  });

  it.each(['toString', 'constructor', 'waits'])(
    'with an option "%s", which there is none',
    (name) => {
      class Wrong {
        async work(): Promise<void> {}
      }
      const descriptor = Object.getOwnPropertyDescriptor(Wrong.prototype, 'work');
      expect(() => {
        WithLock('a', { [name]: 1 })(Wrong.prototype, 'work', descriptor as never);
      }).toThrow(`@WithLock on Wrong.work has no option "${name}"`);
    },
  );
});

describe('a guard', () => {
  it('may say who <user> is: it runs before the lock is acquired', async () => {
    const byTenant: CanActivate = {
      canActivate(context) {
        const request = context.switchToHttp().getRequest<{ user?: object }>();
        request.user = { tenant: 'acme' };
        return true;
      },
    };
    @Controller('in')
    @UseGuards(byTenant)
    class Inside {
      constructor(private readonly locks: LockService) {}
      @Get()
      @WithLock('tenant:<user.tenant>')
      async work(): Promise<string> {
        return String(this.locks.current()?.keys);
      }
    }
    @Controller('out')
    class Outside {
      @Get()
      @WithLock('tenant:<user.tenant>')
      async work(): Promise<void> {}
    }

    const { get } = await startHttpApp({ controllers: [Inside, Outside] });
    expect((await get('/in')).body).toBe('tenant:acme');
    expect((await get('/out')).status).toBe(400);
  });
});

describe('an application without the module', () => {
  it('does not start, and says what is missing, also where only a handler is locked', async () => {
    @Controller()
    class Orders {
      @Post('orders/:id/pay')
      @WithLock('order:<request.params.id>')
      async pay(): Promise<void> {}
    }

    @Module({ controllers: [Orders] })
    class WithoutLocks {}

    const start = NestFactory.create(WithoutLocks, { logger: false, abortOnError: false });
    await expect(start).rejects.toThrow(
      'the LockService of @WithLock: in a test, import LockTestingModule.forRoot() from nestjs-holdfast/testing; in an application, import ' +
        'LockModule.forRoot({ … }) in the root module, or, with isGlobal: false, in this module',
    );
  });

  it.each<[string, string | symbol | undefined, string]>([
    ['without a name', undefined, 'LockModule.forRoot({ … })'],
    ['with a name', 'jobs', "LockModule.forRoot({ name: 'jobs', … })"],
    ['with a symbol', Symbol('reports'), 'LockModule.forRoot({ name: Symbol(reports), … })'],
  ])(
    'names forRoot where LockModule itself is imported: a service %s',
    async (_what, name, call) => {
      @Injectable()
      class Orders {
        @WithLock('orders', name === undefined ? {} : { instance: name })
        async pay(): Promise<void> {}
      }

      @Module({ imports: [LockModule], providers: [Orders] })
      class Bare {}

      const start = NestFactory.create(Bare, { logger: false, abortOnError: false });
      await expect(start).rejects.toThrow(
        `in an application, import ${call} in the root module, or, with isGlobal: false, in this module`,
      );
    },
  );
});
