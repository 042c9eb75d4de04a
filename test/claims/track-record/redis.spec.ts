import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster, Redis } from 'ioredis';
import {
  LockNotAcquiredError,
  LockService,
  LockStoreUnavailableError,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import type { RedisLocation } from '../../../lib/store/redis/client/redis-location.js';
import { inspect } from 'node:util';
import { take } from '../../../lib/store/redis/scripts/plain.js';
import { eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

let server: RedisServer;
let services: LockService[] = [];
let clients: (Redis | Cluster)[] = [];
let logged: string[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
});

beforeEach(async () => {
  logged = [];
  const log = (...parts: unknown[]): void => {
    logged.push(inspect(parts, { depth: 10 }));
  };
  Logger.overrideLogger({ log, error: log, warn: log });
  for (const method of ['log', 'warn', 'error'] as const)
    jest.spyOn(console, method).mockImplementation(log);
  await server.command('FLUSHALL');
});

afterEach(async () => {
  await Promise.all(services.map((service) => service.shutdown(0)));
  for (const client of clients) client.disconnect();
  [services, clients] = [[], []];
  jest.restoreAllMocks();
  Logger.overrideLogger(false);
});

afterAll(async () => {
  await server.stop();
});

async function open(options: LockModuleOptions): Promise<LockService> {
  const service = new LockService(options);
  services.push(service);
  await service.open();
  return service;
}

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => {
      throw new Error(`It did not fail, but gave ${inspect(value)}.`);
    },
    (error: unknown) => error,
  );

