import type { RedisServer } from '../../support/redis-server.js';
import type { StoredKey } from './suite.js';

/** In one request: a server has hundreds of fences after a while. */
const LIST = `
local list = {}
for i, name in ipairs(redis.call('KEYS', '*')) do
  local text = redis.pcall('GET', name)
  list[i] = { name, redis.call('PTTL', name), type(text) == 'string' and text or '' }
end
return list`;

/** Everything that is in these servers. */
export async function storedKeys(servers: readonly RedisServer[]): Promise<readonly StoredKey[]> {
  const lists = await Promise.all(servers.map((server) => server.command('EVAL', LIST, 0)));
  return (lists as [string, number, string][][])
    .flat()
    .map(([name, ttlMs, text]) => ({ name, ttlMs, text }))
    .filter(({ ttlMs }) => ttlMs !== -2 && ttlMs !== 0); // it has expired, or does so in this millisecond
}
