/**
 * Locks and releases many keys and prints how large the heap was before and after, in bytes, as JSON:
 * `node --expose-gc locks-and-releases.ts <redis url, or "memory"> <keys> <ms for which most keys stay taken>`.
 */
import { Locks } from '../../support/locks.js';
import { heapInUse } from './heap.js';

const [where = '', count = '', minHoldMs = '0'] = process.argv.slice(2);
const AT_ONCE = 500;
/** A request that had no answer is kept for the clean-up: a busy machine may take its time. */
const PATIENCE_MS = 20_000;

const options =
  where === 'memory' ? { store: 'memory' as const } : { redis: where, nodeTimeout: PATIENCE_MS };
const locks = new Locks({ ...options, ttl: 30_000 });

/** None of the ways to lock may leave anything behind; most keys take the short one, to be done in time. */
async function lockAndRelease(index: number): Promise<void> {
  const key = `key:${index}`;
  if (index % 10 > 0) {
    const lock = await locks.acquire(key, { minHold: Number(minHoldMs) });
    await lock.release();
    return;
  }
  const lock = await locks.acquire(key);
  const waiting = locks.run(key, () => locks.run(key, () => undefined));
  const refused = await locks.tryAcquire(key);
  if (refused !== null) throw new Error(`"${key}" was granted twice`);
  await lock.release();
  await waiting;
}

async function lockMany(from: number, to: number): Promise<void> {
  for (let first = from; first < to; first += AT_ONCE) {
    const indexes = Array.from(
      { length: Math.min(AT_ONCE, to - first) },
      (_, offset) => first + offset,
    );
    await Promise.all(indexes.map((index) => lockAndRelease(index)));
  }
}

await lockMany(0, 5_000); // compiled and warm
const before = await heapInUse();
await lockMany(5_000, 5_000 + Number(count));
const after = await heapInUse();
await locks.shutdown();
console.log(JSON.stringify({ before, after }));
