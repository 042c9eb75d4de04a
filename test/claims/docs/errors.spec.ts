import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { fileURLToPath } from 'node:url';
import {
  Controller,
  Injectable,
  Logger,
  Module,
  Param,
  ParseIntPipe,
  Post,
  type LoggerService,
} from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  defineLock,
  type DetachableLock,
  Leader,
  LockError,
  LockModule,
  LockService,
  WithLock,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { MemoryLockStore } from '../../../lib/store/memory/memory-lock-store.js';
import { createTestLocks } from 'nestjs-holdfast/testing';
import * as prettier from 'prettier';
import { VALID } from '../../support/certificates.js';
import { freePort } from '../../support/free-port.js';
import { RedisServer } from '../../support/redis-server.js';
import { closeApps, startApp } from '../../nest/module/start-app.js';
import { closeHttpApps, startHttpApp } from '../../nest/http-app.js';
import { storeOption } from '../../../lib/options/location.js';

/*
 * Makes each mistake, and compares docs/errors.md with what was printed.
 * `UPDATE_DOCS=1 npm test -- test/claims/docs/errors` writes the tables behind the marker anew.
 */

const PAGE = fileURLToPath(new URL('../../../docs/errors.md', import.meta.url));
const MARKER = '<!-- mistakes -->';

type Anything = (...args: unknown[]) => unknown;

interface Mistake {
  readonly mistake: string;
  /** What is shown: of a lock error that is thrown, its detail; of any other error, its message. */
  readonly make: () => unknown;
}

let redis: RedisServer;
let guarded: RedisServer;
let nobodysPort: number;
let untrusted: Server;
const services: LockService[] = [];

function service(options: LockModuleOptions = { store: 'memory' }): LockService {
  const locks = new LockService({ wait: 50, ...options });
  services.push(locks);
  return locks;
}

const start = (options: unknown): Promise<unknown> =>
  startApp({ imports: [LockModule.forRoot(options as LockModuleOptions)] });

/** Decorates `OrdersService.pay(orderId)`. */
function decorate(decorator: unknown, isStatic = false): unknown {
  class OrdersService {
    static async pay(orderId: string): Promise<string> {
      return orderId;
    }
    async pay(orderId: string): Promise<string> {
      return orderId;
    }
  }
  const target = isStatic ? OrdersService : OrdersService.prototype;
  return (decorator as Anything)(target, 'pay', Object.getOwnPropertyDescriptor(target, 'pay'));
}

const withLock = WithLock as Anything;

const call = (method: 'acquire' | 'run', ...args: unknown[]): unknown =>
  Reflect.apply(service()[method] as Anything, services.at(-1), args);

function warningsDuring(work: () => Promise<unknown>): Promise<string> {
  const warnings: string[] = [];
  const record = (message: unknown): void => {
    warnings.push(String(message));
  };
  const logger: LoggerService = { log: () => undefined, warn: record, error: record };
  Logger.overrideLogger(logger);
  return work().then(() => warnings[0] ?? 'nothing');
}

