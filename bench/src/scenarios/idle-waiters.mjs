import { setTimeout as sleep } from 'node:timers/promises';
import { onePerLibrary, openEntrant, waiting } from '../libraries/index.mjs';
import { atMost } from '../support/must.mjs';
import { withWorkers } from '../support/workers.mjs';

const PROCESSES = 4;
const CALLERS = 8;

export const idleWaiters = {
  id: 'idle-waiters',
  title: `${PROCESSES} processes × ${CALLERS} callers wait while another caller holds the lock: what Redis is asked meanwhile`,

  async run({ redis, quick }) {
    const holdMs = quick ? 500 : 3_000;
    const monitor = await redis.admin.monitor();
    let commands = 0;
    // What a service publishes of itself every 5 s does not depend on who waits.
    monitor.on('monitor', (_time, words, source) => {
      if (source !== 'lua' && words.some((word) => word.includes('key'))) commands += 1;
    });
    const rows = await withWorkers(PROCESSES, async (workers) => {
      const found = [];
      for (const { id: entrant, label, kind } of quick ? onePerLibrary : waiting) {
        const asked = { entrant, urls: [redis.url], callers: CALLERS };
        const holder = await openEntrant(entrant, asked.urls);
        const hold = (key) => holder.acquire(key, { ttl: 30_000, wait: 1_000 });
        const queue = (key) => workers.map((worker) => worker.ask('queue', { ...asked, key }));

        // Once before it counts: connections, scripts and the subscription are made by whoever first needs them.
        await Promise.all(workers.map((worker) => worker.ask('open', asked)));
        const releaseFirst = await hold('first');
        const warmUp = queue('first');
        await sleep(300);
        await releaseFirst();
        await Promise.all(warmUp);

        const release = await hold('key');
        await sleep(50);
        commands = 0;
        const queued = queue('key');
        await sleep(holdMs);
        const all = commands;
        await release();
        await Promise.all(queued);
        await holder.close();
        found.push({
          label,
          kind,
          perProcess: all / PROCESSES,
          perWaiter: (all / PROCESSES / CALLERS / holdMs) * 1_000,
          all,
        });
      }
      return found;
    });
    monitor.disconnect();
    await redis.flush();
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'all', head: `commands in ${holdMs / 1_000} s`, digits: 0 },
        { name: 'perProcess', head: 'for each process', digits: 1 },
        { name: 'perWaiter', head: 'for each caller and second', digits: 2 },
      ],
      rows,
      musts: [atMost('commands for each waiting process', rows[0].perProcess, 1)],
      plot: { name: 'all', unit: `commands in ${holdMs / 1_000} s`, digits: 0 },
    };
  },
};
