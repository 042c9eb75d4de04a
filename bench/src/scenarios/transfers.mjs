import { holdfast } from '../libraries/index.mjs';
import { atLeast, atMost } from '../support/must.mjs';
import { startRedis } from '../support/redis.mjs';
import { inRounds } from '../support/rounds.mjs';
import { startSlowWire } from '../support/slow-wire.mjs';
import { highest, median, quantile, ratio, sum } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';

const PROCESSES = 5;
const CALLERS = 8;
const ACCOUNTS = ['account:1', 'account:2', 'account:3'];
const AWAY_MS = 1;

/** One that is refused comes back at random within so many ms, which is as fast as anybody polls. */
const POLL_MS = 5;

const ways = [
  { how: 'wait', label: 'waiting (`acquire`)' },
  { how: 'poll', label: `polling (\`tryAcquire\`, 0 to ${POLL_MS} ms)` },
];

/** Each transfer needs two of the three accounts at once. The peers take several keys one by one, or on one server only. */
export const transfers = {
  id: 'transfers',
  title: `Transfers between 3 accounts, each under the locks of two, ${PROCESSES} processes × ${CALLERS} callers, 1 ms of work`,

  async run({ redis, quick }) {
    const ms = quick ? 1_000 : 2_000;
    const masters = [redis, await startRedis(), await startRedis()];
    const wire = await startSlowWire(redis.port, AWAY_MS);
    const places = [
      { place: 'one Redis', urls: [redis.url], servers: [redis] },
      { place: `one Redis, ${AWAY_MS} ms away`, urls: [wire.url], servers: [redis] },
      { place: 'three masters', urls: masters.map(({ url }) => url), servers: masters },
    ];
    const all = places.flatMap((place) => ways.map((way) => ({ ...place, ...way })));
    let results;
    try {
      results = await withWorkers(PROCESSES, (workers) => {
        const measure = async ({ urls, how, servers }) => {
          const asked = { entrant: holdfast.id, urls, how, keys: ACCOUNTS, pollMs: POLL_MS };
          await Promise.all(workers.map((worker) => worker.ask('open', asked)));
          const before = await scriptsOf(servers);
          const parts = await Promise.all(
            workers.map((worker) => worker.ask('transfers', { ...asked, callers: CALLERS, ms })),
          );
          const waits = parts.flatMap((part) => [...part.waits]);
          return {
            perSecond: (waits.length / ms) * 1_000,
            p99: quantile(waits, 0.99),
            longest: highest(waits),
            scripts: ((await scriptsOf(servers)) - before) / waits.length,
            refused: sum(parts.map(({ refused }) => refused)),
          };
        };
        return inRounds(all, quick ? 2 : 4, measure);
      });
    } finally {
      await wire.stop();
      await Promise.all(masters.slice(1).map((server) => server.stop()));
    }
    await redis.flush();

    // The first round warms up.
    const of = (one, name) =>
      results.get(one).flatMap((result, round) => (round > 0 ? [result[name]] : []));
    const rows = all.map((one) => {
      const polling = all.find(({ place, how }) => place === one.place && how === 'poll');
      return {
        label: `${one.place}, ${one.label}`,
        kind: one.how === 'wait' ? 'holdfast' : 'peer',
        perSecond: median(of(one, 'perSecond')),
        toPolling: one === polling ? NaN : ratio(of(one, 'perSecond'), of(polling, 'perSecond')),
        p99: median(of(one, 'p99')),
        longest: highest(of(one, 'longest')),
        scripts: median(of(one, 'scripts')),
        refused: sum(of(one, 'refused')),
      };
    });
    const waiting = rows.filter(({ kind }) => kind === 'holdfast');
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'perSecond', head: 'transfers per second', digits: 0 },
        { name: 'toPolling', head: '× polling', digits: 1 },
        { name: 'p99', head: 'p99 wait, ms', digits: 0 },
        { name: 'longest', head: 'longest wait, ms', digits: 0 },
        { name: 'scripts', head: 'scripts for each', digits: 1 },
        { name: 'refused', head: 'refused after 10 s', digits: 0 },
      ],
      rows,
      musts: [
        atLeast('waiting / polling', Math.min(...waiting.map((row) => row.toPolling)), 1),
        atMost('scripts for each', highest(waiting.map((row) => row.scripts)), 30),
        atMost('refused', highest(waiting.map((row) => row.refused)), 0),
      ],
      plot: { name: 'perSecond', unit: 'per second', digits: 0 },
    };
  },
};

/** How many scripts all of them have run so far. */
async function scriptsOf(servers) {
  const counts = servers.map(async ({ admin }) => {
    const info = await admin.info('commandstats');
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0);
  });
  return sum(await Promise.all(counts));
}
