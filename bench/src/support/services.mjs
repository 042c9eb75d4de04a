import { Logger } from '@nestjs/common';
import { LockService } from '../../../dist/index.js';
import { heapUsed } from './heap.mjs';

/** Services of this process: each has connections and an inbox of its own, as if it were a process. */
let services = [];

export async function opened(count, url) {
  const all = Array.from({ length: count }, () => new LockService({ redis: url }));
  await Promise.all(all.map((locks) => locks.open()));
  return all;
}

/** Resolves with the bytes of heap that each of them takes. Needs `--expose-gc`. */
export async function openServices({ url, count }) {
  Logger.overrideLogger(false); // each would say that its server has gone
  const before = heapUsed();
  services = await opened(count, url);
  return (heapUsed() - before) / count;
}

export async function closeServices() {
  await Promise.all(services.map((locks) => locks.shutdown(0)));
  services = [];
}

/** Each service acquires and releases the key, all at once; the longest wait in ms. */
export async function waitAll({ key }) {
  const start = performance.now();
  await Promise.all(services.map((locks) => locks.run(key, { wait: '5m' }, () => undefined)));
  return performance.now() - start;
}

/** Each service holds a key of its own until `release` or its loss. */
export async function holdAll({ prefix }) {
  const held = services.map((locks, index) => locks.acquire(`${prefix}:${index}`, { ttl: '30s' }));
  await Promise.all(held);
}

/** Each service asks for another key until it is granted: how many ms that took, each. */
export async function grantedAgain({ prefix }) {
  const start = performance.now();
  return Promise.all(
    services.map(async (locks, index) => {
      for (;;) {
        try {
          const lock = await locks.acquire(`${prefix}:${index}`, { wait: '1m' });
          const ms = performance.now() - start;
          await lock.release();
          return ms;
        } catch {
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    }),
  );
}
