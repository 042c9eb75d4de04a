import { Cluster } from 'ioredis';
import { MemoryLockStore } from '../../../lib/store/memory/memory-lock-store.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { RedisServer } from '../../support/redis-server.js';
import { storedKeys } from './stored-keys.js';
import type { Backend } from './suite.js';
import { storeOption } from '../../../lib/options/location.js';

export const memory = (): Promise<Backend> =>
  Promise.resolve({
    options: { store: storeOption(new MemoryLockStore()) },
    close: () => Promise.resolve(),
  });

export async function oneRedis(): Promise<Backend> {
  const server = await RedisServer.start();
  return {
    options: { redis: server.url },
    storedKeys: () => storedKeys([server]),
    close: () => server.stop(),
  };
}

export const startServers = (count: number): Promise<RedisServer[]> =>
  Promise.all(Array.from({ length: count }, () => RedisServer.start()));

export const stopAll = async (servers: readonly RedisServer[]): Promise<void> => {
  await Promise.all(servers.map((server) => server.stop()));
};

/** So many masters, the last of which have been dead since before the services start. */
export async function masters(count: number, dead = 0): Promise<Backend> {
  const servers = await startServers(count);
  const alive = servers.slice(0, count - dead);
  await Promise.all(servers.slice(alive.length).map((server) => server.kill()));
  return {
    options: { redis: servers.map(({ url }) => url) },
    storedKeys: () => storedKeys(alive),
    close: () => stopAll(servers),
  };
}

export async function threeMasterCluster(): Promise<Backend> {
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
}
