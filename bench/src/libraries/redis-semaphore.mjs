import { Mutex, RedlockMutex, Semaphore } from 'redis-semaphore';
import { connect } from '../support/clients.mjs';

/** @type {import('./index.mjs').Open} */
export async function open(urls, { retryMs } = {}) {
  const { clients, close } = await connect(urls);
  return {
    async acquire(key, { ttl, wait, limit }) {
      const options = { lockTimeout: ttl, acquireTimeout: wait, retryInterval: retryMs };
      if (limit !== undefined) {
        const semaphore = new Semaphore(clients[0], key, limit, options);
        await semaphore.acquire();
        return () => semaphore.release();
      }
      const mutex =
        clients.length === 1
          ? new Mutex(clients[0], key, options)
          : new RedlockMutex(clients, key, options);
      await mutex.acquire();
      return () => mutex.release();
    },
    close,
  };
}
