import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import {
  LockConfigurationError,
  LockService,
  LockStoreUnavailableError,
  type CredentialsProvider,
  type LockModuleOptions,
} from 'nestjs-holdfast';
import { deferred, eventually } from '../support/eventually.js';
import { expectNoOpenHandles } from '../support/no-leaks.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisSentinel } from '../support/redis-sentinel.js';
import { RedisServer } from '../support/redis-server.js';

/** Backwards, so that what uses a server ends before it. */
let closings: (() => unknown)[] = [];

beforeAll(() => {
  Logger.overrideLogger(false);
});

afterEach(async () => {
  for (const close of closings.reverse()) await close();
  closings = [];
});

async function start(): Promise<RedisServer> {
  const server = await RedisServer.start();
  closings.push(() => server.stop());
  return server;
}

async function open(options: LockModuleOptions): Promise<LockService> {
  const locks = new LockService(options);
  closings.push(() => locks.shutdown(0));
  await locks.open();
  return locks;
}

function owned<T extends Redis | Cluster>(client: T): T {
  client.on('error', () => undefined);
  closings.push(() => {
    client.disconnect();
  });
  return client;
}

/** The user that locks have, with this password only. */
async function allow(servers: readonly RedisServer[], password: string): Promise<void> {
  const rights = ['on', 'resetpass', `>${password}`, '~*', '&*', '+@all'];
  for (const server of servers) await server.command('ACL', 'SETUSER', 'locks', ...rights);
}

/** As a rotation, and what cuts connections some time later: a fail-over, a proxy, the end of a token. */
async function rotate(servers: readonly RedisServer[], password: string): Promise<void> {
  await allow(servers, password);
  for (const server of servers) await server.command('CLIENT', 'KILL', 'USER', 'locks');
}

const ourConnections = async (server: RedisServer): Promise<readonly string[]> =>
  String(await server.command('CLIENT', 'LIST'))
    .split('\n')
    .filter((line) => line.includes(' name=holdfast ') && line.includes(' user=locks '));

/** Commands, in many slots. */
async function expectGranted(locks: LockService): Promise<void> {
  for (let number = 0; number < 8; number += 1)
    await eventually(() => locks.run(`key:${String(number)}`, { wait: '20s' }, () => undefined));
}

/** Commands and messages. */
async function expectUsable(locks: LockService, servers: readonly RedisServer[]): Promise<void> {
  await expectGranted(locks);
  await eventually(
    async () => {
      const all = (await Promise.all(servers.map(ourConnections))).flat();
      return all.some((line) => / (sub|ssub)=[1-9]/.test(line));
    },
    { withinMs: 20_000 },
  );
}

const outageOf = async (promise: Promise<unknown>): Promise<LockStoreUnavailableError> => {
  const error: unknown = await promise.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockStoreUnavailableError);
  return error as LockStoreUnavailableError;
};

/** What says the password anew, and how locks get it. */
interface Rotating {
  readonly options: LockModuleOptions;
  set(password: string): void;
}

const provided = (
  redis: LockModuleOptions['redis'],
): Rotating & { readonly calls: () => number } => {
  let [password, calls] = ['first', 0];
  const credentials: CredentialsProvider = async () => {
    calls += 1;
    await new Promise(setImmediate); // as long as it takes to fetch a token
    return { username: 'locks', password };
  };
  return {
    options: { redis, credentials },
    set: (next) => {
      password = next;
    },
    calls: () => calls,
  };
};

const ofClient = (client: Redis): Rotating => ({
  options: { redis: client },
  set: (password) => {
    client.options.password = password;
  },
});

