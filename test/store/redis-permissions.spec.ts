import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster } from 'ioredis';
import { LockService, type LockModuleOptions } from 'nestjs-holdfast';
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred, eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { LINE, openStore, request, type OpenStore, heldMs } from './open-store.js';
import { documentedRights } from './documented-rights.js';

let server: RedisServer;
let opened: OpenStore[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
});

afterEach(async () => {
  Logger.overrideLogger(false);
  await Promise.all(opened.map(({ store }) => store.close()));
  opened = [];
});

afterAll(async () => {
  await server.stop();
});

/** A user with these rights, as a URL. */
async function user(name: string, ...rights: string[]): Promise<string> {
  await server.command('ACL', 'SETUSER', name, 'on', '>secret', ...rights);
  return `redis://${name}:secret@127.0.0.1:${String(server.port)}`;
}

async function open(redis: string): Promise<OpenStore> {
  const store = await openStore({ redis });
  opened.push(store);
  return store;
}

describe('a Redis user', () => {
  it('needs no more than the keys of locks, the channels of inboxes, and what the scripts call', async () => {
    const url = await user(
      'modest',
      'resetchannels',
      '~lock:*',
      '~{lock:*',
      '&holdfast:*',
      '+@all',
      '-@dangerous',
      '+info',
    );
    const { store, warnings } = await open(url);
    const lease = request('b');
    expect(await store.acquire(lease)).toMatchObject({ status: 'granted' });
    expect(await store.extend([lease])).toEqual([{ status: 'extended' }]);
    expect(await heldMs(store, 'b')).toBeGreaterThan(0);

    const told = deferred<string | undefined>();
    const waiter = await open(url);
    expect(await waiter.store.listen(told.resolve)).toBe('listening');
    await waiter.store.acquire(request('b', { line: LINE }));
    expect(await store.release(lease)).toEqual({ status: 'released' });
    expect(await told.promise).toBe('b');
    expect([...warnings, ...waiter.warnings]).toEqual([]);
  });

  it('without the permission to subscribe, waiting callers try again by a timer, and this is logged once', async () => {
    const url = await user('deaf', '~*', '&*', '+@all', '-subscribe', '-psubscribe', '-ssubscribe');
    const { store, warnings } = await open(url);
    expect(await store.listen(() => undefined)).toBe('polling');
    expect(await store.listen(() => undefined)).toBe('polling');
    expect(warnings).toEqual([expect.stringMatching(/Cannot be notified of releases.*SUBSCRIBE/s)]);
    expect(warnings[0]).not.toContain('secret');

    const logged: string[] = [];
    const log = (message: unknown): void => void logged.push(String(message));
    Logger.overrideLogger({ log, error: log, warn: log });
    const [holder, waiter] = [new LockService({ redis: url }), new LockService({ redis: url })];
    for (let turn = 0; turn < 2; turn += 1) {
      const lock = await holder.acquire('polled', { ttl: '60s', autoExtend: false });
      const waiting = waiter.acquire('polled', { wait: '25s' });
      // Its first request, and the one in whole: both were answered before.
      for (const _ of [1, 2]) await waiter.inspect('polled');
      await lock.release();
      await (await waiting).release();
    }
    await Promise.all([holder.shutdown(), waiter.shutdown()]);
    expect(logged).toEqual([expect.stringContaining('Cannot be notified of releases')]);
  });

  it('who must not publish waits by looking again: a release could not tell anybody', async () => {
    const url = await user('mute', '~*', '&*', '+@all', '-publish');
    const { store, warnings } = await open(url);
    expect(await store.listen(() => undefined)).toBe('polling');
    expect(warnings).toEqual([
      expect.stringMatching(/Cannot be notified of releases.*NOPERM.*publish/is),
    ]);
  });

  it('who must not run scripts is told so at the start', async () => {
    const { store, warnings } = await open(
      await user('scriptless', '~*', '+@all', '-eval', '-evalsha'),
    );
    expect(warnings).toEqual([expect.stringMatching(/not usable: .*NOPERM.*EVALSHA/s)]);
    expect(await store.acquire(request('key'))).toMatchObject({ status: 'unavailable' });
  });
});

