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
    locks,
    async acquire(key, { wait, ...options }) {
      const lock = waits
        ? await locks.acquire(key, { wait, ...options })
        : await locks.tryAcquire(key, options);
      if (lock === null) throw new Error(`${key} is held`);
      return () => lock.release();
    },
    close: () => locks.shutdown(0),
  };
}
