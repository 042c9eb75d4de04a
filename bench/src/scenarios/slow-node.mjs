import { onePerLibrary } from '../libraries/index.mjs';
import { atMost } from '../support/must.mjs';
import { startRedis } from '../support/redis.mjs';
import { inRounds } from '../support/rounds.mjs';
import { startSlowWire } from '../support/slow-wire.mjs';
import { median } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';

const DELAY_MS = 100;

export const slowNode = {
  id: 'slow-node',
  title: `A quorum of 3, one node ${DELAY_MS} ms further away: how long acquire takes`,

  async run({ redis, quick }) {
    const ms = quick ? 300 : 500;
    const others = [await startRedis(), await startRedis()];
    const wire = await startSlowWire(redis.port, DELAY_MS);
    const near = [redis.url, ...others.map(({ url }) => url)];
    const far = [wire.url, ...others.map(({ url }) => url)];
    let results;
    try {
      results = await withWorkers(1, ([worker]) => {
        const measure = async ({ id: entrant }, round) => {
          const latency = async (urls) => {
            const prefix = `${entrant}:${round}:${urls === far}`;
            await worker.ask('open', { entrant, urls });
            return median(await worker.ask('latency', { entrant, urls, prefix, ms }));
          };
          return { near: await latency(near), far: await latency(far) };
        };
        return inRounds(onePerLibrary, quick ? 2 : 4, measure);
      });
    } finally {
      await wire.stop();
      await Promise.all(others.map((server) => server.stop()));
    }
    await redis.flush();

    const rows = onePerLibrary.map((one) => {
      // The first round warms up.
      const rounds = results.get(one).slice(1);
      return {
        label: one.library,
        kind: one.kind,
        near: median(rounds.map((round) => round.near)),
        far: median(rounds.map((round) => round.far)),
        ratio: median(rounds.map((round) => round.far / round.near)),
      };
    });
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'near', head: 'three near, ms', digits: 2 },
        { name: 'far', head: `one ${DELAY_MS} ms away, ms`, digits: 2 },
        { name: 'ratio', head: '×', digits: 2 },
      ],
      rows,
      musts: [atMost('with one slow node / with three near ones', rows[0].ratio, 1.3)],
      plot: { name: 'far', unit: 'ms', digits: 2 },
    };
  },
};
