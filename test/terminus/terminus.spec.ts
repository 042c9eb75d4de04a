import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { type LockModuleOptions } from 'nestjs-holdfast';
import { LockHealthIndicator } from 'nestjs-holdfast/terminus';
import { eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer, type RedisServerOptions } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { DEGRADES, HealthApp, type Probe } from './health-app.js';

const REFUSING =
  /^No lock can be granted now\. The lock store is refusing to grant locks\. The log of the application says why\.$/;
const AWAY = /^No lock can be granted now\. The lock store is not reachable\./;

/** How much later than its limit a check may be answered on a busy machine, in ms. */
const LATE_MS = 1_500;

let ends: (() => unknown)[] = [];

beforeEach(() => {
  Logger.overrideLogger(false);
});

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});

async function server(options: RedisServerOptions = {}): Promise<RedisServer> {
  const started = await RedisServer.start(options);
  ends.push(() => started.stop());
  return started;
}

async function application(
  options: LockModuleOptions,
  jobs?: LockModuleOptions & { readonly name: string },
): Promise<HealthApp> {
  const app = await HealthApp.start(options, jobs);
  ends.push(() => app.stop());
  return app;
}

describe('the health of one Redis', () => {
  it('is up while locks are granted, and leaves nothing behind', async () => {
    const redis = await server();
    const app = await application({ redis: redis.url, instance: false });
    const { text } = await app.probe();
    const locks = { status: 'up', nodesGranting: 1, nodesTotal: 1 };
    expect(JSON.parse(text)).toEqual({
      status: 'ok',
      info: { locks },
      error: {},
      details: { locks },
    });
    expect(await redis.command('KEYS', '*')).toEqual([]);
    await app.expectUp();
  });

  it.each(['evalsha', 'set', 'del'])(
    'is down while its user may not %s, and up again when it may',
    async (command) => {
      const redis = await server();
      await redis.command('ACL', 'SETUSER', 'locks', 'on', '>s3cret', '~*', '&*', '+@all');
      const app = await application({ redis: redis.url.replace('//', '//locks:s3cret@') });
      await app.expectUp();
      await redis.command('ACL', 'SETUSER', 'locks', `-${command}`);
      const { status, locks } = await app.probe();
      expect([status, locks.message]).toEqual([503, expect.stringMatching(REFUSING)]);
      await redis.command('ACL', 'SETUSER', 'locks', `+${command}`);
      await app.expectUp();
    },
  );

  it('is down while its user may use other keys only', async () => {
    const redis = await server();
    await redis.command('ACL', 'SETUSER', 'locks', 'on', '>s3cret', '~other:*', '&*', '+@all');
    const app = await application({ redis: redis.url.replace('//', '//locks:s3cret@') });
    await app.expectDown(REFUSING);
  });

  it('is down while memory is full', async () => {
    const redis = await server();
    const app = await application({ redis: redis.url });
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    await app.expectDown(REFUSING);
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await app.expectUp();
  });

  it('is down while a replica is in the place of the master, from the start or later', async () => {
    const [redis, other] = await Promise.all([server(), server()]);
    const [before, after] = await Promise.all([
      application({ redis: redis.url }),
      server({ replicaOf: other }).then(({ url }) => application({ redis: url })),
    ]);
    await eventually(() => after.expectDown(REFUSING));
    await redis.command('REPLICAOF', '127.0.0.1', other.port);
    await before.expectDown(/No lock can be granted now/);
    await eventually(() => before.expectDown(REFUSING));
    await redis.command('REPLICAOF', 'NO', 'ONE');
    await eventually(() => before.expectUp());
  });

  it('is down while its address leads to a replica that cannot be written to, after a fail-over', async () => {
    const redis = await server();
    const replica = await server({ replicaOf: redis });
    const way = await TcpProxy.start(redis.port);
    ends.push(() => way.stop());
    const app = await application({ redis: `redis://127.0.0.1:${String(way.port)}` });
    await app.expectUp();
    way.leadTo(replica.port);
    way.cut();
    await eventually(() => app.expectDown(REFUSING));
    await replica.command('REPLICAOF', 'NO', 'ONE');
    await eventually(() => app.expectUp());
  });

  it('is down while the server loads its data', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'holdfast-data-'));
    ends.push(() => {
      rmSync(dir, { recursive: true, force: true });
    });
    const redis = await server({ config: { dir, rdbcompression: 'no', 'key-load-delay': '8000' } });
    const fill = `for i = 1, 300 do redis.call('SET', KEYS[1] .. i, string.rep('x', 100000)) end`;
    await redis.command('EVAL', fill, 1, 'other:');
    await redis.command('SAVE');
    const app = await application({ redis: redis.url });
    await app.expectUp();
    const restarted = redis.restart();
    await eventually(async () => {
      const loading: unknown = await redis.command('GET', 'a').catch(String);
      expect(loading).toMatch(/LOADING/);
    });
    await app.expectDown(AWAY, { timeout: '300ms' });
    await restarted;
    await eventually(() => app.expectUp(), { withinMs: 15_000 });
  });

  it('is down in quarantine', async () => {
    const redis = await server();
    const restartGuard = { maxTtl: '60s', bootstrap: true } as const;
    const app = await application({ redis: redis.url, restartGuard });
    await app.expectUp();
    await redis.command('FLUSHALL');
    await app.expectDown(/The lock store is in quarantine\./);
  });

  it('is down within the time limit of the check while the server is silent', async () => {
    const redis = await server();
    const app = await application({ redis: redis.url, nodeTimeout: '20s' });
    await app.expectUp();
    redis.freeze();
    const { status, locks, tookMs } = await app.probe({ timeout: '300ms' });
    expect([status, locks.message]).toEqual([503, expect.stringMatching(AWAY)]);
    expect(tookMs).toBeLessThan(300 + LATE_MS);
    expect((await app.probe()).tookMs).toBeLessThan(800 + LATE_MS);
    redis.thaw();
    await eventually(() => app.expectUp());
  });

  it('is down while the server is gone', async () => {
    const redis = await server();
    const app = await application({ redis: redis.url });
    await redis.kill();
    await eventually(() => app.expectDown(AWAY));
    await redis.restart();
    await eventually(() => app.expectUp());
  });
});

