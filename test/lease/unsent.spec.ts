import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Cluster } from 'ioredis';
import type { Unavailable, LockStore } from '../../lib/store/lock-store.js';
import { RedisConnection, type Reply } from '../../lib/store/redis/client/redis-connection.js';
import { redisLockStore } from '../../lib/store/redis/redis-lock-store.js';
import { freePort } from '../support/free-port.js';
import { OUTAGE } from '../support/scripted-store.js';

const UNSENT: Unavailable = { ...OUTAGE, sent: false };
const request = (keys: readonly string[]) => ({
  keys,
  token: 'holdfast:token',
  ttlMs: 1_000,
});

function storeAt(redis: string | Cluster): LockStore {
  return redisLockStore({
    redis: [redis],
    keyPrefix: 'lock:',
    nodeTimeoutMs: 200,
    fenceKeepMs: 1_000,
    warn: () => undefined,
  });
}

describe('a request that never left the process', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('is said to be one when Redis cannot be reached', async () => {
    const store = storeAt(`redis://127.0.0.1:${String(await freePort())}`);
    for (let i = 0; i < 3; i += 1)
      expect(await store.acquire(request(['key']))).toMatchObject({
        status: 'unavailable',
        sent: false,
      });
    await store.close();
  });

  it.each<[string, readonly Reply[], boolean]>([
    ['the first slot', [UNSENT], true],
    ['the second slot', [granted(1), UNSENT, answered(1)], false],
    ['the undoing', [granted(1), { ...OUTAGE }, UNSENT], false],
    ['the raising of a fence', [granted(1), granted(2), UNSENT, answered(1), answered(1)], false],
  ])('on a Cluster leaves nothing only where no other was sent: %s', async (_, replies, unsent) => {
    const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
    const left = [...replies];
    const run = jest
      .spyOn(RedisConnection.prototype, 'run')
      .mockImplementation(() => Promise.resolve(left.shift() ?? OUTAGE));
    const store = storeAt(cluster);
    const outcome = await store.acquire(request(['a', 'b']));
    expect(run).toHaveBeenCalledTimes(replies.length);
    expect(outcome).toEqual(unsent ? UNSENT : OUTAGE);
    await store.close();
    cluster.disconnect();
  });
});

function granted(fencingToken: number): Reply {
  return answered([1, 1_000_000, fencingToken, 0]);
}

function answered(value: unknown): Reply {
  return { status: 'answered', value };
}
