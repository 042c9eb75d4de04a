/**
 * Takes so many places in the lines of keys, each with a service of its own, as so many processes would: `many-places.ts <redis url> <count>
 * <key>…`. Adds `ready` to the list `places` in Redis when all of them wait. To be killed.
 */
import { Redis } from 'ioredis';
import { Locks } from '../../support/locks.js';

const [url = '', count, ...keys] = process.argv.slice(2);

/** More at once would be in each other's way. */
const AT_ONCE = 50;

let left = Number(count) * keys.length;
const redis = new Redis(url);

async function takePlaces(): Promise<void> {
  const locks = new Locks({ redis: url, nodeTimeout: '30s' });
  await locks.open();
  await new Promise<void>((resolve) => {
    let waiting = 0;
    locks.on('waiting', () => {
      waiting += 1;
      if (waiting === keys.length) resolve();
    });
    for (const key of keys) void locks.acquire(key, { wait: 'forever' });
  });
  left -= keys.length;
}

for (let started = 0; started < Number(count); started += AT_ONCE)
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, Number(count) - started) }, takePlaces));
if (left === 0) await redis.rpush('places', 'ready');
