/**
 * A process that is asked for work: tells in Redis that it has begun, and then hangs, in all attempts before the last one, or until
 * it is let go. Arguments: URL of Redis, its name, `hang` or `pause`; or `extend`: it extends its lock, and hangs in its only attempt.
 */
import { Redis } from 'ioredis';
import { Locks } from '../support/locks.js';

const [url = '', name = '', how] = process.argv.slice(2);
const redis = new Redis(url);
const locks = new Locks({ redis: url });
await locks.open();
const options =
  how === 'extend'
    ? ({ attempts: 1, ttl: '1s', keepDone: '1s' } as const)
    : ({ attempts: 3, ttl: '1s', wait: '60s' } as const);
const { outcome, attempts } = await locks.runOnce(
  'work',
  options,
  async ({ attempt, isLastAttempt, lock }) => {
    if (how === 'extend') await lock.extend('6s');
    await redis.rpush('begun', JSON.stringify({ name, pid: process.pid, attempt }));
    if (how === 'extend' || (how === 'hang' && !isLastAttempt)) await new Promise(() => undefined);
    if (how === 'pause' && attempt === 1) await redis.blpop('go', 0);
    await redis.rpush('effects', name);
  },
);
await redis.rpush('results', JSON.stringify({ name, outcome, attempts }));
await locks.shutdown();
redis.disconnect();
