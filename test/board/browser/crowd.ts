/** A process that holds many keys, or whose callers wait for them, and does so until it is killed. */
import { LockService } from 'nestjs-holdfast';

const { REDIS_URL = '', HOLDS = '0', WAITS = '0', FOR = '', APPLICATION = 'crowd' } = process.env;

const AT_ONCE = 500;

const locks = new LockService({
  redis: REDIS_URL,
  ttl: '10m',
  instance: { application: APPLICATION },
});
await locks.open();
locks.on('lost', ({ keys, reason }) => console.log(`lost ${keys.join()} ${reason}`));
for (let done = 0; done < Number(HOLDS); done += AT_ONCE)
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, Number(HOLDS) - done) }, (_, index) =>
      locks.acquire(`item:${String(done + index)}`),
    ),
  );
/** Two callers at each of the first keys, or all at one. */
const keyOf = (index: number): string => (FOR === '' ? `item:${String(index >> 1)}` : FOR);
let waiting = 0;
locks.on('waiting', () => {
  waiting += 1;
  if (waiting === Number(WAITS)) console.log('ready');
});
for (let index = 0; index < Number(WAITS); index += 1)
  void locks.acquire(keyOf(index), { wait: '1h' }).then(
    ({ fencingToken }) => console.log(`granted ${keyOf(index)} ${String(fencingToken)}`),
    (error: unknown) => console.log(`failed ${String(error)}`),
  );
if (WAITS === '0') console.log('ready');