describe('a Redis user who may not do what a grant does', () => {
  const KEYS = 'Allow the Redis user the keys ~lock:* and ~{lock:* ("keyPrefix")';
  const COMMANDS =
    'Allow the Redis user the commands EVAL, EVALSHA and those that the scripts call';

  it.each([
    ['other keys only', ['~other:*', '+@all'], KEYS],
    ['the keys of locks, but not those beside them', ['~lock:*', '+@all'], KEYS],
    ['no scripts', ['~*', '+@all', '-eval', '-evalsha'], COMMANDS],
    ['EVAL, but not EVALSHA', ['~*', '+@all', '-evalsha'], COMMANDS],
    ['a command of the acquire script less', ['~*', '+@all', '-set'], COMMANDS],
    ['a command of the release script less', ['~*', '+@all', '-del'], COMMANDS],
  ])('is reported by the log and by health, with what to change: %s', async (_, rights, remedy) => {
    const url = await user('limited', 'resetkeys', '-@all', ...rights);
    const { store, warnings } = await open(url);
    const start = `Redis at 127.0.0.1:${String(server.port)} is not usable: `;
    expect(warnings).toEqual([expect.stringContaining(start)]);
    expect(warnings[0]).toContain(`Locks are refused (503) until that is fixed. ${remedy}`);
    const { hasQuorum, nodes } = await store.health();
    expect(hasQuorum).toBe(false);
    expect(nodes).toMatchObject([
      { reachable: true, problem: expect.stringMatching(/NOPERM|ACL failure|can't/) },
    ]);

    await server.command('ACL', 'SETUSER', 'limited', '~*', '+@all');
    expect(await store.health()).toMatchObject({ hasQuorum: true });
    await server.command('CLIENT', 'KILL', 'USER', 'limited');
    await eventually(() => warnings.length > 1);
    expect(warnings.slice(1)).toEqual([
      `Redis at 127.0.0.1:${String(server.port)} is usable again. Locks are granted again.`,
    ]);
  });

  it('is reported once, however often the connection is made again', async () => {
    const url = await user('limited', '~*', '+@all', '-evalsha');
    const { store, warnings } = await open(url);
    for (let time = 0; time < 3; time += 1) {
      await server.command('CLIENT', 'KILL', 'USER', 'limited');
      await eventually(async () => (await store.health()).nodes[0]?.reachable === true);
    }
    expect(warnings).toHaveLength(1);
  });

  it('with a wrong password, the message says to check the password, and names no commands', async () => {
    await user('limited');
    const { warnings } = await open(`redis://limited:wrong-one@127.0.0.1:${String(server.port)}`);
    expect(warnings).toEqual([expect.stringContaining('WRONGPASS')]);
    expect(warnings[0]).toMatch(
      /until that is fixed\. Check the user name and password in option "redis"\.$/,
    );
  });
});

describe('a server that begins to answer with errors while it is connected', () => {
  let own: RedisServer;

  beforeAll(async () => {
    own = await RedisServer.start();
  });

  afterEach(async () => {
    await own.command('FLUSHALL');
  });

  afterAll(async () => {
    await own.stop();
  });

  /** Some hundred requests that fail, and as many again some time later. */
  async function fail(store: OpenStore['store']): Promise<void> {
    for (let time = 0; time < 5; time += 1) {
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, index) => store.acquire(request(`key-${String(index)}`))),
      );
      expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['unavailable']));
      await sleep(50);
    }
  }

  it.each<[string, readonly string[], readonly string[], RegExp]>([
    [
      'its memory is full',
      ['CONFIG', 'SET', 'maxmemory', '1'],
      ['CONFIG', 'SET', 'maxmemory', '0'],
      /is not usable: .*OOM.*Locks are refused \(503\) until that is fixed\. Free memory there/,
    ],
    [
      'its user loses a right',
      ['ACL', 'SETUSER', 'default', '-eval', '-evalsha'],
      ['ACL', 'SETUSER', 'default', '+eval', '+evalsha'],
      /is not usable: .*NOPERM.*until that is fixed\. Allow the Redis user the commands EVAL, EVALSHA/,
    ],
    [
      'it has too few replicas to write, and that lasts',
      ['CONFIG', 'SET', 'min-replicas-to-write', '1'],
      ['CONFIG', 'SET', 'min-replicas-to-write', '0'],
      /is not usable: .*NOREPLICAS.*until that is fixed\. Fewer replicas are connected/,
    ],
  ])('is reported once, and its end, whatever is asked for: %s', async (_, begin, end, said) => {
    const { store, warnings } = await open(own.url);
    await own.command(...begin);
    await fail(store);
    await eventually(() => warnings.length > 0);
    await fail(store);
    expect(warnings).toEqual([expect.stringMatching(said)]);
    await own.command(...end);
    await eventually(() => warnings.length > 1, { withinMs: 10_000 });
    expect(await store.acquire(request('key'))).toMatchObject({ status: 'granted' });
    expect(warnings.slice(1)).toEqual([
      `Redis at 127.0.0.1:${String(own.port)} is usable again. Locks are granted again.`,
    ]);
  });

  it('is not reported for one key, and looked at once a second at most', async () => {
    const { store, warnings } = await open(own.url);
    await own.command('HSET', 'lock:odd', 'field', 'value');
    const since = performance.now();
    const sent = await own.commandsDuring(async () => {
      for (let time = 0; time < 200; time += 1) {
        expect(await store.acquire(request('odd'))).toMatchObject({ status: 'unavailable' });
      }
    });
    const looks = Math.floor((sent.get('info') ?? 0) / 3);
    expect(looks).toBeLessThanOrEqual(1 + (performance.now() - since) / 1_000);
    expect(warnings).toEqual([]);
  });
});

