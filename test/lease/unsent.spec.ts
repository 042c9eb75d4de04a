import { describe, expect, it } from '@jest/globals';
import { RedisLockStore } from '../../lib/store/redis/quorum/redis-lock-store.js';
import { freePort } from '../support/free-port.js';

const request = (key: string) => ({
  key,
  token: 'holdfast:token',
  ttlMs: 1_000,
});

function storeAt(redis: string): RedisLockStore {
  return new RedisLockStore({
    redis: [redis],
    keyPrefix: 'lock:',
    nodeTimeoutMs: 200,
    fenceKeepMs: 1_000,
    warn: () => undefined,
  });
}

describe('a request that never left the process', () => {
  it('is said to be one when Redis cannot be reached', async () => {
    const store = storeAt(`redis://127.0.0.1:${String(await freePort())}`);
    for (let i = 0; i < 3; i += 1)
      expect(await store.acquire(request('key'))).toMatchObject({
        status: 'unavailable',
        sent: false,
      });
    await store.close();
  });
});
