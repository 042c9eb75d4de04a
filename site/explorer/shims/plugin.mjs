/**
 * Lets Vite bundle lib/ and test/techniques/simulation/ for browsers: what they import of Node is replaced by the files of this folder. Only for
 * importers in those two folders and here.
 */
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const OURS = ['lib/', 'test/', 'site/explorer/'].map((folder) => project + folder);

/** By what they are imported as. */
const STAND_INS = {
  'node:async_hooks': 'async-hooks.mjs',
  'node:crypto': 'crypto.mjs',
  'node:diagnostics_channel': 'diagnostics-channel.mjs',
  'node:events': 'events.mjs',
  'node:os': 'os.mjs',
  'node:util': 'util.mjs',
  './acorn.cjs': 'acorn.mjs',
  '../installed.cjs': 'installed.mjs',
  './client/redis-location.js': 'redis-location.mjs',
  '../store/redis/client/redis-location.js': 'redis-location.mjs',
};

export const shims = () => ({
  name: 'holdfast-shims',
  enforce: 'pre',
  resolveId(source, importer) {
    const file = importer?.split('?')[0];
    if (file === undefined || !OURS.some((folder) => file.startsWith(folder))) return undefined;
    const standIn = STAND_INS[source];
    return standIn && fileURLToPath(new URL(standIn, import.meta.url));
  },
});
