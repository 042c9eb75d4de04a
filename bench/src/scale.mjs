/** The figures of docs/internals/scale.md: `node bench/src/scale.mjs`, after `npm run build` and `npm --prefix bench ci`. `--quick` measures fewer. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { medianOf } from './judge.mjs';
import { commandStats, startRedis } from './support/redis.mjs';
import { opened } from './support/services.mjs';
import { table } from './support/table.mjs';
import { withWorkers } from './support/workers.mjs';

/** What scripts have cost the server since `resetScripts`, in µs. */
async function scriptsUs(admin) {
  const { evalsha } = await commandStats(admin);
  return evalsha?.us ?? 0;
}

const resetScripts = (admin) => admin.config('RESETSTAT');

/** The place of a process in line, as the library writes it. */
async function placeInLine(redis, [holder, waiter], key) {
  const held = await holder.acquire(key);
  const waiting = waiter.acquire(key, { wait: '10s' });
  let place;
  while (place === undefined) [place] = await redis.admin.zrange(`{lock:${key}}:queue`, 0, 0);
  await held.release();
  await (await waiting).release();
  return place;
}

/**
 * Many more in line: each another process, which listens.
 *
 * @param place one of the library's: `<token> <claim> <channel>`
 */
async function crowd(redis, key, place, count) {
  const listener = new Redis(redis.url);
  const channels = [];
  for (let at = 0; at < count; at += 1_000) {
    const places = [];
    for (let index = at; index < Math.min(count, at + 1_000); index += 1) {
      const process = randomUUID();
      const ids = [randomUUID(), process];
      const other = place.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, () =>
        ids.shift(),
      );
      channels.push(`holdfast:${process}`);
      places.push(String(Date.now() * 1_000), other);
    }
    await redis.admin.zadd(`{lock:${key}}:queue`, ...places);
    await listener.subscribe(...channels.slice(at));
  }
  return listener;
}

/** Two processes, which hold a key in turn and wait for it in turn, with a crowd in line behind them: each release wakes a process. */
class Pair {
  #redis;
  #services;
  #key;
  #held;
  #next = 1;

  constructor(redis, services, key) {
    this.#redis = redis;
    this.#services = services;
    this.#key = key;
  }

  async take() {
    this.#held = await this.#services[0].acquire(this.#key, { wait: '10s' });
  }

  /** Resolves with the ms from the release of one to the grant of the other, each. */
  async handOver(count, length) {
    let ms = 0;
    for (let at = 0; at < count; at += 1) {
      const waiting = this.#services[this.#next].acquire(this.#key, { wait: '10s' });
      await this.#isInLine(length);
      const start = performance.now();
      const released = this.#held.release();
      this.#held = await waiting;
      ms += performance.now() - start;
      await released;
      this.#next = 1 - this.#next;
    }
    return ms / count;
  }

  /** The crowd is granted the key then, and does not take it. */
  end() {
    return this.#held.release();
  }

  /** Its place is the last one: it is brought to the head of the line. */
  async #isInLine(length) {
    const queue = `{lock:${this.#key}}:queue`;
    while ((await this.#redis.admin.zcard(queue)) === length);
    const [place] = await this.#redis.admin.zrange(queue, -1, -1);
    await this.#redis.admin.zadd(queue, 'XX', 1, place);
  }
}

const scaleLine = {
  title: 'Processes in line for one key: what each costs the server',

  async run({ redis, quick }) {
    const services = await opened(3, redis.url);
    const rows = [];
    for (const length of [1, 10, 100, 1_000, 10_000]) {
      const key = `line:${length}`;
      const place = await placeInLine(redis, services, key);
      const pair = new Pair(redis, services, key);
      await pair.take(); // and keeps it: nobody in the crowd would take its turn
      const listener = await crowd(redis, key, place, length);
      const many = quick ? 200 : 1_000;
      await pair.handOver(50, length);
      await resetScripts(redis.admin);
      const handOverMs = await pair.handOver(many, length);
      const handOverUs = (await scriptsUs(redis.admin)) / many;
      await resetScripts(redis.admin);
      for (let at = 0; at < many; at += 1) await services[2].tryAcquire(key);
      const refusedUs = (await scriptsUs(redis.admin)) / many;
      const bytes = (await redis.admin.memory('USAGE', `{lock:${key}}:queue`)) / length;
      const label = `${length.toLocaleString('en')} in line`;
      rows.push({ label, handOverMs, handOverUs, refusedUs, bytes });
      await pair.end();
      listener.disconnect();
    }
    await Promise.all(services.map((locks) => locks.shutdown(0)));
    await redis.flush();
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'handOverMs', head: 'from one process to another, ms', digits: 2 },
        { name: 'handOverUs', head: 'scripts for it, server µs', digits: 0 },
        { name: 'refusedUs', head: 'a try that is refused, server µs', digits: 0 },
        { name: 'bytes', head: 'bytes a place', digits: 0 },
      ],
      rows,
    };
  },
};

const FILL = `
for i = ARGV[1], ARGV[2] do
  redis.call('SET', 'lock:other:' .. i, ARGV[3], 'PX', 600000)
  redis.call('SET', '{lock:other:' .. i .. '}:fence', ARGV[4], 'PX', 600000)
end`;

