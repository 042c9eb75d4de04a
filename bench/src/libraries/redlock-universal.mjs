import { createLock, createRedlock, IoredisAdapter } from 'redlock-universal';
import { connect } from '../support/clients.mjs';

/**
 * In its fastest mode, with one lock object for each key.
 *
 * @type {import('./index.mjs').Open}
 */
export async function open(urls, { retryMs } = {}) {
  const { clients, close } = await connect(urls);
  const adapters = clients.map((client) => new IoredisAdapter(client));
  const locks = new Map();
  const lockOf = (key, ttl) => {
    const id = `${ttl} ${key}`;
    if (!locks.has(id)) {
      const options = { key, ttl, retryAttempts: 1_000_000, retryDelay: retryMs };
      const lock =
        adapters.length === 1
          ? createLock({ ...options, adapter: adapters[0], performance: 'lean' })
          : createRedlock({ ...options, adapters });
      locks.set(id, lock);
    }
    return locks.get(id);
  };
  return {
    async acquire(key, { ttl }) {
      const lock = lockOf(key, ttl);
      const handle = await lock.acquire();
      return () => lock.release(handle);
    },
    close,
  };
}
