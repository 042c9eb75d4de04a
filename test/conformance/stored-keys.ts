import type { RedisServer } from '../support/redis-server.js';
import type { StoredKey } from './suite.js';

/** Everything that is in these servers. */
export async function storedKeys(servers: readonly RedisServer[]): Promise<readonly StoredKey[]> {
  const lists = await Promise.all(
    servers.map(async (server) => {
      const names = (await server.command('KEYS', '*')) as string[];
      return Promise.all(
        names.map(async (name) => ({ name, ttlMs: Number(await server.command('PTTL', name)) })),
      );
    }),
  );
  // -2: it has expired in between.
  return lists.flat().filter(({ ttlMs }) => ttlMs !== -2);
}