const scaleKeys = {
  title: 'Keys that are held: what one more costs',

  async run({ redis, quick }) {
    const [locks] = await opened(1, redis.url);
    const rows = [];
    let filled = 0;
    const memory = async () =>
      Number(/used_memory:(\d+)/.exec(await redis.admin.info('memory'))?.[1]);
    for (const count of quick ? [1, 100_000] : [1, 1_000, 100_000, 1_000_000]) {
      const held = await locks.acquire('pattern');
      const token = await redis.admin.get('lock:pattern');
      const fence = await redis.admin.get('{lock:pattern}:fence');
      await held.release();
      const [before, were] = [await memory(), filled];
      for (; filled < count; filled += Math.min(10_000, count - filled)) {
        const last = filled + Math.min(10_000, count - filled);
        await redis.admin.eval(FILL, 0, filled + 1, last, token, fence);
      }
      const bytes = ((await memory()) - before) / (count - were);
      const many = quick ? 500 : 3_000;
      for (let at = 0; at < 500; at += 1) await locks.run('warm-up', () => undefined);
      await resetScripts(redis.admin);
      const times = [];
      for (let at = 0; at < many; at += 1) {
        const start = performance.now();
        await (await locks.acquire(`mine:${at}`)).release();
        times.push(performance.now() - start);
      }
      rows.push({
        label: `${count.toLocaleString('en')} held`,
        ms: medianOf(times),
        us: (await scriptsUs(redis.admin)) / many,
        bytes: count > 1 ? bytes : undefined,
      });
    }
    await locks.shutdown(0);
    await redis.flush();
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'ms', head: 'acquire and release, ms', digits: 2 },
        { name: 'us', head: 'scripts for it, server µs', digits: 0 },
        { name: 'bytes', head: 'server bytes for each key', digits: 0 },
      ],
      rows,
    };
  },
};

const field = (info, name) => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);

const scaleProcesses = {
  title: 'Processes: what each takes, and a restart of the server under all of them',

  async run({ quick }) {
    const rows = [];
    for (const count of quick ? [100] : [10, 100, 1_000]) rows.push(await processes(count));
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'idle', head: 'connections each', digits: 1 },
        { name: 'connections', head: 'once it has waited', digits: 1 },
        { name: 'serverKiB', head: 'server KiB each', digits: 0 },
        { name: 'heapKiB', head: 'client heap KiB each', digits: 0 },
        { name: 'lineMs', head: 'all have had one key in turn, ms', digits: 0 },
        { name: 'firstMs', head: 'after a restart: half granted again, ms', digits: 0 },
        { name: 'lastMs', head: 'all granted again, ms', digits: 0 },
        { name: 'peak', head: 'most new connections in 100 ms', digits: 0 },
      ],
      rows,
    };
  },
};

async function processes(count) {
  let redis = await startRedis();
  const { port } = redis;
  try {
    return await withWorkers(
      2,
      async (workers) => {
        const each = (method, options = {}) =>
          Promise.all(
            workers.map((worker, at) =>
              worker.ask(method, { ...options, prefix: `process:${at}` }),
            ),
          );
        const before = await redis.admin.info();
        const heaps = await each('openServices', { url: redis.url, count: count / 2 });
        const clientsOf = async () => field(await redis.admin.info(), 'connected_clients');
        const idle = (await clientsOf()) - field(before, 'connected_clients');
        const line = await each('waitAll', { key: 'one' });
        const after = await redis.admin.info();
        const grown = (name) => (field(after, name) - field(before, name)) / count;
        await each('holdAll');
        await redis.stop();
        await sleep(1_000);
        redis = await startRedis(port);
        const again = each('grantedAgain');
        const peak = await mostNew(redis.admin, again);
        const granted = (await again).flat();
        await each('closeServices');
        return {
          label: `${count.toLocaleString('en')} processes`,
          idle: idle / count,
          connections: grown('connected_clients'),
          serverKiB: grown('used_memory') / 1_024,
          heapKiB: medianOf(heaps) / 1_024,
          lineMs: Math.max(...line),
          firstMs: medianOf(granted),
          lastMs: Math.max(...granted),
          peak,
        };
      },
      ['--expose-gc'],
    );
  } finally {
    await redis.stop();
  }
}

/** Connections that the server gets in the busiest 100 ms until then. */
async function mostNew(admin, until) {
  let [open, most] = [true, 0];
  const end = () => (open = false);
  until.then(end, end);
  let last = field(await admin.info('stats'), 'total_connections_received');
  while (open) {
    await sleep(100);
    const now = field(await admin.info('stats'), 'total_connections_received');
    [most, last] = [Math.max(most, now - last), now];
  }
  return most;
}

const redis = await startRedis();
for (const { title, run } of [scaleLine, scaleKeys, scaleProcesses]) {
  const { columns, rows } = await run({ redis, quick: process.argv.includes('--quick') });
  console.log(`\n### ${title}\n\n${table(columns, rows)}`);
}
await redis.stop();
