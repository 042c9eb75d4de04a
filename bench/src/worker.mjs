/** The process that is measured. Does what its parent asks, one message each. */
import { setTimeout as sleep } from 'node:timers/promises';
import { openEntrant } from './libraries/index.mjs';
import { holdLeases } from './support/leases.mjs';
import * as services from './support/services.mjs';

const opened = new Map();
const holding = new Map();

const offers = {
  /** Connects, so that it is not part of what is measured. */
  async open({ entrant, urls }) {
    await clientOf(entrant, urls);
  },

  /**
   * Callers who acquire, do something for `sectionMs` and release, again and again, for `ms`. The clock is read for one of `every` locks:
   * what is measured is the lock, and not the reading.
   */
  async loop(asked) {
    const { entrant, urls, keys, callers, sectionMs = 0, ttl = 30_000, held } = asked;
    const { startAt = 0, every = 1, ms } = asked;
    const client = await clientOf(entrant, urls);
    await sleep(Math.max(0, startAt - Date.now()));
    const cpu = process.cpuUsage();
    const start = performance.now();
    const end = start + ms;
    const waits = [];
    const sections = [];
    let failed = 0;
    const counts = await Promise.all(
      Array.from({ length: callers }, async (_, caller) => {
        const key = keys[caller % keys.length];
        let count = 0;
        let got = start;
        for (let at = 0, asked = start; asked < end; at += 1) {
          const isTimed = at % every === 0;
          if (isTimed && at > 0) asked = performance.now();
          let release;
          try {
            release = await client.acquire(key, { ttl, wait: 60_000, ...held });
          } catch {
            failed += 1;
            await sleep(1);
            continue;
          }
          if (isTimed) {
            got = performance.now();
            waits.push(got - asked);
          }
          if (got < end || every > 1) count += 1;
          if (sectionMs > 0) {
            await sleep(sectionMs);
            sections.push(performance.now() - got);
          }
          await release();
        }
        return count;
      }),
    );
    const { user, system } = process.cpuUsage(cpu);
    return {
      counts,
      failed,
      // Who reads the clock seldom ends late.
      ms: every === 1 ? ms : performance.now() - start,
      waits: Float64Array.from(waits),
      sections: Float64Array.from(sections),
      cpuMs: (user + system) / 1_000,
    };
  },

  /** Callers who want two of the keys at once for 1 ms, again and again, for `ms`: who polls comes back within `pollMs`. */
  async transfers({ entrant, urls, keys, callers, how, pollMs, ms }) {
    const { locks } = await clientOf(entrant, urls);
    const waits = [];
    let refused = 0;
    const end = performance.now() + ms;
    const enter = async (pair) => {
      if (how === 'wait') return locks.acquire(pair, { wait: '10s' }).catch(() => null);
      const asked = performance.now();
      for (;;) {
        const lock = await locks.tryAcquire(pair);
        if (lock !== null || performance.now() - asked > 10_000) return lock;
        await sleep(pollMs * Math.random());
      }
    };
    await Promise.all(
      Array.from({ length: callers }, async () => {
        for (let asked = performance.now(); asked < end; asked = performance.now()) {
          const [one, another] = [keys.length, keys.length - 1].map((count) =>
            Math.floor(count * Math.random()),
          );
          const pair = [keys[one], keys[another < one ? another : another + 1]];
          const lock = await enter(pair);
          if (lock === null) {
            refused += 1;
            continue;
          }
          if (performance.now() < end) waits.push(performance.now() - asked);
          await sleep(1);
          await lock.release();
        }
      }),
    );
    return { waits: Float64Array.from(waits), refused };
  },

  /** Callers who have work done once, piece after piece. */
  async once({ entrant, urls, keys, ms }) {
    const { locks } = await clientOf(entrant, urls);
    const waits = [];
    const end = performance.now() + ms;
    const counts = await Promise.all(
      keys.map(async (key) => {
        let count = 0;
        for (let asked = performance.now(); asked < end; asked = performance.now()) {
          const piece = `${key}:${String(asked)}:${String(count)}`;
          await locks.runOnce(piece, { keepDone: '1s' }, () => {
            waits.push(performance.now() - asked);
          });
          count += 1;
        }
        return count;
      }),
    );
    return { counts, failed: 0, waits: Float64Array.from(waits), sections: new Float64Array() };
  },

  /** Callers who wait for one key and release it at once; resolves when all have had it. */
  async queue({ entrant, urls, key, callers, ttl = 30_000 }) {
    const client = await clientOf(entrant, urls);
    await Promise.all(
      Array.from({ length: callers }, async () => {
        const release = await client.acquire(key, { ttl, wait: 60_000 });
        await release();
      }),
    );
  },

  async acquire({ entrant, urls, key, ttl }) {
    const client = await clientOf(entrant, urls);
    holding.set(key, await client.acquire(key, { ttl, wait: 60_000 }));
  },

  async release({ key }) {
    await holding.get(key)();
    holding.delete(key);
  },

  /** How long `acquire` takes, one after the other, each with a key of its own. */
  async latency({ entrant, urls, prefix, ms }) {
    const client = await clientOf(entrant, urls);
    const took = [];
    const end = performance.now() + ms;
    for (let asked = performance.now(); asked < end || took.length < 3; asked = performance.now()) {
      const release = await client.acquire(`${prefix}:${took.length}`, {
        ttl: 30_000,
        wait: 10_000,
      });
      took.push(performance.now() - asked);
      await release();
    }
    return Float64Array.from(took);
  },

  holdLeases,
  ...services,
};

async function clientOf(entrant, urls) {
  const id = `${entrant} ${urls.join(' ')}`;
  if (!opened.has(id)) opened.set(id, openEntrant(entrant, urls));
  return opened.get(id);
}

process.on('message', ({ id, method, options }) => {
  offers[method](options).then(
    (result) => process.send({ id, result }),
    (error) => process.send({ id, error: String(error?.stack ?? error) }),
  );
});
process.once('disconnect', () => process.exit());
