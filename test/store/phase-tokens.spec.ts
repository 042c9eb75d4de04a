import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { newOwnerToken } from '../../lib/store/owner-token.js';
import type { RedisLockStore } from '../../lib/store/redis/quorum/redis-lock-store.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { Locks } from '../support/locks.js';
import { RedisServer } from '../support/redis-server.js';
import { openStore, request } from './open-store.js';

let servers: readonly RedisServer[];

/** Each has one of the servers. */
let alone: readonly RedisLockStore[];

beforeAll(async () => {
  servers = await Promise.all([RedisServer.start(), RedisServer.start(), RedisServer.start()]);
  const opened = await Promise.all(servers.map(({ url }) => openStore({ redis: url })));
  alone = opened.map(({ store }) => store);
});

afterAll(async () => {
  await Promise.all(alone.map((store) => store.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

/** A reader at one server only, as the rest of a phase that began there earlier than at the others. Resolves with its fencing token. */
async function readAt(store: RedisLockStore, key: string): Promise<number> {
  const token = newOwnerToken(systemRuntime, { mode: 'shared' });
  const outcome = await store.acquire(request(key, { token }));
  return outcome.status === 'granted' ? outcome.fencingToken : Promise.reject(new Error(key));
}

describe('masters of which each names another fencing token for the present readers', () => {
  it.each(['waits', 'does not wait'])(
    'let in a reader that %s, with the largest, which later readers have as well',
    async (how) => {
      const key = `key-${how}`;
      const named: number[] = [];
      for (const store of alone) named.push(await readAt(store, key));
      const locks = new Locks({ redis: servers.map(({ url }) => url) });
      await locks.open();
      const wait = how === 'waits' ? '20s' : 0;
      const first = await locks.acquire(key, { mode: 'shared', wait });
      expect(first.fencingToken).toBe(Math.max(...named));
      const second = await locks.acquire(key, { mode: 'shared', wait: 0 });
      expect(second.fencingToken).toBe(first.fencingToken);
      await locks.shutdown(0);
    },
  );
});