describe('track record: Redis', () => {
  it('TR-05 an acquire that the server runs after its time limit leaves no orphan', async () => {
    const proxy = await TcpProxy.start(server.port);
    try {
      const locks = await open({
        redis: `redis://127.0.0.1:${String(proxy.port)}`,
        nodeTimeout: 150,
      });
      await locks.run('late', () => undefined);
      const commands = await server.commandsSentDuring(async () => {
        proxy.pause('to-server');
        const failure = await failureOf(locks.tryAcquire('late', { ttl: '60s' }));
        expect(failure).toBeInstanceOf(LockStoreUnavailableError);
        proxy.resume();
        // Answered after everything that was sent before it: the acquire has run by now.
        await eventually(async () => {
          expect(await locks.inspect('late')).toEqual({ held: false });
        });
      });
      expect(commands.filter(([, sha]) => sha === take.sha)).toHaveLength(1);
      expect(await server.command('EXISTS', 'lock:late')).toBe(0);
      expect(await locks.tryRun('late', () => 'free')).toMatchObject({ acquired: true });
    } finally {
      await Promise.all(services.map((service) => service.shutdown(0)));
      await proxy.stop();
    }
  });

  it('TR-51 "somebody holds it" and "Redis is down" are different errors with different status', async () => {
    const mortal = await RedisServer.start();
    try {
      const [holder, other] = [
        await open({ redis: mortal.url }),
        await open({ redis: mortal.url }),
      ];
      await holder.acquire('key');
      const held = await failureOf(other.acquire('key', { wait: 0 }));
      expect(held).toBeInstanceOf(LockNotAcquiredError);
      expect((held as LockNotAcquiredError).getStatus()).toBe(409);
      expect(await other.tryAcquire('key')).toBeNull();

      await mortal.kill();
      for (const attempt of [
        () => other.acquire('key', { wait: 0 }),
        () => other.acquire('key', { wait: 300 }),
        () => other.tryAcquire('key'),
        () => other.tryRun('key', () => undefined),
        () => other.inspect('key'),
        () => other.forceRelease('key'),
      ]) {
        const down = await failureOf(attempt());
        expect(down).toBeInstanceOf(LockStoreUnavailableError);
        expect((down as LockStoreUnavailableError).getStatus()).toBe(503);
        const [node] = (down as LockStoreUnavailableError).nodes;
        expect(node).toMatchObject({
          node: `127.0.0.1:${String(mortal.port)}`,
          kind: 'connection',
        });
      }
    } finally {
      await mortal.stop();
    }
  });

  it('TR-51 a server that hangs is reported within nodeTimeout, and is used again when it answers', async () => {
    const frozen = await RedisServer.start();
    try {
      const locks = await open({ redis: frozen.url, nodeTimeout: 200 });
      await locks.run('key', () => undefined);
      frozen.freeze();
      const startedAt = performance.now();
      const failure = await failureOf(locks.tryAcquire('key', { ttl: '60s' }));
      expect(performance.now() - startedAt).toBeLessThan(2_000);
      expect(failure).toBeInstanceOf(LockStoreUnavailableError);
      expect((failure as LockStoreUnavailableError).nodes[0]?.kind).toBe('timeout');
      frozen.thaw();
      expect(await locks.run('key', { wait: '20s' }, () => 'ran')).toBe('ran');
    } finally {
      await frozen.stop();
    }
  });

  it("TR-53 locks are in the client's database, however it was given, and waiting works there", async () => {
    const client = new Redis(server.url, { db: 5, lazyConnect: true });
    const inFive = new Redis(`${server.url}/5`);
    clients.push(client, inFive);
    for (const redis of [client, `${server.url}/5`, { port: server.port, db: 5 }]) {
      const [holder, waiter] = [await open({ redis }), await open({ redis })];
      const lock = await holder.acquire('key', { ttl: '60s', autoExtend: false });
      expect(await inFive.exists('lock:key')).toBe(1);
      expect(await server.command('DBSIZE')).toBe(0);
      const waiting = waiter.acquire('key', { wait: '25s' });
      await eventually(async () => (await inFive.exists('{lock:key}:queue')) === 1);
      await lock.release();
      await (await waiting).release();
      for (const type of ['normal', 'pubsub']) await server.command('CLIENT', 'KILL', 'TYPE', type);
      const again = await holder.acquire('key', { wait: '20s' });
      expect(await inFive.exists('lock:key')).toBe(1);
      expect(await server.command('DBSIZE')).toBe(0);
      await again.release();
    }
  });

  it('TR-54 SCRIPT FLUSH in the middle of everything is not noticed', async () => {
    const locks = await open({ redis: server.url });
    const lock = await locks.acquire(['a', 'b']);
    await server.command('SCRIPT', 'FLUSH');
    await lock.extend();
    await server.command('SCRIPT', 'FLUSH');
    expect(await locks.tryAcquire('a')).toBeNull();
    await server.command('SCRIPT', 'FLUSH');
    expect(await lock.release()).toBe(true);
    await server.command('SCRIPT', 'FLUSH');
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => locks.run(`key:${String(index)}`, () => index)),
    );
    expect(results).toHaveLength(20);
  });

  it('TR-54 TR-56 a restarted server has no scripts and no fences: both are restored, and tokens grow', async () => {
    const mortal = await RedisServer.start();
    try {
      const locks = await open({ redis: mortal.url });
      const tokens: number[] = [];
      for (let life = 0; life < 3; life += 1) {
        tokens.push(await locks.run('key', { wait: '20s' }, (lock) => lock.fencingToken));
        await mortal.restart();
      }
      expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other));
      expect(tokens).toHaveLength(3);
    } finally {
      await mortal.stop();
    }
  });

  it('TR-56 tokens grow after FLUSHALL and after the fence was deleted, also for several keys', async () => {
    const locks = await open({ redis: server.url });
    const tokenOf = (...keys: string[]): Promise<number> =>
      locks.run(keys, ({ fencingToken }) => fencingToken);
    const tokens = [await tokenOf('a', 'b')];
    await server.command('FLUSHALL');
    tokens.push(await tokenOf('a', 'b'));
    await server.command('DEL', '{lock:a}:fence');
    tokens.push(await tokenOf('a'), await tokenOf('a', 'b'), await tokenOf('b'));
    expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other));
  });

  it.each([{ limit: 2 }, { mode: 'shared' }] as const)(
    'HF-8 reserves one fencing token where no turns are taken, and none runs ahead of the clock: %j',
    async (options) => {
      const locks = await open({ redis: server.url });
      const fence = async (): Promise<number> =>
        Number(await server.command('GET', '{lock:key}:fence'));
      let last = 0;
      for (let phase = 0; phase < 5; phase += 1) {
        const lock = await locks.acquire('key', options);
        expect(await fence()).toBe(lock.fencingToken);
        await lock.release();
        expect(await fence()).toBe(lock.fencingToken + 1);
        last = lock.fencingToken;
      }
      const [seconds, us] = (await server.command('TIME')) as string[];
      expect(last).toBeLessThan(Number(seconds) * 1_000_000 + Number(us));
      await server.command('FLUSHALL');
      expect((await locks.acquire('key')).fencingToken).toBeGreaterThan(last);
    },
  );

  it('TR-57 re-entry keeps the fencing token, and writes none to the store', async () => {
    const locks = await open({ redis: server.url });
    await locks.run(['a', 'b'], async (outer) => {
      const stored = await server.command('GET', '{lock:a}:fence');
      // With the tokens that are reserved for the turns of other callers of this process.
      expect(Number(stored)).toBeGreaterThanOrEqual(outer.fencingToken);
      await locks.run('a', async (inner) => {
        expect(inner.fencingToken).toBe(outer.fencingToken);
        await locks.run(['b', 'a'], (innermost) => {
          expect(innermost.fencingToken).toBe(outer.fencingToken);
        });
      });
      expect(await server.command('GET', '{lock:a}:fence')).toBe(stored);
      expect(outer.isHeld).toBe(true);
    });
  });
});

