import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { LockService } from 'nestjs-holdfast';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import { eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { openStore, request } from './open-store.js';

let server: RedisServer;
let redis: Redis;
let ears: Redis;

beforeAll(async () => {
  server = await RedisServer.start();
  redis = new Redis(server.url);
  ears = new Redis(server.url);
});

beforeEach(async () => {
  await redis.flushall();
  ears.removeAllListeners('message');
  await ears.unsubscribe();
});

afterAll(async () => {
  redis.disconnect();
  ears.disconnect();
  await server.stop();
});

const names = (key: string): string[] => [
  `lock:${key}`,
  `{lock:${key}}:fence`,
  `{lock:${key}}:queue`,
];

const inboxes = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${name}-${String(index)}`);

/** Stands in line at a key, in this order. */
async function stand(key: string, members: readonly string[]): Promise<void> {
  const [main = '', , queue = ''] = names(key);
  await redis.set(main, 'mine');
  await redis.zadd(queue, ...members.flatMap((member, place) => [place, member]));
}

const release = (keys: readonly string[], ...more: string[]): Promise<unknown> => {
  const all = keys.flatMap(names);
  return redis.eval(releaseScript.lua, all.length, ...all, 'mine', more[0] ?? '', '', 600_000, '');
};

const left = (key: string): Promise<number> => redis.zcard(`{lock:${key}}:queue`);

async function hearing(members: readonly string[]): Promise<string[]> {
  const heard: string[] = [];
  await ears.subscribe(...members);
  ears.on('message', (channel: string) => heard.push(channel));
  return heard;
}

describe('a release with dead processes in line', () => {
  it('wakes the living behind them at once, and takes the dead out of the line', async () => {
    const [holder, waiter] = [0, 1].map(() => new LockService({ redis: server.url, ttl: '1m' }));
    if (holder === undefined || waiter === undefined) throw new Error('no services');
    const lock = await holder.acquire('key');
    await redis.zadd(
      '{lock:key}:queue',
      ...inboxes('dead', 100).flatMap((inbox, place) => [place, inbox]),
    );
    const waiting = waiter.acquire('key', { wait: '20s' });
    await eventually(async () => (await left('key')) === 101);
    const releasedAt = performance.now();
    await lock.release();
    await (await waiting).release();
    expect(performance.now() - releasedAt).toBeLessThan(2_000);
    expect(await left('key')).toBe(0);
    await Promise.all([holder.shutdown(), waiter.shutdown()]);
  });

  it('goes on until 100 have heard it, and leaves the others in line', async () => {
    const living = inboxes('alive', 150);
    const mixed = living.flatMap((inbox) => [`dead before ${inbox}`, inbox]);
    const heard = await hearing(living);
    await stand('a', mixed);
    expect(await release(['a'])).toBe(1);
    await eventually(() => heard.length >= 100);
    await ears.ping();
    expect(heard).toEqual(living.slice(0, 100));
    expect(await redis.zrange('{lock:a}:queue', '0', '-1')).toEqual(mixed.slice(200));
  });

  it('tells at most 1,000 of them in one script, but at every key as many as are woken', async () => {
    await stand('a', inboxes('dead', 1_200));
    await stand('b', inboxes('dead', 300));
    expect(await release(['a', 'b'])).toBe(2);
    expect([await left('a'), await left('b')]).toEqual([200, 200]);
  });

  it('on a Cluster tells everybody up to 1,000: PUBLISH counts the subscribers of one node', async () => {
    const living = inboxes('alive', 150);
    const heard = await hearing(living);
    await stand('a', [...living, ...inboxes('elsewhere', 950)]);
    expect(await release(['a'], '1')).toBe(1);
    await eventually(() => heard.length === 150);
    expect(await left('a')).toBe(100);
  });

  it('knows that it is on a Cluster', async () => {
    const cluster = await RedisCluster.start({ masters: 2 });
    const client = new Cluster(cluster.startupNodes, { lazyConnect: true });
    const { store } = await openStore({ redis: client });
    const lease = request('key');
    await store.acquire(lease);
    await store.release(lease); // the server has the script from here on
    await store.acquire(lease);
    const node = await cluster.masterOf('lock:key');
    const commands = await node.commandsSentDuring(async () => {
      expect(await store.release(lease)).toEqual({ status: 'released' });
    });
    const released = commands.filter(([, sha]) => sha === releaseScript.sha);
    expect(released.map((command) => command.slice(-5, -3))).toEqual([[lease.token, '1']]);
    await store.close();
    client.disconnect();
    await cluster.stop();
  }, 60_000);
});
