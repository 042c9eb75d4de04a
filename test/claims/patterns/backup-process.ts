/**
 * One of several processes that back each other up. Tells in Redis what happens to it, as JSON: `{ name, event, attempt }`.
 * Arguments: URL of Redis, its name, and what it does with its attempt: `work`, `fail` or `hang`.
 */
import { Redis } from 'ioredis';
import { LockingWorker } from '../../../lib/worker/index.js';
import { Locks } from '../../support/locks.js';

const [url = '', name = '', how] = process.argv.slice(2);
const redis = new Redis(url);
const locks = new Locks({ redis: url });
await locks.open();

const tell = (event: string, attempt?: number, last?: boolean): Promise<unknown> =>
  redis.rpush('events', JSON.stringify({ name, event, attempt, last }));

const worker = new LockingWorker(locks, { lockKey: 'import', lockTimeout: '1s', maxAttempts: 3 });
worker.on('acquired', (attempt, isLastAttempt) => {
  void tell('acquired', attempt, isLastAttempt).then(async () => {
    if (how === 'work') await worker.done();
    if (how === 'fail') await worker.fail(new Error('no luck'));
  });
});
worker.on('exhausted', () => void tell('exhausted'));
worker.on('error', () => undefined); // what it failed with
await worker.acquire();
await tell('over');
await locks.shutdown();
redis.disconnect();
