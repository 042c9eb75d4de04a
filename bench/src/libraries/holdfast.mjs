import { LockService } from '../../../dist/index.js';

/**
 * Holdfast with its defaults.
 *
 * @type {import('./index.mjs').Open}
 */
export async function open(urls, { waits = true } = {}) {
  const locks = new LockService({ redis: urls.length === 1 ? urls[0] : urls });
  await locks.open();
  return {
    async acquire(key, { ttl, wait }) {
      const lock = waits
        ? await locks.acquire(key, { ttl, wait })
        : await locks.tryAcquire(key, { ttl });
      if (lock === null) throw new Error(`${key} is held`);
      return () => lock.release();
    },
    close: () => locks.shutdown(0),
  };
}
