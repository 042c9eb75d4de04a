import { randomUUID } from 'node:crypto';
import { connect } from '../support/clients.mjs';

const RELEASE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

/**
 * A lock written by hand: `SET NX PX`, and a script that compares and deletes. No waiting, no renewal and no fencing token.
 *
 * @type {import('./index.mjs').Open}
 */
export async function open(urls) {
  const [redis] = await connect(urls);
  redis.defineCommand('compareAndDelete', { lua: RELEASE, numberOfKeys: 1 });
  return {
    async acquire(key, { ttl }) {
      const token = randomUUID();
      if ((await redis.set(key, token, 'PX', ttl, 'NX')) === null)
        throw new Error(`${key} is held`);
      return () => redis.compareAndDelete(key, token);
    },
  };
}
