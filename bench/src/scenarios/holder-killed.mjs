import { setTimeout as sleep } from 'node:timers/promises';
import { onePerLibrary, openEntrant } from '../libraries/index.mjs';
import { atMost } from '../support/must.mjs';
import { inRounds } from '../support/rounds.mjs';
import { highest, median } from '../support/stats.mjs';
import { Worker } from '../support/workers.mjs';

const TTL = 1_000;

export const holderKilled = {
  id: 'holder-killed',
  title: `The holder is killed (SIGKILL), TTL ${TTL / 1_000} s: how long until the next one has the lock`,

  async run({ redis, quick }) {
    const all = quick ? onePerLibrary.slice(0, 2) : onePerLibrary;
    const measure = async ({ id: entrant }, round) => {
      const key = `${entrant}:${round}`;
      const asked = { entrant, urls: [redis.url], key, ttl: TTL };
      const worker = new Worker();
      const waiter = await openEntrant(entrant, asked.urls);
      try {
        await worker.ask('acquire', asked);
        const granted = waiter.acquire(key, { ttl: TTL, wait: 30_000 });
        // It is asleep by now; and Holdfast's holder has not renewed yet, so that all have the same lease to wait for.
        await sleep(200);
        const killed = performance.now();
        await worker.kill();
        const release = await granted;
        const took = performance.now() - killed;
        await release();
        return took;
      } finally {
        await worker.kill();
        await waiter.close();
      }
    };
    const results = await inRounds(all, quick ? 1 : 2, measure);
    await redis.flush();
    const rows = all.map((one) => ({
      label: one.label,
      kind: one.kind,
      median: median(results.get(one)),
      longest: highest(results.get(one)),
    }));
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'median', head: 'median, ms after the kill', digits: 0 },
        { name: 'longest', head: 'longest, ms', digits: 0 },
      ],
      rows,
      musts: [atMost('longest, ms', rows[0].longest, TTL + 100)],
    };
  },
};
