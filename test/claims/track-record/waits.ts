/**
 * A process that waits for a lock, holds it for a while and gives it back, again and again: `waits.ts <redis url>`.
 *
 * In Redis it takes its orders (list `orders:<pid>`, as JSON), leaves its pid (hash `pids`) when it is ready, waits to be told to begin
 * (list `begin:<name>`), and adds its name and its fencing token to `granted:<key>` while it holds the lock. When it has shut its service
 * down, it says so (`ended:<name>`). An empty order ends it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { LockModuleOptions } from '../../../lib/options/lock-module-options.js';
import { Locks } from '../../support/locks.js';

export interface WaitOrder {
  readonly key: string;
  readonly name: string;
  readonly options: LockModuleOptions;
  readonly holdMs: number;
}

const [url = ''] = process.argv.slice(2);
const witness = new Redis(url);

async function nextOrder(): Promise<WaitOrder | undefined> {
  const [, order] = (await witness.blpop(`orders:${process.pid}`, 0)) ?? [];
  return order === undefined || order === '' ? undefined : (JSON.parse(order) as WaitOrder);
}

async function waitOnce({ key, name, options, holdMs }: WaitOrder): Promise<void> {
  const locks = new Locks({ ...options, redis: url });
  await locks.open();
  await witness.hset('pids', name, process.pid);
  await witness.blpop(`begin:${name}`, 0);
  const lock = await locks.acquire(key, { wait: '10m' });
  await witness.rpush(`granted:${key}`, `${name} ${String(lock.fencingToken)}`);
  await sleep(holdMs);
  await lock.release();
  await locks.shutdown();
  await witness.set(`ended:${name}`, 'yes');
}

for (let order = await nextOrder(); order !== undefined; order = await nextOrder()) {
  await waitOnce(order);
}
witness.disconnect();
