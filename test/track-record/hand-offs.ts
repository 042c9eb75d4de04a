/**
 * One of several processes that pass a lock on: `hand-offs.ts <redis url> <hand-offs in all>`. Prints what it saw as JSON.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockService } from 'nestjs-holdfast';

const [url = '', total = ''] = process.argv.slice(2);

/** Whoever waits for the end of a lease waits this long: nobody should. */
const TTL_MS = 60_000;

/** Answers how many are inside, and how often one process took over from another. */
const ENTER = `
local handOffs = tonumber(redis.call('GET', 'hand-offs') or 0)
if redis.call('GETSET', 'last holder', ARGV[1]) ~= ARGV[1] then handOffs = redis.call('INCR', 'hand-offs') end
return { redis.call('INCR', 'inside'), handOffs }`;

const locks = new LockService({ redis: url, ttl: TTL_MS, wait: TTL_MS });
const witness = new Redis(url);
const report = { locked: 0, overlaps: 0, longestWaitMs: 0 };

for (let goesOn = true; goesOn;) {
  const since = performance.now();
  const lock = await locks.acquire('passed on');
  report.longestWaitMs = Math.max(report.longestWaitMs, performance.now() - since);
  const [inside, handOffs] = (await witness.eval(ENTER, 0, process.pid)) as [number, number];
  if (inside !== 1) report.overlaps += 1;
  report.locked += 1;
  goesOn = handOffs < Number(total);
  await witness.decr('inside');
  await lock.release();
  await sleep(1); // lets another process have it
}

await locks.shutdown();
witness.disconnect();
console.log(JSON.stringify(report));
