import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  applyDecorators,
  Controller,
  Get,
  Injectable,
  Scope,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type ModuleMetadata,
  type Type,
  type NestInterceptor,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import { LazyModuleLoader, ModuleRef } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Cron, CronExpression, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { WebSocketGateway } from '@nestjs/websockets';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  LockConfigurationError,
  LockModule,
  LockNotBoundError,
  LockService,
  RunOnce,
  WithLock,
} from 'nestjs-holdfast';
import { createTestLocks, LockTestingModule } from 'nestjs-holdfast/testing';
import { defer, from, lastValueFrom, type Observable } from 'rxjs';
import { closeHttpApps, startHttpApp } from '../../nest/http-app.js';
import { deferred } from '../../support/eventually.js';
import { complaintsAbout, type Sample } from './samples.js';

const project = fileURLToPath(new URL('../../../', import.meta.url));

type Outcome = 'yes' | 'no' | 'compile error' | 'error at start-up' | 'the call fails';

const [, section = ''] = readFileSync(`${project}docs/decorators.md`, 'utf8').split(
  '\n## Will it work?\n',
);
const rows = section
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (?:what you write |-)/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, written = '', locks = '']) => ({ written, locks }));

/** How often work has run. */
let runs = 0;

const work = async (): Promise<void> => {
  runs += 1;
  await Promise.resolve();
};

@Injectable()
class Orders {
  @WithLock('order')
  async pay(): Promise<void> {
    await work();
  }
}

interface Paying {
  pay(): Promise<unknown>;
}

/** What becomes of a call whose key another caller holds, and of the same call when that caller is done. */
async function outcomeOf(locks: LockService, call: () => unknown): Promise<Outcome> {
  const before = runs;
  let refused = 0;
  const forget = locks.on('refused', () => {
    refused += 1;
  });
  const lock = await locks.acquire('order');
  const [first] = await Promise.allSettled([(async () => await call())()]);
  const ranMeanwhile = runs > before;
  await lock.release();
  forget();
  if (ranMeanwhile) return 'no';
  if (first.status === 'rejected' && first.reason instanceof LockNotBoundError)
    return 'the call fails';
  expect({ refused }).toEqual({ refused: 1 });
  await call();
  expect({ runs: runs - before }).toEqual({ runs: 1 });
  return 'yes';
}

type App = Awaited<ReturnType<typeof startHttpApp>>;

/** Starts an application of these parts, in which it makes a call. */
async function inApp(
  metadata: ModuleMetadata,
  call: (app: App) => unknown,
  prepare: (app: App) => void = () => undefined,
): Promise<Outcome> {
  const app = await startHttpApp(metadata);
  prepare(app);
  return outcomeOf(app.locks, () => call(app));
}

/** Asks about `pay()` of what is provided as `Orders`. */
const paid = (provider: Provider): Promise<Outcome> =>
  inApp({ providers: [provider] }, ({ app }) => app.get<Paying>(Orders).pay());

/** Asks about `pay()` of an object of a class. */
const paidBy = (type: new () => Paying): Promise<Outcome> =>
  paid({ provide: Orders, useClass: type });

/** Asks about several ways to write it, which have to be alike. */
async function alike(...ways: readonly (() => Promise<Outcome>)[]): Promise<Outcome> {
  const outcomes = new Set<Outcome>();
  for (const way of ways) outcomes.add(await way());
  const [outcome, ...others] = outcomes;
  expect(others).toEqual([]);
  return outcome!;
}

/** Of two routes of a controller, `above` and `below`. */
const routesAlike = (controller: Type): Promise<Outcome> => {
  const controllers = [controller];
  return alike(
    () => inApp({ controllers }, ({ get }) => get('/above')),
    () => inApp({ controllers }, ({ get }) => get('/below')),
  );
};

async function exhaust(iterable: AsyncIterable<unknown>): Promise<void> {
  for await (const item of iterable) expect(item).toBeUndefined();
}

/** As such decorators do: a function of its own in place of the method. */
const Transactional =
  (notes: string[] = []): MethodDecorator =>
  (_target, _name, descriptor): void => {
    const original = descriptor.value as unknown as (...args: unknown[]) => Promise<unknown>;
    descriptor.value = async function (this: unknown, ...args: unknown[]): Promise<unknown> {
      const result = await original.apply(this, args);
      notes.push('commit');
      return result;
    } as never;
  };

