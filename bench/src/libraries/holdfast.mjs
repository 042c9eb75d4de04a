import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** `LockService`, and the rest of the package, as it was built in that folder. */
export const builtIn = (folder) => import(pathToFileURL(join(folder, 'dist/index.js')));

/**
 * Holdfast with its defaults.
 *
 * @type {import('./index.mjs').Open}
 */
export async function open(urls, { folder, store }) {
  const { LockService } = await builtIn(folder);
  const redis = urls.length === 1 ? urls[0] : urls;
  const locks = new LockService(store === 'memory' ? { store } : { redis });
  await locks.open();
  return {
    locks,
    async acquire(key, options) {
      const lock = await locks.acquire(key, options);
      return () => lock.release();
    },
  };
}
