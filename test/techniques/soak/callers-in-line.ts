/**
 * Has many callers wait for one key, or one caller for each of many keys, while another service of this process holds them; then these
 * are given back. Prints, as JSON, in which order the callers had the lock, and what of them is left:
 * `node --expose-gc callers-in-line.ts <redis url> <callers> <"one key" or "a key each"> <options of the service as JSON>`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { LockModuleOptions } from '../../../lib/options/lock-module-options.js';
import { Locks } from '../../support/locks.js';
import { heapInUse } from './heap.js';

/** On a busy machine a burst takes longer than a second, and what a request without an answer may have left is kept to be cleaned up. */
const PATIENCE_MS = 30_000;

const [url = '', callers, what, options = '{}'] = process.argv.slice(2);

const settings: LockModuleOptions = {
  ...(JSON.parse(options) as LockModuleOptions),
  redis: url,
  ttl: '1m',
  nodeTimeout: PATIENCE_MS,
};
const [holder, waiter] = [new Locks(settings), new Locks(settings)];
const redis = new Redis(url);

const keyOf = (index: number): string => (what === 'one key' ? 'key' : `key:${String(index)}`);

/** Indexes of the callers, in the order in which they had the lock. */
async function play(count: number): Promise<{ order: number[]; overlaps: number }> {
  const order: number[] = [];
  const inside = new Set<string>();
  let overlaps = 0;
  const keys = [...new Set(Array.from({ length: count }, (_, index) => keyOf(index)))];
  const held = await Promise.all(keys.map((key) => holder.acquire(key)));
  const waits = Array.from({ length: count }, async (_, index) => {
    const key = keyOf(index);
    const lock = await waiter.acquire(key, { wait: '1m' });
    if (inside.has(key)) overlaps += 1;
    inside.add(key);
    order.push(index);
    await Promise.resolve();
    inside.delete(key);
    await lock.release();
  });
  for (const key of keys) {
    while ((await redis.zcard(`{lock:${key}}:queue`)) === 0) await sleep(5);
  }
  await Promise.all(held.map((lock) => lock.release()));
  await Promise.all(waits);
  return { order, overlaps };
}

await play(1_000); // compiled and warm
await redis.flushall();
const before = await heapInUse();
const since = performance.now();
const { order, overlaps } = await play(Number(callers));
const tookMs = performance.now() - since;
const isInOrder = order.every((index, place) => index === place);
const served = new Set(order).size;
order.length = 0;
const after = await heapInUse();
const left = (await redis.keys('*')).filter((name) => !name.endsWith(':fence'));
const timers = process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;
await Promise.all([holder.shutdown(), waiter.shutdown()]);
redis.disconnect();
console.log(JSON.stringify({ before, after, served, overlaps, isInOrder, left, timers, tookMs }));