describe('TR-70 a password that was changed is used for the next connection', () => {
  const ways: [string, (server: RedisServer) => Rotating][] = [
    [
      'the options of the client that was handed over',
      ({ port }) =>
        ofClient(
          owned(new Redis({ port, username: 'locks', password: 'first', lazyConnect: true })),
        ),
    ],
    [
      'the options of a client whose password was in its URL',
      ({ port }) =>
        ofClient(
          owned(
            new Redis(`redis://locks:first@127.0.0.1:${String(port)}/0`, { lazyConnect: true }),
          ),
        ),
    ],
    [
      'the options that were handed over',
      ({ port }) => {
        const redis: RedisOptions = { port, username: 'locks', password: 'first' };
        return {
          options: { redis },
          set: (password) => {
            redis.password = password;
          },
        };
      },
    ],
    ['a function', ({ url }) => provided(url)],
    ['a function, with RESP2', ({ port }) => provided({ port, protocol: 2 })],
  ];

  it.each(ways)('%s', async (_way, rotatingAt) => {
    const server = await start();
    await allow([server], 'first');
    const { options, set } = rotatingAt(server);
    const locks = await open(options);
    const held = await locks.acquire('held', { ttl: '60s' });
    await expectUsable(locks, [server]);
    for (const password of ['second', 'third']) {
      set(password);
      await rotate([server], password);
      await expectUsable(locks, [server]);
    }
    expect(await held.release()).toBe(true);
  });

  it('where there was none at first', async () => {
    const server = await start();
    const client = owned(new Redis({ port: server.port, lazyConnect: true }));
    const locks = await open({ redis: client });
    await locks.run('key', () => undefined);
    await eventually(async () =>
      String(await server.command('CLIENT', 'LIST')).includes(' sub=1 '),
    );
    await allow([server], 'first');
    await server.command('ACL', 'SETUSER', 'default', '-evalsha', '-eval');
    Object.assign(client.options, { username: 'locks', password: 'first' });
    for (const type of ['normal', 'pubsub']) await server.command('CLIENT', 'KILL', 'TYPE', type);
    await expectUsable(locks, [server]);
  });

  it('in the database of the URL, and instead of the user there', async () => {
    const server = await start();
    await allow([server], 'first');
    const { options, set, calls } = provided(
      `redis://nobody:nothing@127.0.0.1:${String(server.port)}/3`,
    );
    const locks = await open(options);
    await locks.run('key', () => undefined);
    const before = calls();
    expect(before).toBeGreaterThan(0);
    set('second');
    await rotate([server], 'second');
    await expectUsable(locks, [server]);
    expect(calls()).toBeGreaterThan(before);
    const lock = await locks.acquire('key');
    expect(await server.command('INFO', 'keyspace')).toMatch(/db3:/);
    await lock.release();
  });

  it.each([
    [
      'the options of its client',
      (startupNodes: { host: string; port: number }[]): Rotating => {
        const redisOptions: { username: string; password: string } = {
          username: 'locks',
          password: 'first',
        };
        const client = owned(new Cluster(startupNodes, { lazyConnect: true, redisOptions }));
        return {
          options: { redis: client },
          set: (password) => {
            Object.assign(client.options.redisOptions ?? {}, { password });
          },
        };
      },
    ],
    [
      'its nodes',
      (startupNodes: { host: string; port: number }[]): Rotating => {
        const nodes = startupNodes.map((node) => ({
          ...node,
          username: 'locks',
          password: 'first',
        }));
        return {
          options: { redis: owned(new Cluster(nodes, { lazyConnect: true })) },
          set: (password) => {
            for (const node of nodes) node.password = password;
          },
        };
      },
    ],
    [
      'a function',
      (startupNodes: { host: string; port: number }[]): Rotating =>
        provided(owned(new Cluster(startupNodes, { lazyConnect: true }))),
    ],
  ])(
    'of a Cluster: %s',
    async (_way, rotatingAt) => {
      const cluster = await RedisCluster.start({ masters: 2 });
      closings.push(() => cluster.stop());
      for (const node of cluster.nodes)
        await node.command(
          'ACL',
          'SETUSER',
          'default',
          '-evalsha',
          '-eval',
          '-subscribe',
          '-ssubscribe',
        );
      await allow(cluster.nodes, 'first');
      const { options, set } = rotatingAt(cluster.startupNodes);
      const locks = await open(options);
      await expectUsable(locks, cluster.nodes);
      set('second');
      await rotate(cluster.nodes, 'second');
      await expectUsable(locks, cluster.nodes);
    },
    60_000,
  );

  it.each<[string, 'client' | 'function', LockModuleOptions['instance']]>([
    ['a client', 'client', {}],
    ['a function', 'function', {}],
    // Then no other connection calls the function meanwhile.
    ['a function, while no caller waits', 'function', false],
  ])(
    'behind Sentinel, at the sentinels too: %s',
    async (_way, way, instance) => {
      const sentinel = await RedisSentinel.start();
      closings.push(() => sentinel.stop());
      const servers = [sentinel.master, sentinel.replica];
      const watchers = sentinel.sentinelServers;
      const everywhere = async (password: string): Promise<void> => {
        await allow(servers, password);
        await allow(watchers, password);
      };
      await everywhere('first');
      const place = { sentinels: sentinel.sentinels, name: sentinel.name, lazyConnect: true };
      let password = 'first';
      const login = (): {
        username: string;
        password: string;
        sentinelUsername: string;
        sentinelPassword: string;
      } => ({
        username: 'locks',
        password,
        sentinelUsername: 'locks',
        sentinelPassword: password,
      });
      const client = owned(new Redis({ ...place, ...login() }));
      const locks = await open(
        way === 'client' ? { redis: client } : { redis: place, credentials: login, instance },
      );
      await (instance === false ? expectGranted(locks) : expectUsable(locks, [sentinel.master]));
      await everywhere('second');
      for (const server of servers) await server.command('CLIENT', 'KILL', 'USER', 'locks');
      // The application hears of it later: ioredis has begun to ask one sentinel after the other.
      await eventually(async () => {
        const { detail } = await outageOf(locks.acquire('key', { wait: 0 }));
        expect(detail).toMatch(/All sentinels are unreachable|WRONGPASS/);
      });
      password = 'second';
      Object.assign(client.options, login());
      await (instance === false ? expectGranted(locks) : expectUsable(locks, [sentinel.master]));
    },
    60_000,
  );
});

