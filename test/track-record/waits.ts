/** A process that waits for a lock until it is killed: `waits.ts <redis url> <key>`. */
import { LockService } from 'nestjs-holdfast';

const [url = '', key = ''] = process.argv.slice(2);

const locks = new LockService({ redis: url });
await locks.acquire(key, { wait: '10m' });
