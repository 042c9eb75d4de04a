/** The process that is measured. Does what its parent asks, one message each. */
import { setTimeout as sleep } from 'node:timers/promises';
import { openEntrant } from './libraries/index.mjs';
import * as calls from './support/calls.mjs';
import * as leases from './support/leases.mjs';
import * as services from './support/services.mjs';

const LOCK = { ttl: 30_000, wait: 60_000 };

const clients = new Map();
let newKeys = 0;

const newKey = () => `order:${process.pid}:${newKeys++}`;

/** Connected already where it was asked for before. */
async function clientOf({ entrant, urls, rival = false }) {
  const id = JSON.stringify([entrant, urls, rival]);
  if (!clients.has(id)) clients.set(id, openEntrant(entrant, urls));
  return clients.get(id);
}

const offers = {
  /** Connects, so that it is not part of what is measured. */
  async open(asked) {
    await clientOf(asked);
  },

  /**
   * Callers that acquire, work for `sectionMs` and release, again and again, for `ms`. Without `keys`, each lock has a new key. The clock
   * is read for one of `every` locks: what is measured is the lock, and not the reading.
   */
  async loop({ keys, callers, sectionMs = 0, startAt = 0, every = 1, ms, ...asked }) {
    const client = await clientOf(asked);
    await sleep(Math.max(0, startAt - Date.now()));
    const cpu = process.cpuUsage();
    const start = performance.now();
    const end = start + ms;
    let longest = 0;
    const counts = await Promise.all(
      Array.from({ length: callers }, async (_, caller) => {
        let count = 0;
        for (let at = 0, since = start; since < end; at += 1) {
          const isTimed = at % every === 0;
          if (isTimed && at > 0) since = performance.now();
          const release = await client.acquire(keys?.[caller % keys.length] ?? newKey(), LOCK);
          const got = isTimed ? performance.now() : since;
          longest = Math.max(longest, got - since);
          // A lock that is granted later is not counted where each is timed: callers that poll end late.
          if (got < end) count += 1;
          if (sectionMs > 0) await sleep(sectionMs);
          await release();
        }
        return count;
      }),
    );
    const { user, system } = process.cpuUsage(cpu);
    const tookMs = every === 1 ? ms : performance.now() - start;
    return { counts, longest, ms: tookMs, cpuUs: user + system };
  },

  /** Two clients that want each new key at the same moment: how many locks both got in `ms`. */
  async race({ ms, ...asked }) {
    const both = [await clientOf(asked), await clientOf({ ...asked, rival: true })];
    const start = performance.now();
    let count = 0;
    while (performance.now() - start < ms) {
      const key = newKey();
      const lock = async (client) => {
        const release = await client.acquire(key, LOCK);
        await release();
        count += 1;
      };
      await Promise.all(both.map(lock));
    }
    return { counts: [count], ms: performance.now() - start };
  },

  /** Callers that want two of the keys at once for 1 ms, again and again, for `ms`. */
  async transfers({ keys, callers, ms, ...asked }) {
    const { locks } = await clientOf(asked);
    const end = performance.now() + ms;
    let count = 0;
    const transfer = async () => {
      const one = Math.floor(keys.length * Math.random());
      const another = (one + 1 + Math.floor((keys.length - 1) * Math.random())) % keys.length;
      const lock = await locks.acquire([keys[one], keys[another]], { wait: '1m' });
      if (performance.now() < end) count += 1;
      await sleep(1);
      await lock.release();
    };
    await Promise.all(
      Array.from({ length: callers }, async () => {
        while (performance.now() < end) await transfer();
      }),
    );
    return count;
  },

  /** So many locks of one caller, one after the other, of one key. Resolves with the bytes that each allocates. */
  async locks({ count, ...asked }) {
    const client = await clientOf(asked);
    globalThis.gc();
    const before = process.memoryUsage().heapUsed;
    for (let at = 0; at < count; at += 1) {
      const release = await client.acquire('key', LOCK);
      await release();
    }
    return (process.memoryUsage().heapUsed - before) / count;
  },

  ...calls,
  ...leases,
  ...services,
};

process.on('message', ({ id, method, options }) => {
  offers[method](options).then(
    (result) => process.send({ id, result }),
    (error) => process.send({ id, error: String(error?.stack ?? error) }),
  );
});
process.once('disconnect', () => process.exit());
