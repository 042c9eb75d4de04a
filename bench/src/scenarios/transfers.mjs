import { holdfast } from '../libraries/index.mjs';
import { atLeast, atMost } from '../support/must.mjs';
import { startRedis } from '../support/redis.mjs';
import { inRounds } from '../support/rounds.mjs';
import { startSlowWire } from '../support/slow-wire.mjs';
import { highest, median, quantile, ratio, sum } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';

const PROCESSES = 5;
const CALLERS = 8;
const ACCOUNTS = [3, 10, 100];
const AWAY_MS = 1;

/** One that is refused comes back at random within so many ms, which is as fast as anybody polls. */
const POLL_MS = 5;

const ways = [
  { how: 'wait', label: 'waiting (`acquire`)' },
  { how: 'poll', label: `polling (\`tryAcquire\`, 0 to ${POLL_MS} ms)` },
];

const named = (count) => Array.from({ length: count }, (_, index) => `account:${index + 1}`);

/** Each transfer needs two accounts at once, chosen at random. The peers take several keys one by one, or on one server only. */
export const transfers = {
  id: 'transfers',
  title: `Transfers between two accounts of several, under the locks of both, ${PROCESSES} processes × ${CALLERS} callers, 1 ms of work`,

  async run({ redis, quick }) {
    const ms = quick ? 1_000 : 2_000;
    const masters = [redis, await startRedis(), await startRedis()];
    const wire = await startSlowWire(redis.port, AWAY_MS);
    const places = [
      { place: 'one Redis', urls: [redis.url], servers: [redis] },
      { place: `one Redis, ${AWAY_MS} ms away`, urls: [wire.url], servers: [redis] },
      { place: 'three masters', urls: masters.map(({ url }) => url), servers: masters },
    ];
    const all = places.flatMap((place) =>
      ACCOUNTS.flatMap((accounts) => ways.map((way) => ({ ...place, ...way, accounts }))),
    );
    let results;
    try {
      results = await withWorkers(PROCESSES, (workers) => {
        const measure = async ({ urls, how, servers, accounts }) => {
          const keys = named(accounts);
          const asked = { entrant: holdfast.id, urls, how, keys, pollMs: POLL_MS };
          await Promise.all(workers.map((worker) => worker.ask('open', asked)));
          const before = await commandsOf(servers);
          const parts = await Promise.all(
            workers.map((worker) => worker.ask('transfers', { ...asked, callers: CALLERS, ms })),
          );
          const waits = parts.flatMap((part) => [...part.waits]);
          return {
            perSecond: (waits.length / ms) * 1_000,
            p99: quantile(waits, 0.99),
            longest: highest(waits),
            commands: ((await commandsOf(servers)) - before) / waits.length,
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
      const polling = all.find(
        ({ place, how, accounts }) =>
          place === one.place && accounts === one.accounts && how === 'poll',
      );
      return {
        label: `${one.accounts} accounts, ${one.place}, ${one.label}`,
        servers: one.servers.length,
        kind: one.how === 'wait' ? 'holdfast' : 'peer',
        perSecond: median(of(one, 'perSecond')),
        toPolling: one === polling ? NaN : ratio(of(one, 'perSecond'), of(polling, 'perSecond')),
        p99: median(of(one, 'p99')),
        longest: highest(of(one, 'longest')),
        commands: median(of(one, 'commands')),
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
        { name: 'commands', head: 'Redis commands for each, those in scripts counted', digits: 0 },
        { name: 'refused', head: 'refused after 10 s', digits: 0 },
      ],
      rows,
      musts: [
        atLeast('waiting / polling', Math.min(...waiting.map((row) => row.toPolling)), 0.85),
        atMost(
          'commands for each, one Redis',
          highest(waiting.filter((row) => row.servers === 1).map((row) => row.commands)),
          40,
        ),
        atMost('refused', highest(waiting.map((row) => row.refused)), 0),
      ],
      plot: { name: 'perSecond', unit: 'per second', digits: 0 },
    };
  },
};

/** How many commands all of them have run so far, those in scripts too. */
async function commandsOf(servers) {
  const counts = servers.map(async ({ admin }) => {
    const info = await admin.info('commandstats');
    return sum(
      [...info.matchAll(/cmdstat_(?!info|config)[^:]*:calls=(\d+)/g)].map(([, calls]) =>
        Number(calls),
      ),
    );
  });
  return sum(await Promise.all(counts));
}
