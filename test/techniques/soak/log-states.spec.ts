import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import type { LockModuleOptions } from '../../../lib/options/lock-module-options.js';
import { eventually } from '../../support/eventually.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { RedisServer, type RedisServerOptions } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { LoggedLocks } from '../../observe/log/logged.js';

/** A server that grants nothing is looked at every 5 s. */
const SEEN = { withinMs: 15_000 };

const LOST =
  'The connection to Redis at HOST was lost. Locks are refused (503) until it is reachable.';
const REPLICA =
  'Redis at HOST cannot grant locks: it is a replica: give its master. Locks are refused (503) until that is fixed.';
const AGAIN = 'Redis at HOST is usable again. Locks are granted again.';
const FULL =
  `Redis at HOST is not usable: OOM command not allowed when used memory > 'maxmemory'. Locks are refused (503) until that is fixed. ` +
  'Free memory there, or raise "maxmemory". A Redis of their own keeps locks from being refused for the data of others.';

let ends: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});

async function server(options: RedisServerOptions = {}): Promise<RedisServer> {
  const started = await RedisServer.start(options);
  ends.push(() => started.stop());
  return started;
}

async function busy(options: LockModuleOptions): Promise<LoggedLocks> {
  const locks = await LoggedLocks.open(options);
  ends.push(() => locks.end());
  locks.keepsAsking();
  return locks;
}

/** Resolves when a line was logged for the so-manyth time. */
const said = (locks: LoggedLocks, line: string | RegExp, times = 1): Promise<unknown> =>
  eventually(() => {
    const lines = locks.logged.filter((each) =>
      typeof line === 'string' ? each === line : line.test(each),
    );
    expect([lines.length, locks.logged]).toEqual([times, expect.anything()]);
  }, SEEN);

/** What is said of a lock that somebody happened to hold is another matter. */
const ofTheServer = (locks: LoggedLocks): readonly string[] =>
  locks.logged.filter((line) => !/^(Could not release|Lock )/.test(line));

describe('a server that changes while locks are asked for', () => {
  it('is a replica for a while: each change is logged once, and that operators see nobody is not a matter of rights', async () => {
    const [redis, other] = await Promise.all([server(), server()]);
    const locks = await busy({ redis: redis.url });
    for (let time = 1; time <= 2; time += 1) {
      await redis.command('REPLICAOF', '127.0.0.1', other.port);
      await said(locks, REPLICA, time);
      await sleep(1_500); // callers ask on, and each of them is refused
      await redis.command('REPLICAOF', 'NO', 'ONE');
      await said(locks, AGAIN, time);
      await (await locks.acquire('key')).release();
    }
    expect(ofTheServer(locks)).toEqual([LOST, REPLICA, AGAIN, LOST, REPLICA, AGAIN]);
  }, 60_000);

  it('has no memory left for a while: with what to do, once for each time', async () => {
    const redis = await server();
    const locks = await busy({ redis: redis.url });
    for (let time = 1; time <= 2; time += 1) {
      await redis.command('CONFIG', 'SET', 'maxmemory', '1');
      await said(locks, FULL, time);
      await sleep(1_500);
      await redis.command('CONFIG', 'SET', 'maxmemory', '0');
      await said(locks, AGAIN, time);
    }
    expect(locks.logged).toEqual([FULL, AGAIN, FULL, AGAIN]);
  }, 60_000);

  it('has a user without a right for a while: with what to do, once', async () => {
    const redis = await server();
    await redis.command('ACL', 'SETUSER', 'locks', 'on', '>secret', '~*', '&*', '+@all');
    const locks = await busy({ redis: redis.url.replace('//', '//locks:secret@') });
    await redis.command('ACL', 'SETUSER', 'locks', '-evalsha');
    await said(locks, /NOPERM.*evalsha.*Allow the Redis user the commands EVAL, EVALSHA/s);
    await redis.command('ACL', 'SETUSER', 'locks', '+evalsha');
    await said(locks, AGAIN);
    expect(ofTheServer(locks)).toHaveLength(2);
  }, 60_000);

  it('is paused: silence that lasts is logged once, and its end', async () => {
    const redis = await server();
    const locks = await busy({ redis: redis.url });
    await redis.command('CLIENT', 'PAUSE', '9000', 'ALL');
    await said(locks, AGAIN);
    expect(ofTheServer(locks)).toEqual([LOST, AGAIN]);
  }, 60_000);

  it('answers too late for every call: that is logged, and its end', async () => {
    const redis = await server();
    const way = await TcpProxy.start(redis.port);
    ends.push(() => way.stop());
    const locks = await busy({
      redis: `redis://127.0.0.1:${String(way.port)}`,
      nodeTimeout: '300ms',
      instance: false,
    });
    await (await locks.acquire('key')).release();
    way.delay(250);
    await said(
      locks,
      'Redis at HOST is not usable yet: no answer within 300 ms. Locks are refused (503) until it is reachable.',
    );
    way.delay(0);
    await said(locks, AGAIN);
    expect(locks.logged).toHaveLength(2);
  }, 60_000);
});