const MISTAKES: Readonly<Record<string, readonly Mistake[]>> = {
  Configuration: [
    { mistake: 'LockModule.forRoot({})', make: () => start({}) },
    {
      mistake: 'forRoot({ redis: process.env.REDIS_URL }), which is not set',
      make: () => start({ redis: undefined }),
    },
    {
      mistake: "forRoot({ redis: '…', store: 'memory' })",
      make: () => start({ redis: redis.url, store: 'memory' }),
    },
    {
      mistake: "forRoot({ redis: 'localhost:6379' })",
      make: () => start({ redis: 'localhost:6379' }),
    },
    {
      mistake: "forRoot({ redis: 'redis://a,redis://b' })",
      make: () => start({ redis: 'redis://a,redis://b' }),
    },
    {
      mistake: "forRoot({ redis: { url: 'redis://a' } })",
      make: () => start({ redis: { url: 'redis://a' } }),
    },
    {
      mistake: 'forRoot({ redis: new RedisMock() }), of ioredis-mock',
      make: () => start({ redis: { shaScripts: {}, customCommands: {}, keyData: {} } }),
    },
    {
      mistake: "forRoot({ store: 'memory', tll: '5s' })",
      make: () => start({ store: 'memory', tll: '5s' }),
    },
    {
      mistake: "forRoot({ store: 'memory', ttl: '5 sec onds' })",
      make: () => start({ store: 'memory', ttl: '5 sec onds' }),
    },
    {
      mistake: "useFactory: () => ({ store: 'memory', name: 'jobs' })",
      make: () =>
        startApp({
          imports: [
            LockModule.forRootAsync({
              useFactory: () => ({ store: 'memory', name: 'jobs' }) as LockModuleOptions,
            }),
          ],
        }),
    },
    {
      mistake: 'LockModule.forRoot(…) in two modules',
      make: () => {
        @Module({ imports: [LockModule.forRoot({ store: 'memory' })] })
        class OrdersModule {}
        return startApp({
          imports: [LockModule.forRoot({ store: 'memory', ttl: 1_000 }), OrdersModule],
        });
      },
    },
  ],
  'Decorators and keys': [
    {
      mistake: "defineLock('order:<order.id>')",
      make: () => defineLock('order:<order.id>'),
    },
    {
      mistake: "@Leader('mailbox', { wait: '5s' })",
      make: () =>
        Leader('mailbox', { wait: '5s' } as never)({ constructor: LockService }, 'lead', {
          value: () => undefined,
        }),
    },
    { mistake: '@WithLock', make: () => decorate(WithLock) },
    { mistake: '@WithLock()', make: () => decorate(withLock()) },
    { mistake: "@WithLock({ key: 'order' })", make: () => decorate(withLock({ key: 'order' })) },
    { mistake: "@WithLock('a', 5000)", make: () => decorate(withLock('a', 5_000)) },
    {
      mistake: "@WithLock('a', { wiat: '5s' })",
      make: () => decorate(withLock('a', { wiat: '5s' })),
    },
    { mistake: '@WithLock on a static method', make: () => decorate(withLock('a'), true) },
    {
      mistake: "@WithLock('order:<orderid>') pay(orderId)",
      make: () => decorate(withLock('order:<orderid>')),
    },
    {
      mistake: "@WithLock('order::orderId') pay(orderId)",
      make: () => decorate(withLock('order::orderId')),
    },
    { mistake: "@WithLock('order:{orderId}')", make: () => decorate(withLock('order:{orderId}')) },
    {
      mistake: "@WithLock('<orderId><orderId>')",
      make: () => decorate(withLock('<orderId><orderId>')),
    },
    {
      mistake: "@Post(':id') @WithLock('order:<request.params.idd>')",
      make: () => {
        @Controller('orders')
        class OrdersController {
          @Post(':id')
          @WithLock('order:<request.params.idd>')
          async pay(): Promise<void> {
            // Nothing.
          }
        }
        return startHttpApp({ controllers: [OrdersController] });
      },
    },
    {
      mistake: "@WithLock('order:<request.params.id>') with a ParseIntPipe",
      make: () => {
        @Controller('orders')
        class OrdersController {
          @Post(':id')
          @WithLock('order:<request.params.id>')
          async pay(@Param('id', ParseIntPipe) id: number): Promise<number> {
            return id;
          }
        }
        return startHttpApp({ controllers: [OrdersController] });
      },
    },
    {
      mistake: "@WithLock('order:<request.params.id>') on a method of a service",
      make: () => {
        @Injectable()
        class OrdersService {
          @WithLock('order:<request.params.id>')
          async pay(): Promise<void> {
            // Nothing.
          }
        }
        return startHttpApp({ providers: [OrdersService] });
      },
    },
    {
      mistake: "@Post(':id') @WithLock('order:<params.id>') (a warning)",
      make: async () => {
        @Controller('orders')
        class OrdersController {
          @Post(':id')
          @WithLock('order:<params.id>')
          async pay(): Promise<void> {
            // Nothing.
          }
        }
        return (await startHttpApp({ controllers: [OrdersController] })).warnings[0];
      },
    },
    {
      mistake: '<user.id> without a guard that sets the user (a warning)',
      make: async () => {
        @Controller('orders')
        class OrdersController {
          @Post()
          @WithLock('orders:<user.id>')
          async pay(): Promise<void> {
            // Nothing.
          }
        }
        const { post, warnings } = await startHttpApp({ controllers: [OrdersController] });
        await post('/orders');
        return warnings[0];
      },
    },
    {
      mistake: 'new OrdersService().pay()',
      make: () => {
        class OrdersService {
          @WithLock('order')
          async pay(): Promise<void> {
            // Nothing.
          }
        }
        return new OrdersService().pay();
      },
    },
  ],
  Calls: [
    { mistake: "locks.acquire('order:42', 5000)", make: () => call('acquire', 'order:42', 5_000) },
    {
      mistake: "locks.acquire('order:42', { timeout: 5000 })",
      make: () => call('acquire', 'order:42', { timeout: 5_000 }),
    },
    { mistake: 'locks.acquire(undefined)', make: () => call('acquire', undefined) },
    { mistake: "locks.acquire('order:{42}')", make: () => call('acquire', 'order:{42}') },
    { mistake: "locks.run('order:42')", make: () => call('run', 'order:42') },
    {
      mistake: "locks.run('order:42', work, { ttl: '5s' })",
      make: () => call('run', 'order:42', () => 1, { ttl: '5s' }),
    },
  ],
  Connection: [
    {
      mistake: 'nobody listens at the address',
      make: () => service({ redis: `redis://127.0.0.1:${nobodysPort}` }).tryAcquire('order:42'),
    },
    {
      mistake: 'rediss:// and a port without TLS',
      make: () =>
        service({
          redis: redis.url.replace('redis:', 'rediss:'),
          nodeTimeout: 300,
        }).tryAcquire('order:42'),
    },
    {
      mistake: 'a TLS certificate of an authority that Node does not know',
      make: () =>
        service({
          redis: `rediss://127.0.0.1:${(untrusted.address() as AddressInfo).port}`,
        }).tryAcquire('order:42'),
    },
    {
      mistake: 'a password is missing',
      make: () => service({ redis: guarded.url }).tryAcquire('order:42'),
    },
    {
      mistake: 'a database that the server does not have',
      make: () => service({ redis: `${redis.url}/99` }).tryAcquire('order:42'),
    },
  ],
  'At run time': [
    {
      mistake: 'a lock of acquire() is asked for again before it is released',
      make: async () => {
        const locks = service();
        await locks.acquire('order:42');
        await locks.acquire('order:42');
      },
    },
    {
      mistake: "acquire('order:42') inside run('order:42')",
      make: () => {
        const locks = service();
        return locks.run('order:42', () => locks.acquire('order:42'));
      },
    },
    {
      mistake: 'another process holds the lock',
      make: async () => {
        const store = new MemoryLockStore();
        await service({ store: storeOption(store) }).acquire('order:42');
        await service({ store: storeOption(store) }).acquire('order:42', { wait: 0 });
      },
    },
    {
      mistake: "run(['a', 'b']) inside run('a')",
      make: () => {
        const locks = service();
        return locks.run('a', () => locks.run(['a', 'b'], () => 1));
      },
    },
    {
      mistake: "runOnce('a') inside run('a')",
      make: () => {
        const locks = service();
        return locks.run('a', () => locks.runOnce('a', () => 1));
      },
    },
    {
      mistake: "locks.assertHeld('order:42') where nothing holds it",
      make: () => {
        service().assertHeld('order:42');
      },
    },
    {
      mistake: "run('order:42') inside run('order:42', { mode: 'shared' })",
      make: () => {
        const locks = service();
        return locks.run('order:42', { mode: 'shared' }, () => locks.run('order:42', () => 1));
      },
    },
    {
      mistake: 'the text of a detached lock is attached twice',
      make: async () => {
        const locks = service();
        const text = await (await locks.acquire('order:42')).detach();
        await locks.attach(text);
        await locks.attach(text);
      },
    },
    {
      mistake: 'the text of a detached lock is cut off',
      make: async () => {
        const locks = service();
        const text = await (await locks.acquire('order:42')).detach();
        await locks.attach(text.slice(0, 100));
      },
    },
    {
      mistake: 'a lock is detached with one keyPrefix, and attached with another',
      make: async () => {
        const lock = await service({ redis: redis.url, keyPrefix: 'a:' }).acquire('order:42');
        await service({ redis: redis.url, keyPrefix: 'b:' }).attach(await lock.detach());
      },
    },
    {
      mistake: "lock.detach() inside run('order:42') (JavaScript)",
      make: () => service().run('order:42', (lock) => (lock as unknown as DetachableLock).detach()),
    },
    {
      mistake: "locks.on('aquired', …)",
      make: () => service().on('aquired' as 'acquired', () => undefined),
    },
  ],
  'Shutdown and tests': [
    {
      mistake: 'a lock of acquire() that is never released (a warning)',
      make: () =>
        warningsDuring(async () => {
          const locks = service();
          await locks.acquire('order:42');
          await locks.shutdown(0);
        }),
    },
    {
      mistake: 'a call after the shutdown',
      make: async () => {
        const locks = service();
        await locks.shutdown(0);
        await locks.acquire('order:42');
      },
    },
    {
      mistake: "testLocks.lose('order:42') before the code under test has locked it",
      make: () => createTestLocks().testLocks.lose('order:42'),
    },
  ],
};

