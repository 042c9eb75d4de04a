import { setTimeout as sleep } from 'node:timers/promises';
import { builtIn } from '../libraries/holdfast.mjs';
import { connect } from './clients.mjs';

/** At once, so that acquiring many takes seconds and not minutes. */
const AT_ONCE = 100;

/** So many renewals share a call, as Holdfast sends them with a TTL of 30 s. */
const TOGETHER = 130;

const RENEW = `
local answers = {}
for i = 1, #KEYS, 4 do
  if redis.call('GET', KEYS[i]) == ARGV[(i + 3) / 4] then answers[#answers + 1] = redis.call('PEXPIRE', KEYS[i], 30000) end
end
return answers`;

let held = [];
let renew;

/** Holds so many leases until the process ends. */
export async function holdLeases({ folder, url, count, ttl }) {
  const { LockService } = await builtIn(folder);
  const locks = new LockService({ redis: url });
  await locks.open();
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < count) held.push(await locks.acquire(`lease:${next++}`, { ttl }));
    }),
  );
}

/** The CPU that the process uses in `ms`, in cores, while it holds all its leases. */
export async function holding({ ms }) {
  const cores = await coresOf(() => sleep(ms));
  const lost = held.filter((lock) => !lock.isHeld).length;
  if (lost > 0) throw new Error(`${lost} leases were lost.`);
  return cores;
}

/** Prepares a process that only sends renewals of so many keys. It plans, checks and remembers nothing. */
export async function openRenewals({ url, count }) {
  const [client] = await connect([url]);
  const sha = await client.script('LOAD', RENEW);
  const tokens = Array.from(
    { length: count },
    (_, index) => `holdfast:abcdefgh.00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
  );
  for (let from = 0; from < count; from += 1_000) {
    const pipeline = client.pipeline();
    for (let index = from; index < Math.min(from + 1_000, count); index += 1)
      pipeline.set(`lock:renewed:${index}`, tokens[index]);
    await pipeline.exec();
  }
  renew = (from) => {
    const [keys, args] = [[], []];
    for (let index = from; index < Math.min(from + TOGETHER, count); index += 1) {
      const main = `lock:renewed:${index}`;
      keys.push(main, `{${main}}:fence`, `{${main}}:queue`, `{${main}}:holders`);
      args.push(tokens[index]);
    }
    return client.evalsha(sha, keys.length, ...keys, ...args);
  };
}

/** The CPU that the process uses in `ms`, in cores, while it sends so many renewals. */
export const sending = ({ count, ms }) =>
  coresOf(async () => {
    const start = performance.now();
    const sent = [];
    for (let from = 0; from < count; from += TOGETHER) {
      await sleep(start + (ms * from) / count - performance.now());
      sent.push(renew(from));
    }
    await Promise.all(sent);
    await sleep(start + ms - performance.now());
  });

async function coresOf(work) {
  const start = performance.now();
  const cpu = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return (user + system) / 1_000 / (performance.now() - start);
}
