import { setTimeout as sleep } from 'node:timers/promises';
import { LockService } from '../../../dist/index.js';
import { heapUsed } from './heap.mjs';

/** At once, so that acquiring many takes seconds and not minutes. */
const AT_ONCE = 500;

/** Holds many leases for some time and tells what that costs this process. Needs `--expose-gc`. */
export async function holdLeases({ url, count, ttl, ms }) {
  const locks = new LockService({ redis: url });
  await locks.open();
  await (await locks.acquire('first', { ttl })).release();
  const held = new Array(count);
  const before = heapUsed();
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < count) {
        const index = next++;
        held[index] = await locks.acquire(`lease:${index}`, { ttl, wait: 0 });
      }
    }),
  );
  // What acquiring left behind is collected before the renewals are measured.
  const heapPerLease = (heapUsed() - before) / count;
  const since = performance.now();
  const cpu = process.cpuUsage();
  await sleep(ms);
  const { user, system } = process.cpuUsage(cpu);
  const cores = (user + system) / 1_000 / (performance.now() - since);
  const stillHeld = held.filter((lock) => lock.isHeld).length;
  return { heapPerLease, cores, stillHeld };
}
