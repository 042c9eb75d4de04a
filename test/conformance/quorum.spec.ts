import { RedisServer } from '../support/redis-server.js';
import { storedKeys } from './stored-keys.js';
import { describeStore } from './suite.js';

describeStore('three masters', async () => {
  const servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
  return {
    options: { redis: servers.map(({ url }) => url) },
    storedKeys: () => storedKeys(servers),
    close: async () => {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
});
