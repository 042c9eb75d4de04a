import { Mutex } from 'redis-semaphore';
import { connect } from '../support/clients.mjs';

/** @type {import('./index.mjs').Open} */
export async function open(urls, { retryMs } = {}) {
  const [client] = await connect(urls);
  return {
    async acquire(key, { ttl, wait }) {
      const options = { lockTimeout: ttl, acquireTimeout: wait, retryInterval: retryMs };
      const mutex = new Mutex(client, key, options);
      await mutex.acquire();
      return () => mutex.release();
    },
  };
}
