/**
 * How long it takes until another process works, and nothing else: no lock, only a message. A process works for 5 ms, says so on a channel
 * of Redis, and the next one begins. `node bench/src/limits/hand-over.mjs`
 */
import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { median } from '../support/stats.mjs';
import { startRedis } from '../support/redis.mjs';

const PROCESSES = 4;
const SECTION_MS = 5;
const ROUNDS = 1_000;

if (process.argv[2] === undefined) await measure();
else await takePart(process.argv[2], Number(process.argv[3]));

async function measure() {
  const redis = await startRedis();
  const children = Array.from({ length: PROCESSES }, (_, index) =>
    fork(fileURLToPath(import.meta.url), [redis.url, String(index)]),
  );
  await Promise.all(children.map((child) => new Promise((there) => child.once('message', there))));
  const gaps = [];
  const isOver = new Promise((resolve) => {
    for (const child of children)
      child.on('message', (gap) => {
        gaps.push(gap);
        if (gaps.length === ROUNDS) resolve();
      });
  });
  await redis.admin.publish('0', String(now()));
  await isOver;
  const sum = gaps.reduce((all, gap) => all + gap, 0);
  console.log(
    `From the end of the work to its beginning in the next process: ${(sum / gaps.length).toFixed(2)} ms, median ${median(gaps).toFixed(2)} ms`,
  );
  for (const child of children) child.kill();
  await redis.stop();
}

async function takePart(url, index) {
  const [commands, subscriber] = [new Redis(url), new Redis(url)];
  const next = String((index + 1) % PROCESSES);
  subscriber.on('message', async (_, endedAt) => {
    process.send(now() - Number(endedAt));
    await sleep(SECTION_MS);
    await commands.publish(next, String(now()));
  });
  await subscriber.subscribe(String(index));
  process.send('there');
}

/** In ms, the same in all processes. */
function now() {
  return performance.timeOrigin + performance.now();
}