describe('a server that comes and goes', () => {
  it('is logged ten times a minute at most', async () => {
    const redis = await server();
    const locks = await busy({ redis: redis.url });
    for (let time = 0; time < 12; time += 1) {
      await redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
      await eventually(async () => (await locks.tryAcquire('key'))?.release());
      await sleep(150); // it is looked at, and granting again is logged
    }
    expect(locks.logged).toHaveLength(10);
    expect(locks.logged.slice(0, 9)).toEqual([
      LOST,
      AGAIN,
      LOST,
      AGAIN,
      LOST,
      AGAIN,
      LOST,
      AGAIN,
      LOST,
    ]);
    expect(locks.logged[9]).toBe(
      `${AGAIN} (This is warning 10 of its kind within a minute: further ones are summed up once a minute.)`,
    );
  }, 60_000);
});

describe('a server that may evict locks', () => {
  it('is warned of once, however often it is looked at', async () => {
    const redis = await server({ config: { 'maxmemory-policy': 'allkeys-lru' } });
    const locks = await busy({ redis: redis.url });
    for (let time = 1; time <= 2; time += 1) {
      await redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
      await said(locks, AGAIN, time);
    }
    expect(locks.logged.filter((line) => line.includes('allkeys-lru'))).toHaveLength(1);
  }, 60_000);
});

describe('a Cluster', () => {
  async function cluster(): Promise<{ nodes: readonly RedisServer[]; locks: LoggedLocks }> {
    const started = await RedisCluster.start();
    ends.push(() => started.stop());
    const redis = new Cluster(started.startupNodes, { lazyConnect: true });
    ends.push(() => {
      redis.disconnect();
    });
    const locks = await busy({ redis, nodeTimeout: '500ms' });
    return { nodes: started.nodes, locks };
  }

  const CLUSTER_AGAIN =
    'Redis at cluster HOST, HOST, HOST is usable again. Locks are granted again.';

  it('grants locks again when all of its masters do, not when one of them does', async () => {
    const { nodes, locks } = await cluster();
    const [first, second] = nodes as [RedisServer, RedisServer];
    await first.command('CONFIG', 'SET', 'maxmemory', '1');
    await said(locks, /HOST: OOM/);
    await second.command('CONFIG', 'SET', 'maxmemory', '1');
    await first.command('CONFIG', 'SET', 'maxmemory', '0');
    await sleep(6_000); // it is looked at every 5 s
    expect(locks.logged).not.toContain(CLUSTER_AGAIN);
    await second.command('CONFIG', 'SET', 'maxmemory', '0');
    await said(locks, CLUSTER_AGAIN);
  }, 60_000);

  it('has a master that is silent: that is logged, and its end', async () => {
    const { nodes, locks } = await cluster();
    nodes[0]?.freeze();
    await said(locks, /grants no locks in some slots: .*Locks are refused \(503\)/);
    nodes[0]?.thaw();
    await said(locks, CLUSTER_AGAIN);
  }, 60_000);
});
