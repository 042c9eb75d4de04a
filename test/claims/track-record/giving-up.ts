/**
 * Many callers of one key, in many services, who give up together when this process gets SIGUSR2: `giving-up.ts <redis url> <services>
 * <callers>`.
 *
 * In database 1 it takes the key of each round (list `rounds`; an empty one ends the process). It adds `waiting` to the list `crowd` when all of
 * them wait, and the fencing tokens that were granted, as JSON, when all of them have an answer.
 */
import { Redis } from 'ioredis';
import { Locks } from '../../support/locks.js';

const [url = '', services, callers] = process.argv.slice(2);
const redis = new Redis(url, { db: 1 });
const crowd = Array.from({ length: Number(services) }, () => new Locks({ redis: url }));
let waiting = 0;
let leaving = new AbortController();

process.on('SIGUSR2', () => {
  leaving.abort();
});

async function call(key: string, locks: Locks, granted: number[]): Promise<void> {
  const { signal } = leaving;
  const lock = await locks.acquire(key, { wait: '1m', signal }).catch(() => undefined);
  if (lock !== undefined) granted.push(lock.fencingToken);
  await lock?.release();
}

for (const locks of crowd) {
  await locks.open();
  locks.on('waiting', () => {
    waiting += 1;
    if (waiting === Number(callers)) void redis.rpush('crowd', 'waiting');
  });
}
for (;;) {
  const key = await redis.lpop('rounds');
  if (key === '') break;
  if (key === null) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    continue;
  }
  [waiting, leaving] = [0, new AbortController()];
  const granted: number[] = [];
  const calls = Array.from({ length: Number(callers) }, (_, index) =>
    call(key, crowd[index % crowd.length]!, granted),
  );
  await Promise.all(calls);
  await redis.rpush('crowd', JSON.stringify(granted));
}
await Promise.all(crowd.map((locks) => locks.shutdown()));
redis.disconnect();
