import { Cluster } from 'ioredis';
import { MemoryLockStore } from 'nestjs-holdfast';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { describeOnce } from './once-suite.js';
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

describeOnce('a memory store', () =>
  Promise.resolve({
    options: { store: new MemoryLockStore() },
    close: () => Promise.resolve(),
  }),
);
describeOnce('one Redis', () => masters(1));
describeOnce('three masters', () => masters(3));
describeOnce('three masters of which one is dead', () => masters(3, 1));

describeOnce('a Redis Cluster of three masters', async () => {
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