describe('checks that come together', () => {
  const load = async (redis: RedisServer, checks: () => Promise<unknown>): Promise<number> => {
    const sent = await redis.commandsSentDuring(checks);
    return sent.length;
  };

  it('cost as much as one', async () => {
    const redis = await server();
    const app = await application({ redis: redis.url, instance: false });
    await app.locks.health(); // the scripts are known by now
    const indicator = app.app.get(LockHealthIndicator);
    const one = await load(redis, () => indicator.check('locks'));
    const many = await load(redis, () =>
      Promise.all(Array.from({ length: 50 }, () => indicator.check('locks'))),
    );
    expect([one, many]).toEqual([one, one]);
    expect(one).toBeGreaterThan(2);
  });

  it('share one attempt also when those before them have timed out', async () => {
    const redis = await server();
    const app = await application({ redis: redis.url, nodeTimeout: '20s', instance: false });
    await app.locks.health();
    const indicator = app.app.get(LockHealthIndicator);
    const one = await load(redis, () => indicator.check('locks'));
    redis.freeze();
    for (let time = 0; time < 60; time += 1)
      expect(await indicator.check('locks', { timeout: 20 })).toMatchObject({
        locks: { status: 'down' },
      });
    const since = await redisStats(redis);
    await eventually(() => app.expectUp());
    expect((await redisStats(redis)) - since).toBeLessThan(4 * one);
  });

  /** How many TIME it was asked for: each look at the health of a server begins with one. */
  async function redisStats(redis: RedisServer): Promise<number> {
    redis.thaw();
    return (await redis.commandStats()).get('time') ?? 0;
  }
});

describe('the health of three masters', () => {
  async function three(options: LockModuleOptions = {}) {
    const servers = await Promise.all([server(), server(), server()]);
    const app = await application({ redis: servers.map(({ url }) => url), ...options });
    return { app, servers };
  }

  it('is degraded when a minority is silent, within the time limit of the check, and down when a majority is', async () => {
    const { app, servers } = await three({ nodeTimeout: '9s' });
    await app.expectUp();
    servers[0]?.freeze();
    const one = await app.probe({ timeout: '2s' });
    expect(one).toMatchObject({
      status: 200,
      locks: {
        status: DEGRADES ? 'degraded' : 'up',
        message:
          'Locks are granted. 1 of 3 nodes grant no locks (1 not reachable). The log of the application says why.',
        nodesGranting: 2,
        nodesTotal: 3,
      },
    });
    expect(one.tookMs).toBeLessThan(2_000 + LATE_MS);
    await (await app.locks.acquire('order:42', { wait: 0 })).release();
    await servers[1]?.command('CONFIG', 'SET', 'maxmemory', '1');
    await app.expectDown(
      /^No lock can be granted now\. 2 of 3 nodes grant no locks \(1 not reachable, 1 refusing to grant locks\)\./,
      { timeout: '2s' },
    );
    await servers[1]?.command('CONFIG', 'SET', 'maxmemory', '0');
    servers[0]?.thaw();
    await eventually(() => app.expectUp());
  });
});

