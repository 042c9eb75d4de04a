import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { LockService, type LockModuleOptions } from 'nestjs-holdfast';
import { eventually } from '../../support/eventually.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { RedisServer, type RedisServerOptions } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

/** Clock and client are of one machine; this much may pass between two readings on a busy one. */
const SAME_CLOCK_MS = 250;
const NODE_TIMEOUT_MS = 700;

let ends: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  Logger.overrideLogger(false);
});

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});

async function start(options: RedisServerOptions = {}): Promise<RedisServer> {
  const server = await RedisServer.start(options);
  ends.push(() => server.stop());
  return server;
}

async function opened(options: LockModuleOptions): Promise<LockService> {
  const locks = new LockService({ nodeTimeout: NODE_TIMEOUT_MS, ...options });
  ends.push(() => locks.shutdown(0));
  await locks.open();
  return locks;
}

const nameOf = ({ port }: { readonly port: number }): string => `127.0.0.1:${String(port)}`;

const well = (server: { readonly port: number }): object => ({
  node: nameOf(server),
  reachable: true,
  latencyMs: expect.any(Number),
  clockOffsetMs: expect.any(Number),
  quarantinedForMs: 0,
});

/** With `since`, if the service has noticed it before. */
const gone = (server: { readonly port: number }, problem: RegExp): unknown =>
  expect.objectContaining({
    node: nameOf(server),
    reachable: false,
    quarantinedForMs: 0,
    problem: expect.stringMatching(problem),
  });

describe('the health of one Redis', () => {
  it('is its latency and clock', async () => {
    const server = await start();
    const locks = await opened({ redis: server.url });
    const health = await locks.health();
    expect(health).toEqual({ nodes: [well(server)], quorum: 1, hasQuorum: true });
    const { latencyMs, clockOffsetMs } = health.nodes[0] ?? {};
    expect(latencyMs).toBeGreaterThan(0);
    expect(latencyMs).toBeLessThan(NODE_TIMEOUT_MS);
    expect(Math.abs(Number(clockOffsetMs))).toBeLessThan(SAME_CLOCK_MS);
  });

  it('tells a way that is long, which does not look like a clock that is wrong', async () => {
    const server = await start();
    const way = await TcpProxy.start(server.port);
    ends.push(() => way.stop());
    const locks = await opened({ redis: `redis://127.0.0.1:${String(way.port)}` });
    way.delay(150);
    const { nodes } = await locks.health();
    expect(nodes[0]?.latencyMs).toBeGreaterThanOrEqual(295);
    expect(Math.abs(Number(nodes[0]?.clockOffsetMs))).toBeLessThan(SAME_CLOCK_MS);
  });

  it('tells that it is gone, and that it is there again', async () => {
    const server = await start();
    const locks = await opened({ redis: server.url });
    await server.kill();
    await eventually(async () => {
      expect(await locks.health()).toEqual({
        nodes: [gone(server, /ECONNREFUSED/)],
        quorum: 1,
        hasQuorum: false,
      });
    });
    await server.restart();
    await eventually(async () => {
      expect(await locks.health()).toMatchObject({ nodes: [well(server)], hasQuorum: true });
    });
  });

  it('tells a refusal without the password', async () => {
    const server = await start();
    const redis = `redis://:s3cret@127.0.0.1:${String(server.port)}`;
    await server.command('ACL', 'SETUSER', 'default', 'on', 'resetpass', '>another');
    const locks = await opened({ redis });
    const { nodes, hasQuorum } = await locks.health();
    expect(nodes).toEqual([gone(server, /WRONGPASS|NOAUTH/)]);
    expect(nodes[0]).toMatchObject({
      since: expect.any(Date),
      remedy: 'Check the user name and password in option "redis".',
    });
    expect(hasQuorum).toBe(false);
    expect(JSON.stringify(nodes)).not.toContain('s3cret');
  });
});

