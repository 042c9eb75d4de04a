/**
 * One of several processes that want two keys each, which others want too: `several-keys.ts <redis url> <processes> <rounds> <key> <key>`.
 * Beside the caller of both keys, one caller wants only the first. Each leaves in Redis, of each key, how many were inside and the fencing
 * tokens, as `<inside> <token>` in the list `log:<key>`. Prints how many locks it had.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Locks } from '../../support/locks.js';

const [url = '', processes, rounds, one = '', other = ''] = process.argv.slice(2);

const ENTER = `
for i, key in ipairs(KEYS) do
  redis.call('RPUSH', 'log:' .. key, redis.call('INCR', 'inside:' .. key) .. ' ' .. ARGV[1])
end`;

const locks = new Locks({ redis: url, ttl: '1m', wait: '1m' });
const witness = new Redis(url);
let had = 0;

async function lockAgainAndAgain(keys: readonly string[]): Promise<void> {
  for (let round = 0; round < Number(rounds); round += 1) {
    const lock = await locks.acquire(keys);
    await witness.eval(ENTER, keys.length, ...keys, lock.fencingToken);
    had += 1;
    await Promise.all(keys.map((key) => witness.decr(`inside:${key}`)));
    await lock.release();
    if (round % 3 === 0) await sleep(1); // not always in step
  }
}

await locks.open();
await witness.incr('ready');
while ((await witness.get('ready')) !== processes) await sleep(5);
await Promise.all([lockAgainAndAgain([one, other]), lockAgainAndAgain([one])]);
await locks.shutdown();
witness.disconnect();
console.log(had);
