import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ChildScript } from '../../../support/child-script.js';
import { Locks } from '../../../support/locks.js';
import { RedisServer } from '../../../support/redis-server.js';

describe('a command of nest-commander', () => {
  let redis: RedisServer;
  let locks: Locks;

  beforeAll(async () => {
    redis = await RedisServer.start();
    locks = new Locks({ redis: redis.url });
    await locks.open();
  });
  afterAll(async () => {
    await locks.shutdown();
    await redis.stop();
  });

  const run = (): Promise<string> =>
    new ChildScript(new URL('./application.ts', import.meta.url), [redis.url, 'close', 'may'])
      .output;

  it('is refused while another process has its key, and ends by itself both times', async () => {
    const lock = await locks.acquire('month:may', { ttl: '1m' });
    await expect(run()).rejects.toThrow(/^Ended with 1: Lock "month:may" could not be acquired/);
    await lock.release();
    expect(await run()).toBe('closed may\n');
  }, 120_000); // two processes read a thousand files each
});