describe('track record: Redis, TR-55 a password', () => {
  const SECRET = 'p4ss+w%rd';
  const IN_URL = encodeURIComponent(SECRET);
  let guarded: RedisServer;
  let downPort: number;

  beforeAll(async () => {
    guarded = await RedisServer.start({ config: { requirepass: 'another' } });
    const gone = await RedisServer.start();
    downPort = gone.port;
    await gone.stop();
  });

  afterAll(async () => {
    await guarded.stop();
  });

  const client = <T extends Redis | Cluster>(made: T): T => {
    clients.push(made);
    return made;
  };

  const locations: [string, (port: number) => RedisLocation][] = [
    ['a URL', (port) => `redis://:${IN_URL}@127.0.0.1:${String(port)}`],
    ['a URL with a user', (port) => `redis://app:${IN_URL}@127.0.0.1:${String(port)}`],
    ['options', (port) => ({ host: '127.0.0.1', port, password: SECRET })],
    ['a client', (port) => client(new Redis({ port, password: SECRET, lazyConnect: true }))],
    [
      'options for Sentinel',
      (port) => ({
        sentinels: [{ host: '127.0.0.1', port }],
        name: 'group',
        sentinelPassword: SECRET,
        password: SECRET,
      }),
    ],
    [
      'a Cluster',
      (port) =>
        client(
          new Cluster([{ host: '127.0.0.1', port }], {
            lazyConnect: true,
            redisOptions: { password: SECRET },
          }),
        ),
    ],
    [
      'a Cluster with a URL for each node',
      (port) =>
        client(
          new Cluster([`redis://:${IN_URL}@127.0.0.1:${String(port)}`], { lazyConnect: true }),
        ),
    ],
  ];

  it.each(locations)('TR-55 given by %s is in no error and in no log', async (_as, location) => {
    for (const port of [guarded.port, downPort, server.port]) {
      const locks = await open({ redis: location(port), nodeTimeout: 300 });
      const outcomes = await Promise.allSettled([
        locks.acquire('key', { wait: 200 }),
        locks.tryAcquire('other'),
        locks.inspect('key'),
        locks.forceRelease('key'),
      ]);
      for (const outcome of outcomes) {
        if (outcome.status === 'fulfilled') continue;
        const error = outcome.reason as LockStoreUnavailableError;
        expect(error).toBeInstanceOf(LockStoreUnavailableError);
        for (const text of [
          error.message,
          error.detail,
          String(error.stack),
          JSON.stringify(error),
        ])
          expectNoSecret(text);
        expectNoSecret(inspect(error, { depth: 10, showHidden: true }));
        expectNoSecret(inspect(error.cause, { depth: 10 }));
      }
      if (port !== server.port)
        expect(outcomes.map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
      expectNoSecret(inspect(locks, { depth: 10, showHidden: true }));
    }
    for (const line of logged) expectNoSecret(line);
  });

  it('TR-55 is in no configuration error either', () => {
    for (const redis of [
      `http://:${IN_URL}@127.0.0.1`,
      { url: `redis://:${IN_URL}@127.0.0.1` },
      [`redis://:${IN_URL}@127.0.0.1`, `redis://:${IN_URL}@127.0.0.1/5`],
    ]) {
      let thrown: unknown;
      try {
        new LockService({ redis: redis as never });
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(Error);
      expectNoSecret(inspect(thrown, { depth: 10, showHidden: true }));
    }
  });

  function expectNoSecret(text: string): void {
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain(IN_URL);
  }
});
