import { createRequire } from 'node:module';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';

const require = createRequire(import.meta.url);

/** What the application has installed. */
let packages: readonly string[] = [];

jest.unstable_mockModule('../../lib/store/redis/client/installed.cjs', () => ({
  default: (name: string): unknown => (packages.includes(name) ? require(name) : undefined),
}));

const { LockService } = await import('../../lib/index.js');
const { RedisServers } = await import('../../lib/tools/redis-servers.js');

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});

beforeEach(() => {
  packages = [];
});

afterAll(async () => {
  await server.stop();
});

describe('an application without ioredis', () => {
  it.each(['redis', '@redis/client'])('has locks at a URL with %s', async (name) => {
    packages = [name];
    const service = new LockService({ redis: `${server.url}/2` });
    try {
      await service.open();
      const lock = await service.acquire('key');
      expect(await server.command('INFO', 'keyspace')).toContain('db2');
      await lock.release();
    } finally {
      await service.shutdown();
    }
  });

  it('has the masters of a Cluster at its URLs', async () => {
    packages = ['redis'];
    const cluster = await RedisCluster.start({ masters: 2 });
    try {
      const servers = new RedisServers({
        urls: cluster.nodes.map(({ port }) => `redis://127.0.0.1:${String(port)}`),
        isCluster: true,
        keyPrefix: 'lock:',
        timeLimitMs: 2_000,
      });
      const found = await servers.connected((reached) => Promise.resolve(reached));
      expect(found.away).toEqual([]);
      expect(found.servers).toHaveLength(2);
    } finally {
      await cluster.stop();
    }
  }, 90_000);

  it('has locks at a Unix socket, of which node-redis 5 cannot read the URL', () => {
    packages = ['redis'];
    const service = new LockService({ redis: 'unix://user:secret@/run/redis.sock?db=2' });
    expect(service).toBeInstanceOf(LockService);
    expect(() => new LockService({ redis: 'unix:///run/redis.sock?db=two' })).toThrow(
      'database NaN',
    );
  });

  it('gets an error that says what to install, with no client at all', () => {
    expect(() => new LockService({ redis: 'redis://localhost' })).toThrow(
      'no client for Redis is installed: npm install ioredis, or npm install redis',
    );
  });

  it('gets an error that says that options are those of ioredis', () => {
    packages = ['redis'];
    expect(() => new LockService({ redis: { host: 'localhost' } })).toThrow('npm install ioredis');
  });

  it('is not shown the password of a URL that is wrong', () => {
    packages = ['redis'];
    const make = () => new LockService({ redis: 'redis://:the-password@localhost:99999' });
    expect(make).toThrow('Option "redis" must be a URL');
    expect(make).not.toThrow('the-password');
  });
});
