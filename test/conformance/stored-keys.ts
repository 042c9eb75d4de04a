import type { RedisServer } from '../support/redis-server.js';
import type { StoredKey } from './suite.js';

/** In one request: a server has hundreds of fences after a while. */
const LIST = `
local list = {}
for i, name in ipairs(redis.call('KEYS', '*')) do list[i] = { name, redis.call('PTTL', name) } end
return list`;

/** Everything that is in these servers. */
export async function storedKeys(servers: readonly RedisServer[]): Promise<readonly StoredKey[]> {
  const lists = await Promise.all(servers.map((server) => server.command('EVAL', LIST, 0)));
  return (lists as [string, number][][])
    .flat()
    .map(([name, ttlMs]) => ({ name, ttlMs }))
    .filter(({ ttlMs }) => ttlMs !== -2 && ttlMs !== 0); // it has expired, or does so in this millisecond
}
