import { setTimeout as sleep } from 'node:timers/promises';
import { onePerLibrary, openEntrant } from '../libraries/index.mjs';
import { atMost } from '../support/must.mjs';
import { inRounds } from '../support/rounds.mjs';
import { highest, median } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';

/** How long a lock is kept for a process that was called and does not answer. */
const CLAIM_MS = 1_000;

/** Until a caller stands in line, and until a server has noticed that a connection ended. */
const SETTLED_MS = 150;

const waiterGone = ({ id, title, leave, limitMs, shortLimit }) => ({
  id,
  title,

  async run({ redis, quick }) {
    // Peers have no line, so that it makes no difference to them: one is enough to compare with.
    const all = onePerLibrary.slice(0, 2);
    const measure = ({ id: entrant }, round) =>
      withWorkers(2, async ([first, second]) => {
        const asked = { entrant, urls: [redis.url], key: `${entrant}:${round}`, ttl: 30_000 };
        await Promise.all([first, second].map((worker) => worker.ask('open', asked)));
        const holder = await openEntrant(entrant, asked.urls);
        const release = await holder.acquire(asked.key, { ttl: asked.ttl, wait: 1_000 });
        first.ask('acquire', asked).catch(() => undefined);
        await sleep(SETTLED_MS);
        const granted = second.ask('acquire', asked);
        await sleep(SETTLED_MS);
        await leave(first);
        await sleep(SETTLED_MS);
        const released = performance.now();
        await release();
        await granted;
        const took = performance.now() - released;
        await second.ask('release', asked);
        await holder.close();
        return took;
      });
    const results = await inRounds(all, quick ? 1 : 3, measure);
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
        { name: 'median', head: 'median, ms after the release', digits: 1 },
        { name: 'longest', head: 'longest, ms', digits: 1 },
      ],
      rows,
      musts: [atMost(`longest, ms (${shortLimit})`, rows[0].longest, limitMs)],
    };
  },
});

export const waiterKilled = waiterGone({
  id: 'waiter-killed',
  title:
    'The first in line is killed (SIGKILL): how long after the release until the next one has the lock',
  leave: (worker) => worker.kill(),
  limitMs: 20,
  shortLimit: 'one message',
});

export const waiterFrozen = waiterGone({
  id: 'waiter-frozen',
  title:
    'The first in line is frozen (SIGSTOP): how long after the release until the next one has the lock',
  leave: (worker) => worker.freeze(),
  limitMs: CLAIM_MS + 100,
  shortLimit: 'the claim and a little',
});
