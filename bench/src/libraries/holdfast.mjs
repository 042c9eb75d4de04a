import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { packages } from './packages.mjs';

/** `LockService`, and the rest of the package, as it was built in that folder. */
export const builtIn = (folder) => import(pathToFileURL(join(folder, 'dist/index.js')));

/**
 * Holdfast with its defaults, and with a client of a package where that is named.
 *
 * @type {import('./index.mjs').Open}
 */
export async function open(urls, { folder, store, client }) {
  const { LockService } = await builtIn(folder);
  const redis = client
    ? (await packages[client](urls[0])).client
    : urls.length === 1
      ? urls[0]
      : urls;
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
