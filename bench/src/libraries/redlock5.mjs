import Redlock from 'redlock';
import { connect } from '../support/clients.mjs';

/** @type {import('./index.mjs').Open} */
export async function open(urls, { retryMs, jitterMs } = {}) {
  const clients = await connect(urls);
  const redlock = new Redlock(clients, {
    retryCount: -1,
    retryDelay: retryMs,
    retryJitter: jitterMs,
  });
  return {
    async acquire(key, { ttl }) {
      const lock = await redlock.acquire([key], ttl);
      return () => lock.release();
    },
  };
}
