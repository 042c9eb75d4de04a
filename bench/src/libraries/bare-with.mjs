import { randomUUID } from 'node:crypto';
import { packages } from './packages.mjs';

/**
 * As `bare.mjs`, with a client of another package.
 *
 * @type {import('./index.mjs').Open}
 */
export async function open([url], { client }) {
  const { set, compareAndDelete } = await packages[client](url);
  return {
    async acquire(key, { ttl }) {
      const token = randomUUID();
      if (!(await set(key, token, ttl))) throw new Error(`${key} is held`);
      return () => compareAndDelete(key, token);
    },
  };
}