/** What differs from run to run, and from machine to machine. */
const steady = (text: string): string =>
  text
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:6379')
    .replaceAll(/(held for|after waiting) \d+ ms/g, '$1 12 ms')
    // Servers word it in different ways.
    .replaceAll(/NOAUTH .*?(?=\)\. Nothing)/g, 'NOAUTH …')
    .replaceAll(/up to (29|30)\d{3} ms/g, 'up to 30000 ms')
    .replaceAll(
      /acquired at .+?(?=[),] and|\)\. |: use run)/g,
      'acquired at OrdersService.pay (orders.service.ts:12:9)',
    );

const code = (text: string): string => {
  const escaped = text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ');
  return escaped.includes('`') ? `\`\` ${escaped} \`\`` : `\`${escaped}\``;
};

async function printed({ make }: Mistake): Promise<string> {
  try {
    return steady(String(await make()));
  } catch (error) {
    return steady(error instanceof LockError ? error.detail : (error as Error).message);
  }
}

describe('docs/errors.md', () => {
  beforeAll(async () => {
    nobodysPort = await freePort();
    redis = await RedisServer.start();
    guarded = await RedisServer.start({ config: { requirepass: 'secret' } });
    untrusted = createServer(VALID).on('tlsClientError', () => undefined);
    untrusted.listen(0, '127.0.0.1');
    await once(untrusted, 'listening');
  });
  afterEach(async () => {
    await Promise.all(services.splice(0).map((locks) => locks.shutdown(0)));
    await closeApps();
    await closeHttpApps();
  });
  afterAll(async () => {
    await redis.stop();
    await guarded.stop();
    await once(untrusted.close(), 'close');
  });

  it('says of each mistake what is printed', async () => {
    const present = await readFile(PAGE, 'utf8');
    const [byHand = ''] = present.split(MARKER);
    const page = [`${byHand}${MARKER}`];
    for (const [topic, mistakes] of Object.entries(MISTAKES)) {
      page.push('', `### ${topic}`, '', '| mistake | text |', '| --- | --- |');
      for (const mistake of mistakes)
        page.push(`| ${code(mistake.mistake)} | ${code(await printed(mistake))} |`);
    }
    page.push('', 'Next: [Guarantees](guarantees.md).');
    const options = { ...(await prettier.resolveConfig(PAGE)), parser: 'markdown' };
    const text = await prettier.format(`${page.join('\n')}\n`, options);
    if (process.env.UPDATE_DOCS === '1') await writeFile(PAGE, text);
    expect(await readFile(PAGE, 'utf8')).toBe(text);
  });
});
