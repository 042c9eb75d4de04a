import { sendOnce } from '../support/own-connection.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { storedKeys } from './stored-keys.js';
import { describeStore, type Backend } from './suite.js';

const startServers = (count: number): Promise<RedisServer[]> =>
  Promise.all(Array.from({ length: count }, () => RedisServer.start()));

const stopAll = async (servers: readonly RedisServer[]): Promise<void> => {
  await Promise.all(servers.map((server) => server.stop()));
};

/** So many masters, the last of which have been dead since before the services start. */
async function masters(count: number, dead = 0): Promise<Backend> {
  const servers = await startServers(count);
  const alive = servers.slice(0, count - dead);
  await Promise.all(servers.slice(alive.length).map((server) => server.kill()));
  return {
    options: { redis: servers.map(({ url }) => url) },
    storedKeys: () => storedKeys(alive),
    close: () => stopAll(servers),
  };
}

describeStore('three masters', () => masters(3));
describeStore('one master in a list', () => masters(1));
describeStore('two masters', () => masters(2));
describeStore('three masters of which one is dead', () => masters(3, 1));
describeStore('five masters of which two are dead', () => masters(5, 2));

describeStore('three masters of which one is silent', async () => {
  const servers = await startServers(3);
  const [silent, ...others] = servers as [RedisServer, ...RedisServer[]];
  silent.freeze();
  return {
    // Opening a service and inspecting a key ask every node, and wait for this one so long.
    options: { redis: servers.map(({ url }) => url), nodeTimeout: 300 },
    storedKeys: () => storedKeys(others), // nobody can look inside the silent one
    close: async () => {
      silent.thaw();
      await stopAll(servers);
    },
  };
});

describeStore('three masters of which one is 100 ms away', async () => {
  const servers = await startServers(3);
  const [far, ...others] = servers as [RedisServer, ...RedisServer[]];
  const proxy = await TcpProxy.start(far.port);
  proxy.delay(50);
  return {
    options: { redis: [`redis://127.0.0.1:${proxy.port}`, ...others.map(({ url }) => url)] },
    storedKeys: async () => {
      // Two of three decide: what was sent to the third may still be on its way. This arrives behind it.
      await sendOnce(proxy.port, ['PING']);
      return storedKeys(servers);
    },
    close: async () => {
      await proxy.stop();
      await stopAll(servers);
    },
  };
});
