import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { createCluster } from 'redis';
import { LockConfigurationError, LockService } from 'nestjs-holdfast';
import { once } from 'node:events';
import { inspect } from 'node:util';
import { systemRuntime } from '../../lib/time/runtime.js';
import { addressOf } from '../../lib/store/redis/client/ioredis/ioredis-options.js';
import { ioredisClusterAt } from '../../lib/store/redis/client/ioredis/redis-source.js';
import {
  isClusterClient,
  isLocatedClient,
  redisSource,
  type RedisLocation,
} from '../../lib/store/redis/client/redis-location.js';
import { RedisServer } from '../support/redis-server.js';

function failureOf(action: () => unknown): Error {
  try {
    action();
  } catch (error) {
    return error as Error;
  }
  throw new Error('it did not fail');
}

describe('a URL that cannot be read', () => {
  it.each([
    ['redis://:S3CRET@h:99999', '"redis://***@h:99999"'],
    ['redis://user:S3CRET@h:99999/3', '"redis://***@h:99999/3"'],
    ['redis://:S3%CRET@h', '"redis://***@h"'],
    ['redis://:S3#CRET@h', '"redis://***@h"'],
    ['redis://:S3/CRET@h:6379', '"redis://***@h:6379"'],
    ['redis://:S3CRET', '"redis://:***"'],
    ['redis://h:99999:S3CRET', '"redis://h:***"'],
    ['redis://h:99999?password=S3CRET', '"redis://h:99999?password=***"'],
    ['redis://h:99999', '"redis://h:99999"'],
  ])('is a mistake in the configuration, told without the password: %s', (redis, shown) => {
    const error = failureOf(() => new LockService({ redis }));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toContain(`received ${shown}`);
    expect(error.cause).toBeUndefined();
    // What Nest prints of it at the start.
    expect(inspect(error, { showHidden: true, depth: 5 })).not.toMatch(/S3|CRET/);
  });

  it('of a node of the Cluster that was given is told without the password too', () => {
    const cluster = new Cluster(['redis://:S3CRET@h:99999'], { lazyConnect: true });
    const error = failureOf(() => redisSource(cluster, systemRuntime));
    cluster.disconnect();
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(inspect(error, { showHidden: true, depth: 5 })).not.toContain('S3CRET');
  });
});

describe('a database that is no number', () => {
  it.each([
    ['redis://localhost:6790/abc', '"abc" of localhost:6790'],
    ['redis://:S3CRET@localhost:6790/abc', '"abc" of localhost:6790'],
    ['redis://localhost:6790/-1', '"-1" of localhost:6790'],
  ])('is named as it was given: %s', (redis, shown) => {
    const error = failureOf(() => new LockService({ redis }));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(error.message).toContain(`names the database ${shown}`);
  });
});

describe('a location', () => {
  it.each<[string, boolean, RedisLocation]>([
    ['a client of a Cluster', true, new Cluster([{ host: 'h' }], { lazyConnect: true })],
    ['a client of one server', false, new Redis({ lazyConnect: true })],
    ['a URL', false, 'redis://h'],
    ['options', false, { host: 'h' }],
  ])(
    'is of a Cluster where it is a client of one, and otherwise is not: %s, %j',
    (_, isCluster, location) => {
      expect(isClusterClient(location)).toBe(isCluster);
    },
  );

  it.each<[string, Parameters<typeof addressOf>[0]]>([
    ['localhost:6379', {}],
    ['h:7000', { host: 'h', port: 7000 }],
    ['/run/redis.sock', { path: '/run/redis.sock', host: 'h' }],
    [
      'sentinel group (a:26379, b:6379)',
      { name: 'group', sentinels: [{ host: 'a', port: 26_379 }, { host: 'b' }] },
    ],
    ['sentinel  (localhost:26379)', { sentinels: [{ port: 26_379 }] }],
    ['h:6379', { host: 'h', sentinels: [] }],
  ])('is named %j', (name, options) => {
    expect(addressOf(options)).toBe(name);
  });
});

