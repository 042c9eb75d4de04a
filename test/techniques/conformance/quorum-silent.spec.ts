import type { RedisServer } from '../../support/redis-server.js';
import { startServers, stopAll } from './backends.js';
import { storedKeys } from './stored-keys.js';
import { describeStore } from './suite.js';

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
