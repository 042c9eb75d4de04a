import { Mutex, RedlockMutex } from 'redis-semaphore';
import { connect } from '../support/clients.mjs';

/** @type {import('./index.mjs').Open} */
export async function open(urls, { retryMs } = {}) {
  const { clients, close } = await connect(urls);
  return {
    async acquire(key, { ttl, wait }) {
      const options = { lockTimeout: ttl, acquireTimeout: wait, retryInterval: retryMs };
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