/** As decorators do that call the method later, and do not look for it on the object. */
const keepingIn =
  (kept: { method?: () => unknown }): MethodDecorator =>
  (_target, _name, descriptor): void => {
    kept.method = descriptor.value as unknown as () => unknown;
  };

@Injectable()
class Passing implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle();
  }
}

/** The code does not compile, for that reason. */
const refused = (code: string, reason: string) => ({ code, reason });
const NOT_VALID = 'Decorators are not valid here.';

const CASES: Readonly<Record<string, (() => Promise<Outcome>) | ReturnType<typeof refused>>> = {
  // Where the decorator is
  'a method, called from another class': () => {
    @Injectable()
    class Till {
      constructor(readonly orders: Orders) {}
    }
    return inApp({ providers: [Orders, Till] }, ({ app }) => app.get(Till).orders.pay());
  },
  'a method that its own class calls: `this.pay()`': () => {
    class Caller extends Orders {
      async payTwice(): Promise<void> {
        await this.pay();
      }
    }
    return inApp({ providers: [Caller] }, ({ app }) => app.get(Caller).payTwice());
  },
  'a `private` or `protected` method': () => {
    class Hiding {
      @WithLock('order')
      private async payNow(): Promise<void> {
        await work();
      }

      @WithLock('order')
      protected async payLater(): Promise<void> {
        await work();
      }

      now = (): Promise<void> => this.payNow();
      later = (): Promise<void> => this.payLater();
    }
    const providers = [Hiding];
    return alike(
      () => inApp({ providers }, ({ app }) => app.get(Hiding).now()),
      () => inApp({ providers }, ({ app }) => app.get(Hiding).later()),
    );
  },
  'a `#private` method': refused(
    "class Orders { @WithLock('a') async #pay(): Promise<void> {} call() { return this.#pay(); } }",
    NOT_VALID,
  ),
  'a `static` method': refused(
    "class Orders { @WithLock('a') static async pay(): Promise<void> {} }",
    'make the method non-static',
  ),
  'a getter or a setter': refused(
    "class Orders { @WithLock('a') get paid(): Promise<void> { return Promise.resolve(); } }\n" +
      "class Others { @WithLock('a') set paid(value: Promise<void>) {} }",
    'move the work of this accessor into an async method',
  ),
  'a property, such as `pay = async () => { … }`': refused(
    "class Orders { @WithLock('a') pay = async (): Promise<void> => {}; }",
    'Unable to resolve signature of property decorator',
  ),
  'a constructor': refused("class Orders { @WithLock('a') constructor() {} }", NOT_VALID),
  'a class': refused(
    "@WithLock('a') class Orders {}",
    'Unable to resolve signature of class decorator',
  ),
  'an `abstract` method': refused(
    "abstract class Orders { @WithLock('a') abstract pay(): Promise<void>; }",
    'A decorator can only decorate a method implementation',
  ),
  'two `@WithLock` on one method': () => {
    class Twice {
      @WithLock('order')
      @WithLock('other')
      async pay(): Promise<void> {
        await work();
      }
    }
    return paidBy(Twice);
  },
  '`@WithLock` and `@RunOnce` on one method': () => {
    class Both {
      @WithLock('order')
      @RunOnce('other')
      async pay(): Promise<string | undefined> {
        await work();
        return 'paid';
      }
    }
    return paidBy(Both);
  },
  '`@WithLock` in `applyDecorators`': () => {
    class Applied {
      @applyDecorators(WithLock('order') as MethodDecorator)
      async pay(): Promise<void> {
        await work();
      }
    }
    return paidBy(Applied);
  },

  // What the method returns
  'a Promise': () => paid(Orders),
  '`async *`': () => {
    class Listing {
      @WithLock('order')
      async *list(): AsyncGenerator<void> {
        await work();
        yield;
      }
    }
    return inApp({ providers: [Listing] }, ({ app }) => exhaust(app.get(Listing).list()));
  },
  "an Observable, with `returns: 'observable'`": () => {
    class Watching {
      @WithLock('order', { returns: 'observable' })
      watch(): Observable<void> {
        return defer(() => from(work()));
      }
    }
    return inApp({ providers: [Watching] }, ({ app }) => lastValueFrom(app.get(Watching).watch()));
  },
  "another async iterable, with `returns: 'iterable'`": () => {
    class Listing {
      @WithLock('order', { returns: 'iterable' })
      list(): AsyncIterable<void> {
        return (async function* () {
          await work();
          yield;
        })();
      }
    }
    return inApp({ providers: [Listing] }, ({ app }) => exhaust(app.get(Listing).list()));
  },
  'an Observable or async iterable, without `returns`': refused(
    "class Orders { @WithLock('a') watch(): Observable<string> { return EMPTY; } }\n" +
      "class Others { @WithLock('a') list(): AsyncIterable<string> { return [] as never; } }",
    'add the option returns:',
  ),
  'a value that is not a Promise': refused(
    "class Orders { @WithLock('a') pay(): string { return 'paid'; } }",
    'make it async',
  ),
  'work that continues after the method has returned': async () => {
    class Careless {
      rest: Promise<void> = Promise.resolve();

      @WithLock('order')
      async pay(): Promise<void> {
        this.rest = ended.promise.then(work);
        await Promise.resolve();
      }
    }
    const ended = deferred();
    const { app, locks } = await startHttpApp({ providers: [Careless] });
    const careless = app.get(Careless);
    await careless.pay();
    return outcomeOf(locks, () => {
      ended.resolve();
      return careless.rest;
    });
  },

  // Other decorators
  '`@WithLock` above or below `@Get`, `@Post`, …': () => {
    @Controller()
    class Handlers {
      @WithLock('order')
      @Get('above')
      async above(): Promise<void> {
        await work();
      }

      @Get('below')
      @WithLock('order')
      async below(): Promise<void> {
        await work();
      }
    }
    return routesAlike(Handlers);
  },
  '`@WithLock` above or below `@UseInterceptors`': () => {
    @Controller()
    class Handlers {
      @WithLock('order')
      @UseInterceptors(Passing)
      @Get('above')
      async above(): Promise<void> {
        await work();
      }

      @UseInterceptors(Passing)
      @Get('below')
      @WithLock('order')
      async below(): Promise<void> {
        await work();
      }
    }
    return routesAlike(Handlers);
  },
  '`@WithLock` above or below `@Cron`': () => {
    @Injectable()
    class Jobs {
      @WithLock('order')
      @Cron(CronExpression.EVERY_YEAR, { name: 'above', waitForCompletion: true })
      async above(): Promise<void> {
        await work();
      }

      @Cron(CronExpression.EVERY_YEAR, { name: 'below', waitForCompletion: true })
      @WithLock('order')
      async below(): Promise<void> {
        await work();
      }
    }
    const metadata = { imports: [ScheduleModule.forRoot()], providers: [Jobs] };
    const run = (name: string) => () =>
      inApp(metadata, ({ app }) => app.get(SchedulerRegistry).getCronJob(name).fireOnTick());
    return alike(run('above'), run('below'));
  },
  '`@WithLock` above or below `@OnEvent`': () => {
    @Injectable()
    class Listeners {
      @WithLock('order')
      @OnEvent('above')
      async above(): Promise<void> {
        await work();
      }

      @OnEvent('below')
      @WithLock('order')
      async below(): Promise<void> {
        await work();
      }
    }
    const metadata = { imports: [EventEmitterModule.forRoot()], providers: [Listeners] };
    const emit = (event: string) => () =>
      inApp(metadata, ({ app }) => app.get(EventEmitter2).emitAsync(event));
    return alike(emit('above'), emit('below'));
  },
  '`@WithLock` above `@Transactional()`, or another wrapper': async () => {
    const notes: string[] = [];
    class Above {
      @WithLock('order')
      @Transactional(notes)
      async pay(): Promise<void> {
        await work();
      }
    }
    const outcome = await inApp(
      { providers: [Above] },
      ({ app }) => app.get(Above).pay(),
      ({ locks }) => locks.on('released', () => notes.push('release')),
    );
    expect(notes.slice(-2)).toEqual(['commit', 'release']);
    return outcome;
  },
  '`@WithLock` below `@Transactional()`, or another wrapper': async () => {
    const notes: string[] = [];
    class Below {
      @Transactional(notes)
      @WithLock('order')
      async pay(): Promise<void> {
        await work();
      }
    }
    const outcome = await inApp(
      { providers: [Below] },
      ({ app }) => app.get(Below).pay(),
      ({ locks }) => locks.on('released', () => notes.push('release')),
    );
    expect(notes.slice(-2)).toEqual(['release', 'commit']);
    return outcome;
  },
  '`@WithLock` below a decorator that keeps the function it got': () => {
    const kept: { method?: () => unknown } = {};
    class Kept {
      @keepingIn(kept)
      @WithLock('order')
      async pay(): Promise<void> {
        await work();
      }
    }
    return inApp({ providers: [Kept] }, ({ app }) => kept.method?.call(app.get(Kept)));
  },
  '`@WithLock` above a decorator that keeps the function it got': () => {
    const kept: { method?: () => unknown } = {};
    class Kept {
      @WithLock('order')
      @keepingIn(kept)
      async pay(): Promise<void> {
        await work();
      }
    }
    return inApp({ providers: [Kept] }, ({ app }) => kept.method?.call(app.get(Kept)));
  },

  // Inheritance
  'a method that is inherited, also from an abstract class': () => {
    class Inherits extends Orders {}
    abstract class Base {
      @WithLock('order')
      async pay(): Promise<void> {
        await work();
      }
    }
    class Derived extends Base {}
    return alike(
      () => paidBy(Inherits),
      () => paidBy(Derived),
    );
  },
  'an override with `@WithLock`': () => {
    class Repeats extends Orders {
      @WithLock('order')
      override async pay(): Promise<void> {
        await work();
      }
    }
    return paidBy(Repeats);
  },
  'an override with `@WithLock` that calls the decorated `super.pay()`': () => {
    class Repeats extends Orders {
      @WithLock('order')
      override async pay(): Promise<void> {
        await super.pay();
      }
    }
    return paidBy(Repeats);
  },
  'an override without `@WithLock` that calls the decorated `super.pay()`': () => {
    class Calls extends Orders {
      override async pay(): Promise<void> {
        await super.pay();
      }
    }
    return paidBy(Calls);
  },
  'an override without `@WithLock`': () => {
    class Overrides extends Orders {
      override async pay(): Promise<void> {
        await work();
      }
    }
    return paidBy(Overrides);
  },
  'an override by a property, such as `pay = async () => { … }`': () => {
    class Overrides extends Orders {
      override pay = work;
    }
    return paidBy(Overrides);
  },

  // Who makes the object
  'a provider or a controller': () => {
    @Controller()
    class Handlers extends Orders {}
    return alike(
      () => paid(Orders),
      () => inApp({ controllers: [Handlers] }, ({ app }) => app.get(Handlers).pay()),
    );
  },
  'a request-scoped or transient provider': () => {
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest extends Orders {}
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient extends Orders {}
    const providers = [PerRequest, Transient];
    return alike(
      () => inApp({ providers }, async ({ app }) => (await app.resolve(PerRequest)).pay()),
      () => inApp({ providers }, async ({ app }) => (await app.resolve(Transient)).pay()),
    );
  },
  '`moduleRef.create(Orders)`': () =>
    inApp({}, async ({ app }) => (await app.get(ModuleRef).create(Orders)).pay()),
  'a provider of a module that `LazyModuleLoader` loads': () => {
    class Lazy {}
    const lazy = { module: Lazy, providers: [Orders] };
    return inApp({}, async ({ app }) =>
      (await app.get(LazyModuleLoader).load(() => lazy)).get(Orders).pay(),
    );
  },
  '`useValue`, or `useFactory` that returns the object': () =>
    alike(
      () => paid({ provide: Orders, useValue: new Orders() }),
      () => paid({ provide: Orders, useFactory: () => new Orders() }),
    ),
  '`useFactory` with a request or transient scope': () => {
    const made = (scope: Scope) => () =>
      inApp(
        { providers: [{ provide: Orders, useFactory: () => new Orders(), scope }] },
        async ({ app }) => (await app.resolve(Orders)).pay(),
      );
    return alike(made(Scope.REQUEST), made(Scope.TRANSIENT));
  },
  '`useFactory` or `useValue`, loaded lazily': () => {
    const loaded = (provider: Provider) => () =>
      inApp({}, async ({ app }) => {
        const lazy = { module: class Lazy {}, providers: [provider] };
        return (await app.get(LazyModuleLoader).load(() => lazy)).get(Orders).pay();
      });
    return alike(
      loaded({ provide: Orders, useValue: new Orders() }),
      loaded({ provide: Orders, useFactory: () => new Orders() }),
    );
  },
  '`useFactory` that returns a list or another object around it': () =>
    inApp({ providers: [{ provide: 'list', useFactory: () => [new Orders()] }] }, async ({ app }) =>
      app.get<[Orders]>('list')[0].pay(),
    ),
  '`new Orders()`, or a class that is in no module': () => inApp({}, () => new Orders().pay()),
  '`locks.bind(new Orders())`': () => inApp({}, ({ locks }) => locks.bind(new Orders()).pay()),
  '`const { pay } = orders; pay()`': () =>
    inApp({ providers: [Orders] }, ({ app }) => {
      const { pay } = app.get(Orders);
      return pay();
    }),
  'an application without `LockModule`': async () => {
    const starting = Test.createTestingModule({ providers: [Orders] }).compile();
    await expect(starting).rejects.toThrow('import LockModule.forRoot({ … }) in the root module');
    return 'error at start-up';
  },

  // When it is called
  'in the constructor of its object': () => {
    class Hasty extends Orders {
      readonly begun: Promise<void>;

      constructor() {
        super();
        this.begun = this.pay();
        this.begun.catch(() => undefined);
      }
    }
    return inApp({ providers: [Hasty] }, ({ app }) => app.get(Hasty).begun);
  },
  'in `onModuleInit`, or a decorated `onModuleInit`': async () => {
    class Calling extends Orders implements OnModuleInit {
      constructor(readonly locks: LockService) {
        super();
      }

      outcome: Outcome | undefined;

      async onModuleInit(): Promise<void> {
        this.outcome = await outcomeOf(this.locks, () => this.pay());
      }
    }
    Reflect.defineMetadata('design:paramtypes', [LockService], Calling);
    class Decorated implements OnModuleInit {
      @WithLock('order')
      async onModuleInit(): Promise<void> {
        await work();
      }
    }
    const { app } = await startHttpApp({ providers: [Calling] });
    const before = runs;
    const again = await inApp({ providers: [Decorated] }, (other) =>
      other.app.get(Decorated).onModuleInit(),
    );
    // Once by Nest, and once by the call.
    expect(runs - before).toBe(2);
    expect(app.get(Calling).outcome).toBe(again);
    return again;
  },
  '`handleConnection` of a gateway, decorated': () => {
    @WebSocketGateway()
    class OrdersGateway {
      @WithLock('order')
      async handleConnection(): Promise<void> {
        await work();
      }
    }
    return inApp({ providers: [OrdersGateway] }, () => undefined);
  },

  // In tests
  '`LockTestingModule` instead of `LockModule`': async () => {
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot()],
      providers: [Orders],
    }).compile();
    await module.init();
    const outcome = await outcomeOf(module.get(LockService), () => module.get(Orders).pay());
    await module.close();
    return outcome;
  },
  '`overrideProvider(Orders).useValue({ pay })`': async () => {
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory' })],
      providers: [Orders],
    })
      .overrideProvider(Orders)
      .useValue({ pay: work })
      .compile();
    await module.init();
    const outcome = await outcomeOf(module.get(LockService), () => module.get(Orders).pay());
    await module.close();
    return outcome;
  },
  'a mock as `LockService`, also one of `useMocker`': async () => {
    const mock = { run: (_key: string, run: () => unknown) => run() };
    const overridden = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory' })],
      providers: [Orders],
    })
      .overrideProvider(LockService)
      .useValue(mock)
      .compile();
    const mocked = await Test.createTestingModule({ providers: [Orders] })
      .useMocker(() => mock)
      .compile();
    const { locks } = createTestLocks();
    const outcome = await alike(
      () => outcomeOf(locks, () => overridden.get(Orders).pay()),
      () => outcomeOf(locks, () => mocked.get(Orders).pay()),
    );
    await Promise.all([overridden.close(), mocked.close(), locks.shutdown(0)]);
    return outcome;
  },
  '`createTestLocks().locks.bind(new Orders())`': async () => {
    const { locks } = createTestLocks();
    const outcome = await outcomeOf(locks, () => locks.bind(new Orders()).pay());
    await locks.shutdown(0);
    return outcome;
  },
};