describe('a client', () => {
  it.each<[boolean, unknown]>([
    [true, new Redis({ lazyConnect: true })],
    [false, 'redis://h'],
    [false, { host: 'h' }],
    [false, undefined],
    [false, null],
  ])('is known by its shape, whatever else is given: %j', (isClient, value) => {
    expect(isLocatedClient(value)).toBe(isClient);
  });
});

describe('options for Sentinel', () => {
  it('are kept, apart from what would end our connections for good', () => {
    const sentinels = [{ host: '127.0.0.1', port: 1 }];
    const location = {
      sentinels,
      name: 'group',
      sentinelPassword: 'secret',
      db: 3,
      role: 'slave',
      ...{ readOnly: true, enableOfflineQueue: true, enableReadyCheck: false },
      sentinelRetryStrategy: () => null,
    } as const;
    const source = redisSource(location, systemRuntime);
    const duplicate = jest.spyOn(Redis.prototype, 'duplicate');
    const drop = (): void => undefined;
    const own = source.connect({
      onConnect: drop,
      onReady: drop,
      onError: drop,
      onClose: drop,
      onEnd: drop,
      onSlots: drop,
    });
    const client = duplicate.mock.results.at(-1)?.value as Redis;
    duplicate.mockRestore();
    expect(own.state).toBe('idle');
    expect(client.status).toBe('wait');
    expect(client.options).toMatchObject({ sentinels, name: 'group', db: 3, role: 'master' });
    expect(client.options).toMatchObject({
      ...{ readOnly: false, enableOfflineQueue: false, enableReadyCheck: true },
    });
    expect(client.options.sentinelPassword).toBe('secret');
    expect(client.options.sentinelRetryStrategy?.(1)).toEqual(expect.any(Number));
    expect(source.name).toBe('sentinel group (127.0.0.1:1)');
    client.disconnect();
  });
});

describe('a client that has selected another database', () => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await RedisServer.start();
  });

  afterAll(() => server.stop());

  it('leads to that one, also while it connects again', async () => {
    const client = new Redis(server.url);
    const database = (): number => redisSource(client, systemRuntime).database;
    try {
      await client.select(3);
      expect(database()).toBe(3);
      client.disconnect(true);
      await once(client, 'connect');
      expect(database()).toBe(3);
    } finally {
      client.disconnect();
    }
  });
});

describe('a client of a Cluster', () => {
  const clients: readonly [string, RedisLocation][] = [
    [
      'ioredis',
      new Cluster([{ host: 'a', port: 7_000 }, { host: 'b' }, 'redis://c:7002'], {
        lazyConnect: true,
      }),
    ],
    [
      'node-redis',
      createCluster({
        rootNodes: [
          { url: 'redis://a:7000' },
          { socket: { host: 'b' } },
          { socket: { host: 'c', port: 7_002 } },
        ],
      }),
    ],
  ];

  it.each(clients)('is named by its nodes, with %s', (_, client) => {
    expect(redisSource(client, systemRuntime).name).toBe('cluster a:7000, b:6379, c:7002');
  });
});

describe('a Cluster at some URLs', () => {
  it('has the user, the password and TLS of the first for all of its nodes', () => {
    const { options } = ioredisClusterAt(['rediss://user:secret@h:7000', 'redis://i:7001']);
    const { username, password, tls } = options.redisOptions ?? {};
    expect({ username, password }).toEqual({ username: 'user', password: 'secret' });
    expect(tls).toBeTruthy();
    expect(ioredisClusterAt(['redis://h:7000']).options.redisOptions).toStrictEqual({});
  });

  it('keeps host names where there is TLS, whose certificates name them, and resolves them elsewhere', () => {
    const resolve = ioredisClusterAt(['rediss://h:7000']).options.dnsLookup;
    const found: unknown[] = [];
    resolve?.('redis.example', (...answer) => found.push(answer));
    expect(found).toEqual([[null, 'redis.example']]);
    const usual = new Cluster([{ host: 'h' }], { lazyConnect: true }).options.dnsLookup;
    expect(ioredisClusterAt(['redis://h:7000']).options.dnsLookup).toBe(usual);
  });
});
