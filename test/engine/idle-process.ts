/** A process that takes a lock in memory, gives it back, and has nothing else to do. It does not close its lock service. */
import { LockEngine } from '../../lib/engine/lock-engine.js';
import { systemRuntime } from '../../lib/time/runtime.js';

const log = { warn: console.error, error: console.error };
const locks = new LockEngine({ store: 'memory', ttl: '1h' }, { runtime: systemRuntime, log });
await locks.open();
await (await locks.acquire('key')).release();
await locks.run('key', () => undefined);
console.log(await locks.inspect('key'));