describe('a health check', () => {
  it('leaves nothing behind, and uses no key that a caller could lock', async () => {
    const { store } = await open(server.url);
    await server.command('FLUSHALL');
    const sent = await server.commandsSentDuring(() => store.health());
    expect(await server.command('DBSIZE')).toBe(0);
    const keys = sent.flatMap((parts) => parts.filter((part) => /^\{?lock:/.test(part)));
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) expect(key).toMatch(/^\{?lock:<trial:[-0-9a-f]+:\d+>/);
  });
});

describe('a master that becomes a replica', () => {
  it('is reported with one message for each change, while callers try again and again', async () => {
    const [master, demoted] = await Promise.all([RedisServer.start(), RedisServer.start()]);
    try {
      const { store, warnings } = await open(demoted.url);
      await demoted.command('REPLICAOF', '127.0.0.1', master.port);
      const until = performance.now() + 2_500;
      while (performance.now() < until) {
        expect(await store.acquire(request('key'))).toMatchObject({ status: 'unavailable' });
        await sleep(50);
      }
      const name = `127.0.0.1:${String(demoted.port)}`;
      const changes = [
        `The connection to Redis at ${name} was lost. Locks are refused (503) until it is reachable.`,
        `Redis at ${name} cannot grant locks: it is a replica: give its master. Locks are refused (503) until that is fixed.`,
      ];
      expect(warnings).toEqual(changes);
      await demoted.command('REPLICAOF', 'NO', 'ONE');
      await eventually(() => warnings.length > 2, { withinMs: 15_000 });
      expect(warnings.slice(2)).toEqual([
        `Redis at ${name} is usable again. Locks are granted again.`,
      ]);
      expect(await store.acquire(request('key'))).toMatchObject({ status: 'granted' });
    } finally {
      await Promise.all([master.stop(), demoted.stop()]);
    }
  }, 30_000);
});

describe('a server that may evict locks', () => {
  it('is warned of once, when the store opens; with noeviction nothing is said', async () => {
    expect((await open(server.url)).warnings).toEqual([]);
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    try {
      expect((await open(server.url)).warnings).toEqual([
        expect.stringMatching(/allkeys-lru.*noeviction/s),
      ]);
    } finally {
      await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    }
  });
});

describe('a Redis user with the rights that the documentation lists', () => {
  let servers: readonly RedisServer[] = [];
  let ends: (() => unknown)[] = [];

  afterEach(async () => {
    for (const end of ends.toReversed()) await end();
    ends = [];
  });

  /** Makes the user on all of these servers. */
  async function allow(on: readonly RedisServer[], ...headings: readonly string[]): Promise<void> {
    servers = on;
    const [first] = on as [RedisServer];
    const rights = await documentedRights(first, ...headings);
    for (const each of on) {
      await each.command('ACL', 'SETUSER', 'locks', 'reset', 'resetchannels', ...rights);
      await each.command('ACL', 'LOG', 'RESET');
    }
  }

  async function start(count: number): Promise<readonly RedisServer[]> {
    const started = await Promise.all(Array.from({ length: count }, () => RedisServer.start()));
    ends.push(() => Promise.all(started.map((each) => each.stop())));
    return started;
  }

  const urlOf = ({ port }: RedisServer, path = ''): string =>
    `redis://locks:secret@127.0.0.1:${String(port)}${path}`;

  /** Whether somebody stands in line, on some server and in some database. */
  async function someoneWaitsFor(key: string): Promise<boolean> {
    const script = `
      local function length() return redis.call('ZCARD', KEYS[1]) end
      local here = length()
      if redis.pcall('SELECT', 5).err then return here end
      return here + length()`;
    const lengths = await Promise.all(
      servers.map((each) => each.command('EVAL', script, 1, `{lock:${key}}:queue`).catch(() => 0)),
    );
    return lengths.some((length) => Number(length) > 0);
  }

  const GUARD: NonNullable<LockModuleOptions['restartGuard']> = { maxTtl: '1m' };

  /** Says that the servers are new; the log warns of that. */
  async function bootstrap(redis: string | string[]): Promise<void> {
    Logger.overrideLogger(false);
    const service = new LockService({ redis, restartGuard: { ...GUARD, bootstrap: true } });
    await service.open();
    await service.shutdown(0);
  }

  async function useModes(first: LockService, second: LockService): Promise<void> {
    const shared = { mode: 'shared' } as const;
    const together = [await first.acquire('d', shared), await second.acquire('d', shared)];
    const alone = first.acquire('d');
    await Promise.all(together.map((one) => one.extend()));
    await Promise.all(together.map((one) => one.release()));
    await (await alone).release();
    const limited = [
      await first.acquire('e', { limit: 2 }),
      await second.acquire('e', { limit: 2 }),
    ];
    const third = first.acquire('e', { limit: 2 });
    await Promise.all(limited.map((one) => one.release()));
    await (await third).release();
    expect((await first.runOnce('once', () => 1)).outcome).toBe('completed');
    expect((await second.runOnce('once', () => 1)).outcome).toBe('done-elsewhere');
    const failing = first.runOnce('fails', () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
  }

  /** Everything that takes a lock, gives it back or looks at it, by two processes. */
  async function useAll(options: () => LockModuleOptions): Promise<void> {
    const logged: string[] = [];
    const warn = (message: unknown): void => void logged.push(String(message));
    Logger.overrideLogger({ log: () => undefined, error: warn, warn });
    const services = [new LockService(options()), new LockService(options())];
    ends.push(() => Promise.all(services.map((service) => service.shutdown(0))));
    const [first, second] = services as [LockService, LockService];
    await Promise.all(services.map((service) => service.open()));

    const lock = await first.acquire(['a', 'b']);
    const waiting = [second.acquire('b'), second.acquire(['a', 'b']), first.acquire('a')];
    await lock.extend();
    await eventually(() => someoneWaitsFor('b'));
    await lock.release();
    await Promise.all(waiting.map(async (acquiring) => (await acquiring).release()));
    await first.acquire('c');
    await second.forceRelease('c');
    expect(await second.inspect('c')).toMatchObject({ held: false });

    await (await first.acquire('f', { minHold: '50ms' })).release();
    // Over several masters there are exclusive locks, and nothing else.
    if (!Array.isArray(options().redis)) await useModes(first, second);

    const { hasQuorum, nodes } = await first.health();
    expect(nodes.map(({ problem }) => problem)).toEqual(nodes.map(() => undefined));
    expect(hasQuorum).toBe(true);
    await Promise.all(services.map((service) => service.shutdown(0)));
    const denied = await Promise.all(servers.map((each) => each.command('ACL', 'LOG')));
    expect(denied).toEqual(servers.map(() => []));
    expect(logged.filter((message) => !message.includes('"c"'))).toEqual([]);
  }

  it('is denied nothing by one Redis', async () => {
    const [one] = (await start(1)) as [RedisServer];
    await allow([one]);
    await useAll(() => ({ redis: urlOf(one) }));
  });

  it('is denied nothing in another database', async () => {
    const [one] = (await start(1)) as [RedisServer];
    await allow([one], 'A database other than 0');
    await useAll(() => ({ redis: urlOf(one, '/5') }));
  });

  it('is denied nothing by one Redis with replicas', async () => {
    const [one] = (await start(1)) as [RedisServer];
    const replica = await RedisServer.start({ replicaOf: one });
    ends.push(() => replica.stop());
    await eventually(async () => {
      await one.command('SET', 'step', String(Math.random()));
      expect(await one.command('GET', 'step')).toBe(await replica.command('GET', 'step'));
    });
    await allow([one, replica], 'Option "replicas"');
    await useAll(() => ({ redis: urlOf(one), replicas: { ack: 1, timeout: '500ms' } }));
  });

  it('is denied nothing by one Redis with a restart guard', async () => {
    const [one] = (await start(1)) as [RedisServer];
    await allow([one]);
    await bootstrap(urlOf(one));
    await useAll(() => ({ redis: urlOf(one), restartGuard: GUARD }));
  });

  it.each([
    ['without a restart guard', undefined],
    ['with a restart guard', GUARD],
  ])('is denied nothing by three masters %s', async (_, restartGuard) => {
    const three = await start(3);
    await allow(three);
    const redis = three.map((each) => urlOf(each));
    if (restartGuard !== undefined) await bootstrap(redis);
    await useAll(() => ({ redis, restartGuard }));
  });

  it('is denied nothing by a Cluster', async () => {
    const cluster = await RedisCluster.start({ replicas: 3 });
    ends.push(() => cluster.stop());
    await allow(cluster.nodes, 'A Cluster');
    const redisOptions = { username: 'locks', password: 'secret', lazyConnect: true };
    await useAll(() => {
      const client = new Cluster(cluster.startupNodes, { redisOptions, lazyConnect: true });
      ends.push(() => {
        client.disconnect();
      });
      return { redis: client };
    });
  }, 60_000);
});