describe('the health of three masters', () => {
  it('tells of each, and of the majority, while one after the other fails', async () => {
    const servers = await Promise.all([start(), start(), start()]);
    const [first, second, third] = servers;
    const locks = await opened({ redis: servers.map(({ url }) => url) });
    expect(await locks.health()).toEqual({
      nodes: servers.map(well),
      quorum: 2,
      hasQuorum: true,
    });

    third.freeze();
    const since = performance.now();
    expect(await locks.health()).toEqual({
      nodes: [well(first), well(second), gone(third, /no answer within 700 ms/)],
      quorum: 2,
      hasQuorum: true,
    });
    expect(performance.now() - since).toBeLessThan(NODE_TIMEOUT_MS + 1_000);

    await second.kill();
    await eventually(async () => {
      expect(await locks.health()).toEqual({
        nodes: [well(first), gone(second, /ECONNREFUSED/), gone(third, /no answer|connect/)],
        quorum: 2,
        hasQuorum: false,
      });
    });

    third.thaw();
    await eventually(async () => {
      expect(await locks.health()).toMatchObject({
        nodes: [well(first), { reachable: false }, well(third)],
        hasQuorum: true,
      });
    });
  });

  it('does not count nodes that are in quarantine', async () => {
    const servers = await Promise.all([start(), start(), start()]);
    const locks = await opened({
      redis: servers.map(({ url }) => url),
      restartGuard: { maxTtl: '60s', bootstrap: true },
    });
    expect((await locks.health()).hasQuorum).toBe(true);
    await servers[0]?.command('FLUSHALL');
    const one = await locks.health();
    expect(one.hasQuorum).toBe(true);
    const [left, ...others] = one.nodes.map(({ quarantinedForMs }) => quarantinedForMs);
    expect(left).toBeGreaterThan(50_000);
    expect(left).toBeLessThanOrEqual(60_000);
    expect(others).toEqual([0, 0]);
    await servers[1]?.command('FLUSHALL');
    const two = await locks.health();
    expect(two.hasQuorum).toBe(false);
    expect(two.nodes.map(({ reachable }) => reachable)).toEqual([true, true, true]);
  });

  it('is told before the service is opened, too', async () => {
    const server = await start();
    const locks = new LockService({ redis: server.url });
    ends.push(() => locks.shutdown(0));
    expect((await locks.health()).nodes).toEqual([well(server)]);
  });
});

describe('the health of a Cluster', () => {
  it('is that of all its masters, which have to be there all', async () => {
    const cluster = await RedisCluster.start();
    ends.push(() => cluster.stop());
    const client = new Cluster(cluster.startupNodes, { lazyConnect: true });
    ends.push(async () => client.disconnect());
    const locks = await opened({ redis: client });
    const byName = (nodes: readonly { readonly node: string }[]): unknown[] =>
      nodes.toSorted((a, b) => a.node.localeCompare(b.node));
    const masters = cluster.nodes.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)));

    const health = await locks.health();
    expect(byName(health.nodes)).toEqual(masters.map(well));
    expect(health).toMatchObject({ quorum: 1, hasQuorum: true });
    for (const { clockOffsetMs } of health.nodes) {
      expect(Math.abs(Number(clockOffsetMs))).toBeLessThan(SAME_CLOCK_MS);
    }

    const [frozen, ...others] = masters as [RedisServer, ...RedisServer[]];
    frozen.freeze();
    const one = await locks.health();
    expect(byName(one.nodes)).toEqual([gone(frozen, /no answer/), ...others.map(well)]);
    expect(one.hasQuorum).toBe(false);
    frozen.thaw();
  }, 60_000);

  it('is an outage of the whole where no node can be reached', async () => {
    const client = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
    ends.push(async () => client.disconnect());
    const { nodes, quorum, hasQuorum } = await (await opened({ redis: client })).health();
    expect(nodes).toEqual([
      {
        node: 'cluster 127.0.0.1:1',
        reachable: false,
        quarantinedForMs: 0,
        problem: expect.any(String),
        since: expect.any(Date),
      },
    ]);
    expect([quorum, hasQuorum]).toEqual([1, false]);
  });
});

describe('the health of the store in memory', () => {
  const HEALTHY = {
    nodes: [
      {
        node: 'store',
        reachable: true,
        latencyMs: expect.any(Number),
        quarantinedForMs: 0,
      },
    ],
    quorum: 1,
    hasQuorum: true,
  };

  it('is that it answers', async () => {
    expect(await (await opened({ store: 'memory' })).health()).toEqual(HEALTHY);
  });
});
