/**
 * A process that waits for a lock, holds it for a while and gives it back:
 * `waits.ts <redis url> <key> <name> <options of the service as JSON> <ms to hold>`.
 *
 * In Redis it leaves its pid (hash `pids`), waits to be told to begin (list `begin:<name>`), and adds its name and its fencing token
 * to `granted:<key>` while it holds the lock.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockService, type LockModuleOptions } from 'nestjs-holdfast';

const [url = '', key = '', name = '', options = '{}', holdMs = '0'] = process.argv.slice(2);

const locks = new LockService({ ...(JSON.parse(options) as LockModuleOptions), redis: url });
const witness = new Redis(url);
await locks.open();
await witness.hset('pids', name, process.pid);
await witness.blpop(`begin:${name}`, 0);
const lock = await locks.acquire(key, { wait: '10m' });
await witness.rpush(`granted:${key}`, `${name} ${String(lock.fencingToken)}`);
await sleep(Number(holdMs));
await lock.release();
await locks.shutdown();
witness.disconnect();
