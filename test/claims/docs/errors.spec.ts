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
 * Makes each mistake, and compares what was printed with mistakes.json, which has it in full, and docs/errors.md, which has a part of it.
 * `UPDATE_DOCS=1 npm test -- test/claims/docs/errors` writes both anew: the file, and the tables behind the marker of the page.
 */

const PAGE = fileURLToPath(new URL('../../../docs/errors.md', import.meta.url));
const PRINTED = fileURLToPath(new URL('./mistakes.json', import.meta.url));
const MARKER = '<!-- mistakes -->';

type Anything = (...args: unknown[]) => unknown;

interface Mistake {
  readonly mistake: string;
  /** The part of the text that the page shows, with `…` for what it leaves out. */
  readonly shows: string;
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
    {
      mistake: 'LockModule.forRoot({})',
      shows: 'LockModule was given neither "redis" nor "store" …',
      make: () => start({}),
    },
    {
      mistake: 'forRoot({ redis: process.env.REDIS_URL }), which is not set',
      shows: 'Option "redis" is undefined: is the environment variable that contains it set? …',
      make: () => start({ redis: undefined }),
    },
    {
      mistake: "forRoot({ redis: '…', store: 'memory' })",
      shows: 'LockModule was given both "redis" and "store". …',
      make: () => start({ redis: redis.url, store: 'memory' }),
    },
    {
      mistake: "forRoot({ redis: 'localhost:6379' })",
      shows: `Option "redis" must be a URL such as 'redis://localhost:6379' …`,
      make: () => start({ redis: 'localhost:6379' }),
    },
    {
      mistake: "forRoot({ redis: 'redis://a,redis://b' })",
      shows: 'Option "redis" holds several URLs in one text. Give a list of them …',
      make: () => start({ redis: 'redis://a,redis://b' }),
    },
    {
      mistake: "forRoot({ redis: { url: 'redis://a' } })",
      shows: '… a property "url", which ioredis does not know. Give the URL itself …',
      make: () => start({ redis: { url: 'redis://a' } }),
    },
    {
      mistake: 'forRoot({ redis: new RedisMock() }), of ioredis-mock',
      shows: '… which does not run the scripts of locks. In tests import LockTestingModule …',
      make: () => start({ redis: { shaScripts: {}, customCommands: {}, keyData: {} } }),
    },
    {
      mistake: "forRoot({ store: 'memory', tll: '5s' })",
      shows: 'LockModule has no option "tll". Did you mean "ttl"? …',
      make: () => start({ store: 'memory', tll: '5s' }),
    },
    {
      mistake: "forRoot({ store: 'memory', ttl: '5 sec onds' })",
      shows: 'Option "ttl" must be a duration of at least 50 ms …',
      make: () => start({ store: 'memory', ttl: '5 sec onds' }),
    },
    {
      mistake: "useFactory: () => ({ store: 'memory', name: 'jobs' })",
      shows: 'LockModule has no option "name". Put it beside "useFactory" in forRootAsync …',
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
      shows:
        'LockModule.forRoot was imported 2 times without a name. Import it once, in the root module …',
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
      shows: '… the placeholders of a definition must be plain names, such as <orderId> …',
      make: () => defineLock('order:<order.id>'),
    },
    {
      mistake: "@Leader('mailbox', { wait: '5s' })",
      shows: '… has no option "wait". A candidate waits until it is elected …',
      make: () =>
        Leader('mailbox', { wait: '5s' } as never)({ constructor: LockService }, 'lead', {
          value: () => undefined,
        }),
    },
    {
      mistake: '@WithLock',
      shows: '… needs parentheses, and a key in them …',
      make: () => decorate(WithLock),
    },
    {
      mistake: '@WithLock()',
      shows: '… has no key. Name what to lock …',
      make: () => decorate(withLock()),
    },
    {
      mistake: "@WithLock({ key: 'order' })",
      shows: '… needs its key as the first argument …',
      make: () => decorate(withLock({ key: 'order' })),
    },
    {
      mistake: "@WithLock('a', 5000)",
      shows: '… takes its options as an object, received 5000. …',
      make: () => decorate(withLock('a', 5_000)),
    },
    {
      mistake: "@WithLock('a', { wiat: '5s' })",
      shows: '… has no option "wiat". Did you mean "wait"? …',
      make: () => decorate(withLock('a', { wiat: '5s' })),
    },
    {
      mistake: '@WithLock on a static method',
      shows: '@WithLock can only be applied to instance methods …',
      make: () => decorate(withLock('a'), true),
    },
    {
      mistake: "@WithLock('order:<orderid>') pay(orderId)",
      shows: '… pay() has no parameter "orderid": did you mean <orderId>? …',
      make: () => decorate(withLock('order:<orderid>')),
    },
    {
      mistake: "@WithLock('order::orderId') pay(orderId)",
      shows: '… has ":orderId", which is plain text, so all calls share one lock. Write <orderId>.',
      make: () => decorate(withLock('order::orderId')),
    },
    {
      mistake: "@WithLock('order:{orderId}')",
      shows: '… contains a brace … Placeholders look like <orderId>.',
      make: () => decorate(withLock('order:{orderId}')),
    },
    {
      mistake: "@WithLock('<orderId><orderId>')",
      shows: '… is ambiguous: two values stand side by side … Put ":" between them.',
      make: () => decorate(withLock('<orderId><orderId>')),
    },
    {
      mistake: "@Post(':id') @WithLock('order:<request.params.idd>')",
      shows: '… its route has no parameter "idd": did you mean <request.params.id>? …',
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
      shows: '… which is raw. … Write <id>, which is read after the pipes.',
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
      shows: '… no request reaches this method. Take the value from a parameter …',
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
      shows: '… This spelling is deprecated. Write "order:<request.params.id>".',
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
      shows: '… <user.id> is undefined, because <user> is undefined. …',
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
      shows: '… this object has no LockService, so the method did not run. …',
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
    {
      mistake: "locks.acquire('order:42', 5000)",
      shows: 'acquire() takes its options as an object, received 5000. …',
      make: () => call('acquire', 'order:42', 5_000),
    },
    {
      mistake: "locks.acquire('order:42', { timeout: 5000 })",
      shows: 'acquire() has no option "timeout". Give "wait" …',
      make: () => call('acquire', 'order:42', { timeout: 5_000 }),
    },
    {
      mistake: 'locks.acquire(undefined)',
      shows: 'A lock key must be a non-empty string …',
      make: () => call('acquire', undefined),
    },
    {
      mistake: "locks.acquire('order:{42}')",
      shows: 'The lock key "order:{42}" contains a brace. …',
      make: () => call('acquire', 'order:{42}'),
    },
    {
      mistake: "locks.run('order:42')",
      shows: 'run() needs the work as its last argument, a function …',
      make: () => call('run', 'order:42'),
    },
    {
      mistake: "locks.run('order:42', work, { ttl: '5s' })",
      shows: 'run() takes the options before the work …',
      make: () => call('run', 'order:42', () => 1, { ttl: '5s' }),
    },
  ],
  Connection: [
    {
      mistake: 'nobody listens at the address',
      shows: '… connect ECONNREFUSED 127.0.0.1:6379 …',
      make: () => service({ redis: `redis://127.0.0.1:${nobodysPort}` }).tryAcquire('order:42'),
    },
    {
      mistake: 'rediss:// and a port without TLS',
      shows: '… the port accepts connections, but not TLS … write redis:// instead of rediss:// …',
      make: () =>
        service({
          redis: redis.url.replace('redis:', 'rediss:'),
          nodeTimeout: 300,
        }).tryAcquire('order:42'),
    },
    {
      mistake: 'a TLS certificate of an authority that Node does not know',
      shows:
        '… the TLS certificate is not trusted: name the file of its authority in NODE_EXTRA_CA_CERTS …',
      make: () =>
        service({
          redis: `rediss://127.0.0.1:${(untrusted.address() as AddressInfo).port}`,
        }).tryAcquire('order:42'),
    },
    {
      mistake: 'a password is missing',
      shows: '… NOAUTH …',
      make: () => service({ redis: guarded.url }).tryAcquire('order:42'),
    },
    {
      mistake: 'a database that the server does not have',
      shows: '… cannot use database 99: ERR DB index is out of range. …',
      make: () => service({ redis: `${redis.url}/99` }).tryAcquire('order:42'),
    },
  ],
  'At run time': [
    {
      mistake: 'a lock of acquire() is asked for again before it is released',
      shows:
        '… held for 12 ms in this same process … If acquire() took it and it was forgotten, release it in a finally block.',
      make: async () => {
        const locks = service();
        await locks.acquire('order:42');
        await locks.acquire('order:42');
      },
    },
    {
      mistake: "acquire('order:42') inside run('order:42')",
      shows: '… use run(), which shares the lock of the outer call …',
      make: () => {
        const locks = service();
        return locks.run('order:42', () => locks.acquire('order:42'));
      },
    },
    {
      mistake: 'another process holds the lock',
      shows: '… held by another owner for up to 30000 ms more. …',
      make: async () => {
        const store = new MemoryLockStore();
        await service({ store: storeOption(store) }).acquire('order:42');
        await service({ store: storeOption(store) }).acquire('order:42', { wait: 0 });
      },
    },
    {
      mistake: "run(['a', 'b']) inside run('a')",
      shows: '… inside a section that holds only "a". … acquire all of them in the outer call.',
      make: () => {
        const locks = service();
        return locks.run('a', () => locks.run(['a', 'b'], () => 1));
      },
    },
    {
      mistake: "runOnce('a') inside run('a')",
      shows: '… inside a section that holds it: waiting would never end.',
      make: () => {
        const locks = service();
        return locks.run('a', () => locks.runOnce('a', () => 1));
      },
    },
    {
      mistake: "locks.assertHeld('order:42') where nothing holds it",
      shows: '… was expected to be held … Is an await missing in its work?',
      make: () => {
        service().assertHeld('order:42');
      },
    },
    {
      mistake: "run('order:42') inside run('order:42', { mode: 'shared' })",
      shows:
        "… requested as 'exclusive' inside a section that holds it as 'shared' … Request the mode that you need in the outer call.",
      make: () => {
        const locks = service();
        return locks.run('order:42', { mode: 'shared' }, () => locks.run('order:42', () => 1));
      },
    },
    {
      mistake: 'the text of a detached lock is attached twice',
      shows: '… another process attached it already, and holds it …',
      make: async () => {
        const locks = service();
        const text = await (await locks.acquire('order:42')).detach();
        await locks.attach(text);
        await locks.attach(text);
      },
    },
    {
      mistake: 'the text of a detached lock is cut off',
      shows: '… not the text of a detached lock …',
      make: async () => {
        const locks = service();
        const text = await (await locks.acquire('order:42')).detach();
        await locks.attach(text.slice(0, 100));
      },
    },
    {
      mistake: 'a lock is detached with one keyPrefix, and attached with another',
      shows: '… was detached where locks are kept in another place …',
      make: async () => {
        const lock = await service({ redis: redis.url, keyPrefix: 'a:' }).acquire('order:42');
        await service({ redis: redis.url, keyPrefix: 'b:' }).attach(await lock.detach());
      },
    },
    {
      mistake: "lock.detach() inside run('order:42') (JavaScript)",
      shows: '… cannot be detached … Take it with acquire() …',
      make: () => service().run('order:42', (lock) => (lock as unknown as DetachableLock).detach()),
    },
    {
      mistake: "locks.on('aquired', …)",
      shows: 'There is no event "aquired". …',
      make: () => service().on('aquired' as 'acquired', () => undefined),
    },
  ],
  'Shutdown and tests': [
    {
      mistake: 'a lock of acquire() that is never released (a warning)',
      shows: 'The shutdown ends 1 lock not released yet …',
      make: () =>
        warningsDuring(async () => {
          const locks = service();
          await locks.acquire('order:42');
          await locks.shutdown(0);
        }),
    },
    {
      mistake: 'a call after the shutdown',
      shows: '… shutting down and grants no more locks.',
      make: async () => {
        const locks = service();
        await locks.shutdown(0);
        await locks.acquire('order:42');
      },
    },
    {
      mistake: "testLocks.lose('order:42') before the code under test has locked it",
      shows: '… not held by the code under test …',
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
    .replaceAll(/NOAUTH .*?(?=\)\. No work)/g, 'NOAUTH …')
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

/** Whether a text has the parts between `…` in their order, and begins and ends as they do. */
function isPartOf(text: string, shown: string): boolean {
  const parts = shown
    .split('…')
    .map((part) => part.trim().replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`).test(text);
}

async function expectIn(path: string, content: string, parser: string): Promise<void> {
  const options = { ...(await prettier.resolveConfig(path)), parser };
  const text = await prettier.format(content, options);
  if (process.env.UPDATE_DOCS === '1') await writeFile(path, text);
  expect(await readFile(path, 'utf8')).toBe(text);
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
    const texts: Record<string, string> = {};
    for (const [topic, mistakes] of Object.entries(MISTAKES)) {
      page.push('', `### ${topic}`, '', '| mistake | what it says |', '| --- | --- |');
      for (const each of mistakes) {
        texts[each.mistake] = await printed(each);
        page.push(`| ${code(each.mistake)} | ${code(each.shows)} |`);
      }
    }
    page.push('', 'Next: [Runbook](operations.md), [Guarantees](guarantees.md).');
    const all = Object.values(MISTAKES).flat();
    expect(all.filter(({ mistake, shows }) => !isPartOf(texts[mistake] ?? '', shows))).toEqual([]);
    await expectIn(PRINTED, JSON.stringify(texts), 'json');
    await expectIn(PAGE, `${page.join('\n')}\n`, 'markdown');
  });

  it('has no part that a message does not have', () => {
    const text = 'Option "wait" is wrong. Give "5s".';
    expect(isPartOf(text, '… is wrong. …')).toBe(true);
    expect(isPartOf(text, 'Option … Give "5s".')).toBe(true);
    expect(isPartOf(text, 'is wrong. …')).toBe(false);
    expect(isPartOf(text, '… is wrong.')).toBe(false);
    expect(isPartOf(text, '… Give … wrong …')).toBe(false);
  });
});
