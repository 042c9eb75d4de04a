import { RedisServer } from '../support/redis-server.js';
import { storedKeys } from './stored-keys.js';
import { describeStore } from './suite.js';

describeStore('one Redis', async () => {
  const server = await RedisServer.start();
  return {
    options: { redis: server.url },
    storedKeys: () => storedKeys([server]),
    close: () => server.stop(),
  };
});
