/**
 * What the renewals of 100,000 leases cost a process that only sends them: a script over 130 keys, 77 times a second, as Holdfast
 * does with a TTL of 30 s. Nothing is planned, checked or remembered. `node bench/src/limits/renewals.mjs`
 */
import { Redis } from 'ioredis';
import { startRedis } from '../support/redis.mjs';

const LEASES = 100_000;
const TOGETHER = 130;
const SECONDS = 10;

const RENEW = `
local answers = {}
for i = 1, #KEYS, 4 do
  if redis.call('GET', KEYS[i]) == ARGV[(i + 3) / 4] then answers[#answers + 1] = redis.call('PEXPIRE', KEYS[i], 30000) end
end
return answers`;

const redis = await startRedis();
const client = new Redis(redis.url);
const sha = await client.script('LOAD', RENEW);
const token = (index) =>
  `holdfast:abcdefgh.00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
const tokens = Array.from({ length: LEASES }, (_, index) => token(index));
for (let from = 0; from < LEASES; from += 1_000) {
  const pipeline = client.pipeline();
  for (let index = from; index < from + 1_000; index += 1)
    pipeline.set(`lock:lease:${index}`, tokens[index], 'PX', 60_000);
  await pipeline.exec();
}

const before = process.cpuUsage();
const since = performance.now();
let index = 0;
await new Promise((resolve) => {
  const pauseMs = (SECONDS * 1_000 * TOGETHER) / LEASES;
  const timer = setInterval(() => {
    if (index >= LEASES) {
      clearInterval(timer);
      resolve();
      return;
    }
    const [keys, args] = [[], []];
    for (const end = Math.min(index + TOGETHER, LEASES); index < end; index += 1) {
      const main = `lock:lease:${index}`;
      keys.push(main, `{${main}}:fence`, `{${main}}:queue`, `{${main}}:holders`);
      args.push(tokens[index]);
    }
    void client.evalsha(sha, keys.length, ...keys, ...args);
  }, pauseMs);
});
const { user, system } = process.cpuUsage(before);
const percent = ((user + system) / 10 / (performance.now() - since)).toFixed(1);
console.log(`${LEASES.toLocaleString('en')} renewals in ${SECONDS} s: ${percent} % of a core`);
client.disconnect();
await redis.stop();
