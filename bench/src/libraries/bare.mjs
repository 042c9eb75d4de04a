import { randomBytes } from 'node:crypto';
import { connect } from '../support/clients.mjs';

const RELEASE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

/**
 * The two commands that no lock can do without, and nothing else: no waiting, no renewal, no fencing token.
 *
 * @type {import('./index.mjs').Open}
 */
export async function open(urls) {
  const { clients, close } = await connect(urls);
  const [redis] = clients;
  redis.defineCommand('compareAndDelete', { lua: RELEASE, numberOfKeys: 1 });
  return {
    async acquire(key, { ttl }) {
      const token = randomBytes(16).toString('hex');
      if ((await redis.set(key, token, 'PX', ttl, 'NX')) !== 'OK')
        throw new Error(`${key} is held`);
      return () => redis.compareAndDelete(key, token);
    },
    close,
  };
}