describe('the health of a Cluster', () => {
  it('is down when one of its masters is dead and the others serve their slots', async () => {
    const cluster = await RedisCluster.start();
    ends.push(() => cluster.stop());
    await Promise.all(
      cluster.nodes.map((node) =>
        node.command('CONFIG', 'SET', 'cluster-require-full-coverage', 'no'),
      ),
    );
    const redis = new Cluster(cluster.startupNodes, { lazyConnect: true });
    ends.push(() => {
      redis.disconnect();
    });
    const app = await application({ redis, nodeTimeout: '500ms' });
    await app.expectUp();
    await (await cluster.masterOf('lock:order:42')).kill();
    const down = (): Promise<void> => app.expectDown(/1 of 3 nodes grant no locks/);
    await eventually(down, { withinMs: 10_000 });
    // Also when the client has taken it off its list.
    const until = performance.now() + 6_000;
    while (performance.now() < until) {
      expect((await app.locks.health()).hasQuorum).toBe(false);
      await sleep(50);
    }
    await down();
  }, 60_000);
});

describe('the health of a lock service', () => {
  it('is that of the service with the name', async () => {
    const [redis, other] = await Promise.all([server(), server()]);
    const app = await application({ redis: redis.url }, { name: 'jobs', redis: other.url });
    await other.command('CONFIG', 'SET', 'maxmemory', '1');
    expect((await app.probe({ name: 'jobs' })).status).toBe(503);
    await app.expectUp();
  });

  it('is down when it is closed', async () => {
    const app = await application({ store: 'memory' });
    await app.expectUp();
    await app.locks.shutdown(0);
    await app.expectDown(AWAY);
    expect(await app.locks.health()).toMatchObject({
      hasQuorum: false,
      nodes: [{ reachable: false, problem: 'the lock service is closed' }],
    });
  });

  it('is down when a driver does not answer in time', async () => {
    const silent = () => new Promise<never>(() => undefined);
    const app = await application({ store: { acquire: silent, extend: silent, release: silent } });
    const { locks } = await app.probe({ timeout: 50 });
    expect(locks).toMatchObject({ status: 'down', message: expect.stringMatching(AWAY) });
  });
});

describe('the body of a health check', () => {
  const shown = ({ text }: Probe): string[] =>
    [...text.matchAll(/127\.0\.0\.1|s3cret|locks:s|redis:\/\/|lock:|order:42|EVALSHA|user/gi)].map(
      ([found]) => found,
    );

  it('has no address, no user, no key and nothing that a server said', async () => {
    const redis = await server();
    await redis.command('ACL', 'SETUSER', 'locks', 'on', '>s3cret', '~*', '&*', '+@all');
    const app = await application({ redis: redis.url.replace('//', '//locks:s3cret@') });
    await redis.command('ACL', 'SETUSER', 'locks', '-evalsha');
    expect(shown(await app.probe())).toEqual([]);
    await redis.kill();
    await eventually(() => app.expectDown(AWAY));
    expect(shown(await app.probe())).toEqual([]);
  });

  it('has addresses and problems, but no password, when the details are asked for', async () => {
    const redis = await server();
    await redis.command('ACL', 'SETUSER', 'locks', 'on', '>s3cret', '~*', '&*', '+@all');
    const app = await application({ redis: redis.url.replace('//', '//locks:s3cret@') });
    await redis.command('ACL', 'SETUSER', 'locks', '-evalsha');
    const { text, locks } = await app.probe({ details: true });
    expect(locks.nodes).toMatchObject([
      {
        node: `127.0.0.1:${String(redis.port)}`,
        reachable: true,
        problem: expect.stringMatching(/NOPERM.*evalsha/i),
      },
    ]);
    expect(text).not.toContain('s3cret');
  });
});

describe('a check that is wrong', () => {
  it('names the lock service that does not exist', async () => {
    const { app } = await application({ store: 'memory' });
    const checking = app.get(LockHealthIndicator).check('locks', { name: 'jobs' });
    await expect(checking).rejects.toThrow(
      'found no lock service named "jobs". Import LockModule.forRoot',
    );
  });
});
