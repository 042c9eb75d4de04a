/**
 * One of several processes that pass a lock on:
 * `hand-offs.ts <redis url> <key> <processes> <callers of this one> <hand-offs in all> <options of the service as JSON>`.
 *
 * Begins when all processes are there. Whoever has the lock adds to the list `log`: how many are inside, the owner token in Redis, its own
 * pid and fencing token, and who stands in line, one member after the other. Prints how long its callers waited at the most.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { LockModuleOptions } from '../../../lib/options/lock-module-options.js';
import { Locks } from '../../support/locks.js';

const [url = '', key = '', processes, callers, total, options = '{}'] = process.argv.slice(2);

/** Whoever waits for the end of a lease waits this long: nobody should. */
const TTL_MS = 60_000;

/** Answers how many hand-offs there have been. A turn of a caller of the same process counts as one. */
const ENTER = `
local inside, holder = redis.call('INCR', 'inside'), redis.call('GET', KEYS[1])
local line = table.concat(redis.call('ZRANGE', KEYS[2], 0, -1), ',')
return redis.call('RPUSH', 'log', table.concat({ inside, holder, ARGV[1], ARGV[2], line }, '|'))`;

const locks = new Locks({
  ...(JSON.parse(options) as LockModuleOptions),
  redis: url,
  ttl: TTL_MS,
  wait: TTL_MS,
});
const witness = new Redis(url);
let longestWaitMs = 0;

async function passOn(): Promise<void> {
  for (let goesOn = true; goesOn;) {
    const since = performance.now();
    const lock = await locks.acquire(key);
    longestWaitMs = Math.max(longestWaitMs, performance.now() - since);
    const names = [`lock:${key}`, `{lock:${key}}:queue`];
    const handOffs = await witness.eval(ENTER, 2, ...names, process.pid, lock.fencingToken);
    goesOn = Number(handOffs) < Number(total);
    await witness.decr('inside');
    await lock.release();
    await sleep(1); // lets another one have it
  }
}

await locks.open();
await witness.incr('ready');
while ((await witness.get('ready')) !== processes) await sleep(5);
await Promise.all(Array.from({ length: Number(callers) }, () => passOn()));
await locks.shutdown();
witness.disconnect();
console.log(JSON.stringify({ longestWaitMs }));