/** The rows that stand for several cases, or say them in other words. Any other row is the name of its case. */
const ROWS: Readonly<Record<string, readonly string[]>> = {
  'a method that another class calls, or `this.pay()`': [
    'a method, called from another class',
    'a method that its own class calls: `this.pay()`',
  ],
  'a `#private` or `static` method': ['a `#private` method', 'a `static` method'],
  'a getter, a setter, or `pay = async () => { … }`': [
    'a getter or a setter',
    'a property, such as `pay = async () => { … }`',
  ],
  'a constructor, or a class': ['a constructor', 'a class'],
  'a method that returns a Promise, or `async *`': ['a Promise', '`async *`'],
  "a method that returns an Observable, with `returns: 'observable'`": [
    "an Observable, with `returns: 'observable'`",
  ],
  "a method that returns another async iterable, with `returns: 'iterable'`": [
    "another async iterable, with `returns: 'iterable'`",
  ],
  'a method that returns an Observable or async iterable, without `returns`': [
    'an Observable or async iterable, without `returns`',
  ],
  'a method that returns no Promise': ['a value that is not a Promise'],
  '`@WithLock` above or below `@Get`, `@Post`, `@UseInterceptors`': [
    '`@WithLock` above or below `@Get`, `@Post`, …',
    '`@WithLock` above or below `@UseInterceptors`',
  ],
  '`@WithLock` above or below `@Cron`, `@OnEvent`': [
    '`@WithLock` above or below `@Cron`',
    '`@WithLock` above or below `@OnEvent`',
  ],
  '`applyDecorators` with `WithLock(key) as MethodDecorator`': ['`@WithLock` in `applyDecorators`'],
  'an override with `@WithLock`, which may call `super.pay()`': [
    'an override with `@WithLock`',
    'an override with `@WithLock` that calls the decorated `super.pay()`',
  ],
  'an override without `@WithLock` that calls `super.pay()`': [
    'an override without `@WithLock` that calls the decorated `super.pay()`',
  ],
  'a provider or a controller, in any scope, also loaded lazily': [
    'a provider or a controller',
    'a request-scoped or transient provider',
    'a provider of a module that `LazyModuleLoader` loads',
  ],
  'a call in the constructor': ['in the constructor of its object'],
  'a call in `onModuleInit`, or a decorated `onModuleInit`': [
    'in `onModuleInit`, or a decorated `onModuleInit`',
  ],
};