describe('a function that gives credentials', () => {
  it.each([
    ['fails', () => Promise.reject(new Error('no role')), /credentials.*no role/],
    [
      'throws',
      () => {
        throw new Error('no role');
      },
      /credentials.*no role/,
    ],
    ['returns nothing', () => undefined, /credentials.*no password.*\{ username, password \}/],
    ['returns an empty password', () => ({ password: '' }), /credentials.*password/],
  ])(
    'and %s makes calls fail with the reason, and is called again',
    async (_what, failing, reason) => {
      const server = await start();
      await allow([server], 'secret');
      let provide = failing as CredentialsProvider;
      const locks = await open({ redis: server.url, credentials: () => provide() });
      expect((await outageOf(locks.tryAcquire('key'))).detail).toMatch(reason);
      const waiting = locks.run('key', { wait: '20s' }, () => 'ran');
      provide = () => ({ username: 'locks', password: 'secret' });
      expect(await waiting).toBe('ran');
      expect(await ourConnections(server)).not.toHaveLength(0);
    },
  );

  it('need not name a user', async () => {
    const server = await start();
    await server.command('CONFIG', 'SET', 'requirepass', 'secret');
    const locks = await open({ redis: server.url, credentials: () => ({ password: 'secret' }) });
    expect(await locks.run('key', () => 'ran')).toBe('ran');
  });

  it('and does not end leaves nothing open when the service is closed', async () => {
    const server = await start();
    await expectNoOpenHandles(async () => {
      const locks = new LockService({
        redis: server.url,
        nodeTimeout: 100,
        credentials: () => new Promise(() => undefined),
      });
      await locks.open();
      await outageOf(locks.tryAcquire('key'));
      await locks.shutdown(0);
    });
  });

  it('and ends after the service was closed opens no connection', async () => {
    const server = await start();
    const given = deferred<{ username: string; password: string }>();
    await allow([server], 'secret');
    const locks = new LockService({
      redis: server.url,
      nodeTimeout: 100,
      credentials: () => given.promise,
    });
    await locks.open();
    await locks.shutdown(0);
    const sent = await server.commandsSentDuring(async () => {
      given.resolve({ username: 'locks', password: 'secret' });
      await new Promise(setImmediate);
      await server.command('PING');
    });
    expect(sent.filter(([name]) => name === 'auth' || name === 'hello')).toEqual([]);
  });

  it('is refused where there is nothing to log in to, and if it is none', () => {
    const credentials = (): { password: string } => ({ password: 'secret' });
    expect(() => new LockService({ store: 'memory', credentials })).toThrow(LockConfigurationError);
    expect(() => new LockService({ redis: 'redis://a', credentials: 'secret' as never })).toThrow(
      /"credentials".*async \(\) => \(\{ username, password \}\)/,
    );
  });
});
