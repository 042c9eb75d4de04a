/**
 * A process that takes a lock. `hold`: holds it until it is killed. `wait`: stands in line for it. `work`: takes it at
 * random as a reader or a writer, or with the limit of three, for as many ms as `options.ttl`, and counts in Redis who
 * is inside. Arguments: what, options of acquire as JSON, URLs.
 */
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AcquireOptions } from '../../lib/options/acquire-options.js';
import { Locks } from '../support/locks.js';

const [what = '', json = '{}', url = ''] = process.argv.slice(2);
const options = JSON.parse(json) as AcquireOptions;
const redis = new Redis(url);
const locks = new Locks({ redis: url });
await locks.open();

/** Answers who is inside, as numbers of readers, writers and limited ones. */
const COUNT = `redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2]) return redis.call('HMGET', KEYS[1], 'shared', 'exclusive', 'limit')`;

async function once(until: number): Promise<void> {
  const kinds = ['shared', 'shared', 'exclusive', 'limit'] as const;
  const kind = kinds[Math.floor(Math.random() * 4)] ?? 'shared';
  const mode = kind === 'limit' ? { limit: 3 } : { mode: kind };
  await locks.run('key', { ...mode, wait: '60s' }, async () => {
    const inside = (await redis.eval(COUNT, 1, 'inside', kind, 1)) as (string | null)[];
    const [readers = 0, writers = 0, limited = 0] = inside.map(Number);
    const fits = [readers, writers, limited].filter((count) => count > 0).length === 1;
    if (!fits || writers > 1 || limited > 3) await redis.rpush('wrong', JSON.stringify(inside));
    await redis.hincrby('most', kind, 0);
    if (Math.max(readers, limited) > 1) await redis.hincrby('most', kind, 1);
    await sleep(Math.random() * 5);
    await redis.eval(COUNT, 1, 'inside', kind, -1);
    await redis.hincrby('done', kind, 1);
  });
  if (Date.now() < until) await once(until);
}

if (what === 'work') {
  const until = Date.now() + Number(options.ttl);
  await Promise.all(Array.from({ length: 8 }, () => once(until)));
  await locks.shutdown();
  redis.disconnect();
} else {
  if (what === 'hold') await locks.acquire('key', options);
  else void locks.acquire('key', { ...options, wait: '60s' });
  await redis.set('child', what);
  await sleep(60_000);
}