const casesOf = (row: string): readonly string[] => ROWS[row] ?? [row];

/** What the compiler says of the cases that do not compile. */
let complaints: readonly string[];

/** A name for files, which those of the cases are not. */
const fileOf = (name: string): string => `case-${String(Object.keys(CASES).indexOf(name))}`;

beforeAll(() => {
  const preamble =
    "import { WithLock } from 'nestjs-holdfast'; import { EMPTY, type Observable } from 'rxjs';";
  const samples = Object.entries(CASES).flatMap(([name, each]): Sample[] =>
    'code' in each
      ? [{ page: fileOf(name), line: 1, preamble, code: `${each.code}\n`, file: undefined }]
      : [],
  );
  complaints = complaintsAbout(samples, project, '');
});

afterEach(closeHttpApps);

async function found(name: string): Promise<Outcome> {
  const each = CASES[name];
  if (each === undefined) throw new Error('no test is known of this row');
  if ('code' in each) {
    const said = complaints.filter((line) => line.startsWith(`${fileOf(name)}:`));
    const lines = each.code.split('\n').map((_, index) => index + 1);
    for (const line of lines)
      expect(said).toContainEqual(
        expect.stringMatching(new RegExp(`^\\S+:${String(line)}: [^]*${each.reason}`)),
      );
    return 'compile error';
  }
  try {
    return await each();
  } catch (error) {
    if (error instanceof LockConfigurationError) return 'error at start-up';
    throw error;
  }
}

describe('docs/decorators.md', () => {
  it('has a row for each test, and a test for each row', () => {
    const shown = rows.flatMap(({ written }) => casesOf(written));
    expect(shown.toSorted()).toEqual(Object.keys(CASES).toSorted());
  });

  const told = rows.flatMap(({ written, locks }) =>
    casesOf(written).map((name) => ({ name, locks })),
  );

  it.each(told)('says what happens: $name', async ({ name, locks }) => {
    expect(await found(name)).toBe(locks);
  });
});
