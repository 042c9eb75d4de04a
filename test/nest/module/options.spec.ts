import { afterEach, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import {
  LockConfigurationError,
  LockModule,
  LockNotAcquiredError,
  LockService,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { MemoryLockStore } from '../../../lib/store/memory/memory-lock-store.js';
import { LockLifecycle } from '../../../lib/nest/lock-lifecycle.js';
import { closeApps, startApp } from './start-app.js';
import { storeOption } from '../../../lib/options/location.js';

afterEach(closeApps);

/** What the start of an application with these options fails with. */
async function failureOf(options: object): Promise<string> {
  const imports = [LockModule.forRootAsync({ useFactory: () => options })];
  const failure: unknown = await startApp({ imports }).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(LockConfigurationError);
  return (failure as Error).message;
}

async function serviceOf(options: LockModuleOptions): Promise<LockService> {
  return (await startApp({ imports: [LockModule.forRoot(options)] })).app.get(LockService);
}

const DURATION_REMEDY = 'Give milliseconds (30_000) or a string such as "500ms", "30s", "5m".';

describe('where the locks are kept', () => {
  it.each<[string, object, string]>([
    [
      'nothing',
      {},
      'LockModule was given neither "redis" nor "store", and there is no silent default. ' +
        "Give redis: 'redis://localhost:6379', or store: 'memory' for development and tests.",
    ],
    [
      'an environment variable that is not set',
      { redis: undefined },
      'Option "redis" is undefined: is the environment variable that contains it set? There is no silent default. ' +
        "Give redis: 'redis://localhost:6379', or store: 'memory' for development and tests.",
    ],
    [
      'both',
      { redis: 'redis://localhost', store: 'memory' },
      'LockModule was given both "redis" and "store". Give one of them.',
    ],
    [
      'an empty list',
      { redis: [] },
      "Option \"redis\" is an empty list. Give one Redis, or an odd number of independent masters: redis: ['redis://a', 'redis://b', 'redis://c'].",
    ],
    [
      'a list that names a server twice',
      { redis: ['redis://a', 'redis://b', 'redis://user:secret@a:6379/1'] },
      'Option "redis" lists one server twice: a:6379 and a:6379. The nodes of a quorum have to fail independently of each other.',
    ],
    [
      'a list in a list',
      { redis: [['redis://a', 'redis://b'], 'redis://c'] as never },
      'Option "redis[0]" must be a URL, ioredis options, or a client of ioredis, iovalkey, node-redis or valkey-glide, received a value of type object.',
    ],
    [
      'several URLs in one text',
      { redis: 'redis://a,redis://b,redis://c' },
      `Option "redis" holds several URLs in one text. Give a list of them: text.split(/\\s*,\\s*(?=[a-z+]+:\\/\\/)/).`,
    ],
    [
      'a list with something that is no Redis in it',
      { redis: ['redis://a', 7, 'redis://c'] as never },
      'Option "redis[1]" must be a URL, ioredis options, or a client of ioredis, iovalkey, node-redis or valkey-glide, received 7.',
    ],
    [
      'an address without a scheme',
      { redis: 'localhost:6379' },
      `Option "redis" must be a URL such as 'redis://localhost:6379', received "localhost:6379".`,
    ],
    [
      'an empty text',
      { redis: '' },
      `Option "redis" must be a URL such as 'redis://localhost:6379', received "".`,
    ],
    [
      'a number',
      { redis: 6379 },
      'Option "redis" must be a URL, ioredis options, or a client of ioredis, iovalkey, node-redis or valkey-glide, received 6379.',
    ],
    [
      'null',
      { redis: null },
      'Option "redis" must be a URL, ioredis options, or a client of ioredis, iovalkey, node-redis or valkey-glide, received null.',
    ],
    [
      'options with a URL in them, which ioredis does not read',
      { redis: { url: 'redis://:secret@elsewhere' } },
      `Option "redis" has a property "url", which ioredis does not know. Give the URL itself: redis: '…'.`,
    ],
    [
      'a client of a library that is not known',
      { redis: { duplicate: () => undefined, connect: () => undefined } },
      'Option "redis" is a client of a library that Holdfast does not know. Give its URL, or a client of ioredis, iovalkey, node-redis 5 or 6, or valkey-glide.',
    ],
    [
      'a store that does not exist',
      { store: 'postgres' },
      `Option "store" must be 'memory' or a LockDriver, an object with the methods acquire, extend, release, received "postgres".`,
    ],
    [
      'an object that is half a driver',
      { store: { ...methods('acquire'), password: 'secret' } },
      `Option "store" must be 'memory' or a LockDriver, an object with the methods acquire, extend, release ` +
        '(it has no extend, release), received a value of type object.',
    ],
  ])('is refused: %s', async (_what, options, message) => {
    expect(await failureOf(options)).toBe(message);
  });

  function methods(...names: readonly string[]): object {
    return Object.fromEntries(names.map((name) => [name, () => undefined]));
  }

  it.each([
    ['redis', 'http://user:secret@elsewhere:6379'],
    ['redis', 'user:secret@elsewhere:6379'],
    ['redis', 'redis:/user:secret@elsewhere:6379'],
    ['redis', 'http://user:sec/secret@ret@elsewhere'],
    ['redis', 'http://elsewhere/?password=secret&db=1'],
    ['store', 'redis://user:secret@elsewhere:6379'],
    ['ttl', 'redis://user:secret@elsewhere:6379'],
    ['keyPrefix', 'redis://user:secret@elsewhere:6379{'],
    ['autoExtend', 'redis://user:secret@elsewhere:6379'],
  ])('%s: %s is shown without its password', async (option, value) => {
    const place = option === 'redis' || option === 'store' ? {} : { store: 'memory' };
    const message = await failureOf({ ...place, [option]: value });
    expect(message).toContain(`Option "${option}"`);
    expect(message).toContain('elsewhere');
    expect(message).not.toContain('secret');
  });

  it('is the store object that was given', async () => {
    const store = new MemoryLockStore();
    const locks = await serviceOf({ store: storeOption(store) });
    const lock = await locks.acquire('key');
    expect(await store.admin.look(['key'])).toMatchObject([{ holders: [{}] }]);
    await lock.release();
  });
});

describe('durations', () => {
  const OPTIONS = ['ttl', 'wait', 'nodeTimeout', 'fencingTokenRetention', 'shutdownTimeout'];
  const WRONG: [unknown, string][] = [
    ['soon', '"soon"'],
    ['1 fortnight', '"1 fortnight"'],
    ['', '""'],
    ['5'.repeat(101), `"${'5'.repeat(101)}"`],
    ['-1s', '"-1s"'],
    [-1, '-1'],
    [NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [null, 'null'],
    [true, 'true'],
    [5n, '5'],
    [Symbol('5s'), 'Symbol(5s)'],
    [['secret'], 'a value of type object'],
    [{ toString: () => 'secret' }, 'a value of type object'],
    [Object.create(null), 'a value of type object'],
  ];

  // Of null and undefined, the second is what an option is when it is left out. A wait may have no end.
  const cases = OPTIONS.flatMap((option) =>
    WRONG.filter(([value]) => value !== null && !(option === 'wait' && value === Infinity)).map(
      ([value, shown]) => [option, shown, value] as const,
    ),
  );

  it.each(cases)('%s: %s is refused', async (option, shown, value) => {
    const message = await failureOf({ store: 'memory', [option]: value });
    expect(message).toMatch(
      new RegExp(`^Option "${option}" must be (0 or )?a duration of at least \\d+ ms, `),
    );
    expect(message).toContain(`received ${shown}. ${DURATION_REMEDY}`);
  });

  it.each([
    ['ttl', '49ms', 50],
    ['ttl', 0, 50],
    ['nodeTimeout', 0, 1],
  ])('%s: %s is less than its least, %i ms', async (option, value, least) => {
    expect(await failureOf({ store: 'memory', [option]: value })).toBe(
      `Option "${option}" must be a duration of at least ${String(least)} ms, received ${JSON.stringify(value)}. ${DURATION_REMEDY}`,
    );
  });

  it.each([
    [45_000, 45_000],
    ['45s', 45_000],
    ['1.5 hours', 5_400_000],
    ['45d', 45 * 86_400_000],
    ['50', 50],
  ] as const)('ttl: %s is the lease of every lock', async (ttl, ms) => {
    const locks = await serviceOf({ store: 'memory', ttl: ttl as '45d' });
    const lock = await locks.acquire('key');
    const inspection = await locks.inspect('key');
    expect(inspection).toMatchObject({ held: true });
    const { remainingMs } = inspection as { remainingMs: number };
    expect(remainingMs).toBeLessThanOrEqual(ms);
    expect(remainingMs).toBeGreaterThan(Math.min(ms - 5_000, ms / 10) - 50);
    await lock.release();
  });

  it('longer than a timer of Node can be (24.8 days) end nothing at once', async () => {
    const options = {
      ttl: '45d',
      wait: '45d',
      nodeTimeout: '45d',
      shutdownTimeout: '45d',
    } as const;
    const { app } = await startApp({
      imports: [LockModule.forRoot({ store: 'memory', ...options })],
    });
    const locks = app.get(LockService);
    const lock = await locks.acquire('key', { maxHold: '45d' });
    const waiting = locks.acquire('key');
    const first = await Promise.race([
      waiting.then(() => 'granted'),
      new Promise((resolve) => setTimeout(resolve, 30, 'waits')),
    ]);
    expect(first).toBe('waits');
    app.get(LockLifecycle).onModuleDestroy();
    await expect(waiting).rejects.toThrow('shutting down');
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(lock.isHeld).toBe(true);
    const closing = closeApps();
    await lock.release();
    await closing;
  });

  it('wait: is how long acquire and run wait, and how long they say that they did', async () => {
    const locks = await serviceOf({ store: 'memory', wait: 50 });
    const lock = await locks.acquire('key');
    const error = await locks.run('key', () => undefined).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect((error as LockNotAcquiredError).waitedMs).toBeGreaterThanOrEqual(49);
    await lock.release();
  });
});

describe('restartGuard and replicas', () => {
  const redis = 'redis://127.0.0.1:1';
  const maxTtl = (received: string): string =>
    `Option "restartGuard.maxTtl" must be a duration of at least 50 ms, received ${received}. ${DURATION_REMEDY}`;
  const ofReplicas = (received: string): string =>
    `Option "replicas" must be an object such as { ack: 1, timeout: '50ms' }, received ${received}.`;
  const ack = (received: string): string =>
    `Option "replicas.ack" must be a whole number from 1, received ${received}.`;
  const timeout = (received: string): string =>
    `Option "replicas.timeout" must be a duration of at least 1 ms, received ${received}. ${DURATION_REMEDY}`;

  it.each<[object, string]>([
    [
      { restartGuard: true },
      `Option "restartGuard" must be an object such as { maxTtl: '1m' }, received true.`,
    ],
    [
      { restartGuard: '1m' },
      `Option "restartGuard" must be an object such as { maxTtl: '1m' }, received "1m".`,
    ],
    [
      { restartGuard: null },
      `Option "restartGuard" must be an object such as { maxTtl: '1m' }, received null.`,
    ],
    [{ restartGuard: {} }, maxTtl('undefined')],
    [{ restartGuard: { maxTtl: '49ms' } }, maxTtl('"49ms"')],
    [{ restartGuard: { maxTtl: 'long' } }, maxTtl('"long"')],
    [{ restartGuard: { maxTtl: Infinity } }, maxTtl('Infinity')],
    [
      { restartGuard: { maxTtl: '1m', bootstrap: 'yes' } },
      'Option "restartGuard.bootstrap" must be true or false, received "yes".',
    ],
    [
      { restartGuard: { maxTTL: '1m' } },
      'Option "restartGuard" has no option "maxTTL". Did you mean "maxTtl"? Its options are maxTtl, bootstrap.',
    ],
    [{ replicas: true }, ofReplicas('true')],
    [{ replicas: 1 }, ofReplicas('1')],
    [{ replicas: null }, ofReplicas('null')],
    [{ replicas: {} }, ack('undefined')],
    [{ replicas: { ack: 0 } }, ack('0')],
    [{ replicas: { ack: -1 } }, ack('-1')],
    [{ replicas: { ack: 1.5 } }, ack('1.5')],
    [{ replicas: { ack: '1' } }, ack('"1"')],
    [{ replicas: { ack: NaN } }, ack('NaN')],
    [{ replicas: { ack: 1, timeout: 0 } }, timeout('0')],
    [{ replicas: { ack: 1, timeout: 'soon' } }, timeout('"soon"')],
    [
      { replicas: { ack: 1, timeout: '1s' } },
      'Option "replicas.timeout" (1000 ms) must be shorter than "nodeTimeout" (1000 ms), in which it is contained.',
    ],
    [
      { replicas: { ack: 1 }, nodeTimeout: 50 },
      'Option "replicas.timeout" (50 ms) must be shorter than "nodeTimeout" (50 ms), in which it is contained.',
    ],
    [
      { replicas: { ack: 1, timeOut: 10 } },
      'Option "replicas" has no option "timeOut". Did you mean "timeout"? Its options are ack, timeout.',
    ],
    [
      { redis: ['redis://a', 'redis://b', 'redis://c'], replicas: { ack: 1 } },
      'Option "replicas" is for one Redis. The masters of a quorum are independent of each other and need no replicas: ' +
        'a majority of them keeps the locks.',
    ],
  ])('%j is refused', async (options, message) => {
    expect(await failureOf({ redis, ...options })).toBe(message);
  });

  it.each([
    ['restartGuard', { maxTtl: '1m' }],
    ['replicas', { ack: 1 }],
  ])('%s is refused where the locks are not in Redis', async (option, value) => {
    for (const store of ['memory', new MemoryLockStore()]) {
      expect(await failureOf({ store, [option]: value })).toBe(
        `Option "${option}" is for locks in Redis: give "redis".`,
      );
    }
  });

  it('a Redis Cluster is refused among several masters, and as the only Redis with restartGuard', async () => {
    const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
    expect(await failureOf({ redis: ['redis://a', cluster, 'redis://c'] })).toBe(
      'Option "redis" lists a Redis Cluster among several masters. Each master of a quorum is one server: give the Cluster alone, or ' +
        'independent servers.',
    );
    expect(await failureOf({ redis: cluster, restartGuard: { maxTtl: '1m' } })).toBe(
      'Option "restartGuard" does not work on a Redis Cluster: a key that tells a restart would be needed in every slot. Leave it out, ' +
        'and give "replicas" there.',
    );
    cluster.disconnect();
  });

  it('restartGuard is refused with a default TTL that is longer than its own', async () => {
    for (const [ttl, guard, ms] of [
      [undefined, '29s', 30_000],
      ['10s', 9_999, 10_000],
    ] as const) {
      expect(await failureOf({ redis, ttl, restartGuard: { maxTtl: guard } })).toMatch(
        new RegExp(
          `^A TTL of ${String(ms)} ms is longer than "restartGuard.maxTtl", \\d+ ms: .*Give a shorter "ttl" .*, or a longer "maxTtl"\\.$`,
        ),
      );
    }
  });
});

describe('other options', () => {
  it.each<[object, string]>([
    [{ autoExtend: 'no' }, 'Option "autoExtend" must be true or false, received "no".'],
    [{ autoExtend: 0 }, 'Option "autoExtend" must be true or false, received 0.'],
    [
      { clockDrift: -0.1 },
      'Option "clockDrift" must be a fraction from 0 to 0.5, such as 0.01, received -0.1.',
    ],
    [
      { clockDrift: 1 },
      'Option "clockDrift" must be a fraction from 0 to 0.5, such as 0.01, received 1.',
    ],
    [
      { clockDrift: NaN },
      'Option "clockDrift" must be a fraction from 0 to 0.5, such as 0.01, received NaN.',
    ],
    [
      { clockDrift: '1%' },
      'Option "clockDrift" must be a fraction from 0 to 0.5, such as 0.01, received "1%".',
    ],
    [
      { keyPrefix: 'a\nb' },
      'Option "keyPrefix" must be a text without control characters, with at most one Cluster hash tag ' +
        `such as '{app}:', received "a\\nb".`,
    ],
    [
      { keyPrefix: '{a}{b}' },
      'Option "keyPrefix" must be a text without control characters, with at most one Cluster hash tag ' +
        `such as '{app}:', received "{a}{b}".`,
    ],
    [
      { keyPrefix: 7 },
      'Option "keyPrefix" must be a text without control characters, with at most one Cluster hash tag ' +
        `such as '{app}:', received 7.`,
    ],
    [
      { handoff: true },
      `Option "handoff" must be false, or an object such as { turns: 16, tenure: '20ms' }, received true.`,
    ],
    [
      { handoff: { turn: 3 } },
      'Option "handoff" has no option "turn". Did you mean "turns"? Its options are turns, tenure.',
    ],
    [
      { handoff: { turns: 0 } },
      'Option "handoff.turns" must be a whole number from 1 to 1024, received 0.',
    ],
    [
      { handoff: { turns: 1.5 } },
      'Option "handoff.turns" must be a whole number from 1 to 1024, received 1.5.',
    ],
    [
      { handoff: { turns: 1_025 } },
      'Option "handoff.turns" must be a whole number from 1 to 1024, received 1025.',
    ],
    [
      { handoff: { tenure: 'soon' } },
      `Option "handoff.tenure" must be a duration of at least 0 ms, received "soon". ${DURATION_REMEDY}`,
    ],
    [
      { errors: 'yes' },
      'Option "errors" must be an object { exposeKeys?, body?, retryAfter? }, received "yes".',
    ],
    [
      { errors: { exposeKeys: 1 } },
      'Option "errors.exposeKeys" must be true or false, received 1.',
    ],
    [
      { errors: { body: { message: 'secret' } } },
      'Option "errors.body" must be a function (error, body) => body, received a value of type object.',
    ],
    [
      { errors: { retryAfter: 'ttl' } },
      `Option "errors.retryAfter" must be 'estimate' or 'lease', received "ttl".`,
    ],
    [
      { errors: { exposeKey: true } },
      'Option "errors" has no option "exposeKey". Did you mean "exposeKeys"? Its options are exposeKeys, body, retryAfter.',
    ],
  ])('%j is refused', async (options, message) => {
    expect(await failureOf({ store: 'memory', ...options })).toBe(message);
  });

  it.each([
    ['waitTime', ''],
    ['keyprefix', ' Did you mean "keyPrefix"?'],
    ['tll', ' Did you mean "ttl"?'],
    ['autoextend', ' Did you mean "autoExtend"?'],
    ['toString', ''],
    ['driftFactor', ' Give "clockDrift".'],
    ['host', " It goes into the options of Redis: redis: { host: 'localhost', … }."],
    ['url', " Give the URL itself: redis: 'redis://localhost:6379'."],
  ])('an option "%s" is refused: there is none', async (name, hint) => {
    expect(await failureOf({ store: 'memory', [name]: 1 })).toBe(
      `LockModule has no option "${name}".${hint} Its options are redis, credentials, store, keyPrefix, ttl, wait, autoExtend, clockDrift, ` +
        'nodeTimeout, fencingTokenRetention, restartGuard, replicas, handoff, shutdownTimeout, forgottenLocks, instance, errors.',
    );
  });

  it.each<[object, string]>([
    [{ name: '' }, 'Option "name" must be a symbol, or a text that is not empty, received "".'],
    [{ name: 7 }, 'Option "name" must be a symbol, or a text that is not empty, received 7.'],
    [{ isGlobal: 'no' }, 'Option "isGlobal" must be true or false, received "no".'],
  ])('%j is refused when the module is defined', (extras, message) => {
    expect(() => LockModule.forRoot({ store: 'memory', ...extras })).toThrow(
      new LockConfigurationError(message),
    );
  });

  it('all that are left out have a default', async () => {
    const locks = await serviceOf({ store: 'memory' });
    const lock = await locks.acquire('key');
    expect(lock.remainingMs).toBeGreaterThan(25_000);
    expect(lock.remainingMs).toBeLessThanOrEqual(30_000 * 0.99);
    await lock.release();
  });

  it('clockDrift: is the part of a TTL that is not relied on', async () => {
    const locks = await serviceOf({ store: 'memory', clockDrift: 0.5, ttl: 10_000 });
    const lock = await locks.acquire('key');
    expect(lock.remainingMs).toBeGreaterThan(4_000);
    expect(lock.remainingMs).toBeLessThanOrEqual(5_000);
    await lock.release();
  });

  it('autoExtend: false lets every lease end by itself, unless the call says otherwise', async () => {
    const locks = await serviceOf({ store: 'memory', autoExtend: false, ttl: 600 });
    const renewed = await locks.acquire('renewed', { autoExtend: true });
    const lock = await locks.acquire('key');
    await new Promise<void>((resolve) => {
      lock.signal.addEventListener('abort', () => {
        resolve();
      });
    });
    expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
    expect(renewed.isHeld).toBe(true);
    await renewed.release();
  });
});

describe('errors', () => {
  async function refusalUnder(errors: LockModuleOptions['errors']): Promise<LockNotAcquiredError> {
    const locks = await serviceOf({ store: 'memory', wait: 0, errors: errors ?? {} });
    const lock = await locks.acquire('order:42');
    const error: unknown = await locks.acquire('order:42').catch((reason: unknown) => reason);
    await lock.release();
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    return error as LockNotAcquiredError;
  }

  it('exposeKeys adds the keys to the body of responses, which has none by default', async () => {
    expect((await refusalUnder({})).getResponse()).not.toHaveProperty('keys');
    expect((await refusalUnder({ exposeKeys: true })).getResponse()).toMatchObject({
      code: 'LOCK_NOT_ACQUIRED',
      keys: ['order:42'],
    });
  });

  it('body changes body and status, and gets the error', async () => {
    const error = await refusalUnder({
      exposeKeys: true,
      body: ({ keys }, body) => ({ ...body, statusCode: 423, message: `locked: ${keys.join()}` }),
    });
    expect(error.getStatus()).toBe(423);
    expect(error.message).toBe('The lock is held by another caller.');
    expect(error.getResponse()).toEqual({
      statusCode: 423,
      message: 'locked: order:42',
      error: 'Conflict',
      code: 'LOCK_NOT_ACQUIRED',
      keys: ['order:42'],
    });
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('a fault');
      },
    ],
    ['returns nothing', () => undefined as never],
    ['returns no status', () => ({}) as never],
  ])(
    'a body function that %s does not hide the error: the usual body is sent',
    async (_what, body) => {
      const error = await refusalUnder({ body });
      expect(error.getStatus()).toBe(409);
      expect(error.getResponse()).toMatchObject({ statusCode: 409, code: 'LOCK_NOT_ACQUIRED' });
    },
  );
});
