/**
 * An instance that stands for the lead of `reports`: writes into the list `events` of Redis what happens to it, with the time of the server.
 * Arguments: URL of Redis, its name, the TTL in ms.
 */
import { Redis } from 'ioredis';
import { Locks } from '../support/locks.js';

const [url = '', name = '', ttl = ''] = process.argv.slice(2);
const redis = new Redis(url);
const locks = new Locks({ redis: url, ttl: Number(ttl) });
await locks.open();

async function note(what: string, term: number): Promise<void> {
  const [seconds = 0, micros = 0] = (await redis.time()).map(Number);
  const atMs = seconds * 1_000 + micros / 1_000;
  await redis.rpush('events', JSON.stringify({ name, what, term, atMs, pid: process.pid }));
}

locks.lead('reports', {
  onElected: ({ term }) => note('elected', term),
  onLost: ({ term, reason }) => note(reason, term),
});
await note('stands', 0);
