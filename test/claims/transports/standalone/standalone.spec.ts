import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ChildScript } from '../../../support/child-script.js';
import { Locks } from '../../../support/locks.js';
import { RedisServer } from '../../../support/redis-server.js';

describe('an application without a server', () => {
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
    new ChildScript(new URL('./application.ts', import.meta.url), [redis.url]).output;

  it('locks, gives all back when it is closed, and ends by itself', async () => {
    const lock = await locks.acquire('import:prices', { ttl: '1m' });
    expect(await run()).toBe('LOCK_NOT_ACQUIRED\n');
    await lock.release();
    expect(await run()).toBe('imported prices\n');
    expect((await locks.inspect('left')).held).toBe(false);
  }, 120_000); // two processes read a thousand files each
});
