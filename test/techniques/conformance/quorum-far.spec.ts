import { sendOnce } from '../../support/own-connection.js';
import type { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { startServers, stopAll } from './backends.js';
import { storedKeys } from './stored-keys.js';
import { describeStore } from './suite.js';

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
