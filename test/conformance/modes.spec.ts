import { Cluster } from 'ioredis';
import { MemoryLockStore } from 'nestjs-holdfast';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { describeModes } from './modes-suite.js';
import { storedKeys } from './stored-keys.js';
import type { Backend } from './suite.js';

/** So many masters, the last of which have been dead since before the services start. */
async function masters(count: number, dead = 0): Promise<Backend> {
  const servers = await Promise.all(Array.from({ length: count }, () => RedisServer.start()));
  const alive = servers.slice(0, count - dead);
  await Promise.all(servers.slice(alive.length).map((server) => server.kill()));
  const [only] = servers;
  return {
    options: { redis: count === 1 ? only!.url : servers.map(({ url }) => url) },
    storedKeys: () => storedKeys(alive),
    close: async () => {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

const ONE = { limits: true, inOrder: true };
const SEVERAL = { limits: false, inOrder: false };

describeModes('a memory store', ONE, () =>
  Promise.resolve({ options: { store: new MemoryLockStore() }, close: () => Promise.resolve() }),
);
describeModes('one Redis', ONE, () => masters(1));
describeModes('two masters', SEVERAL, () => masters(2));
describeModes('three masters', SEVERAL, () => masters(3));
describeModes('three masters of which one is dead', SEVERAL, () => masters(3, 1));
describeModes('five masters of which two are dead', SEVERAL, () => masters(5, 2));

describeModes('a Redis Cluster of three masters', ONE, async () => {
  const cluster = await RedisCluster.start();
  const client = new Cluster(cluster.startupNodes, { lazyConnect: true });
  return {
    options: { redis: client },
    storedKeys: () => storedKeys(cluster.nodes),
    close: async () => {
      client.disconnect();
      await cluster.stop();
    },
  };
});
