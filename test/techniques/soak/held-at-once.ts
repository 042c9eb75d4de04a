/**
 * Holds many locks at once until each has been renewed, gives all of them back, and prints what that was like, as JSON:
 * `node --expose-gc held-at-once.ts <redis url> <locks>`.
 *
 * The service has a clock of its own, which stands still until all locks are held: a busy machine may take its time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lock } from '../../../lib/lease/lock.js';
import { Locks } from '../../support/locks.js';
import { VirtualRuntime } from '../../support/virtual-runtime.js';
import { heapInUse } from './heap.js';

const [url = '', count] = process.argv.slice(2);
const AT_ONCE = 1_000;
const TTL_MS = 60_000;
/** Every lease is renewed before so much of its TTL has passed. */
const RENEWED_MS = TTL_MS / 3 + 10;
const PATIENCE_MS = 30_000;

const clock = new VirtualRuntime();
const locks = new Locks({ redis: url, ttl: TTL_MS, nodeTimeout: PATIENCE_MS }, clock);
let lost = 0;
locks.on('lost', () => (lost += 1));

async function inBatches<T, R>(all: readonly T[], work: (each: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let first = 0; first < all.length; first += AT_ONCE) {
    results.push(...(await Promise.all(all.slice(first, first + AT_ONCE).map(work))));
  }
  return results;
}

const acquireMany = (from: number, length: number): Promise<Lock[]> =>
  inBatches(
    Array.from({ length }, (_, index) => `key:${String(from + index)}`),
    (key) => locks.acquire(key),
  );

async function releaseAll(held: readonly Lock[]): Promise<number> {
  return (await inBatches(held, (lock) => lock.release())).filter(Boolean).length;
}

/** How many there were when nothing more happened, or when it took too long. */
async function renewedOf(held: readonly Lock[]): Promise<number> {
  const isRenewed = ({ remainingMs }: Lock): boolean => remainingMs > TTL_MS - RENEWED_MS / 2;
  const since = performance.now();
  while (!held.every(isRenewed) && performance.now() - since < PATIENCE_MS) await sleep(20);
  return held.filter(isRenewed).length;
}

async function holdAndRelease(length: number): Promise<object> {
  const held = await acquireMany(5_000, length);
  const full = await heapInUse();
  // Of the library, and of the process.
  const { timers } = clock;
  const timeouts = process.getActiveResourcesInfo().filter((type) => type === 'Timeout').length;
  await clock.advance(RENEWED_MS);
  const renewed = await renewedOf(held);
  return { full, timers, timeouts, renewed, released: await releaseAll(held) };
}

await releaseAll(await acquireMany(0, 5_000)); // compiled and warm
const before = await heapInUse();
const report = await holdAndRelease(Number(count));
const after = await heapInUse();
await locks.shutdown();
console.log(JSON.stringify({ before, after, lost, ...report }));
