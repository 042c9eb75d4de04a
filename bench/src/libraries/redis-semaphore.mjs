import { MultiSemaphore, Mutex, RedlockMutex, Semaphore } from 'redis-semaphore';
import { connect } from '../support/clients.mjs';

/** @type {import('./index.mjs').Open} */
export async function open(urls, { retryMs } = {}) {
  const { clients, close } = await connect(urls);
  return {
    async acquire(key, { ttl, wait, limit, places = 1 }) {
      const options = { lockTimeout: ttl, acquireTimeout: wait, retryInterval: retryMs };
      if (limit !== undefined) {
        const semaphore =
          places === 1
            ? new Semaphore(clients[0], key, limit, options)
            : new MultiSemaphore(clients[0], key, limit, places, options);
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
