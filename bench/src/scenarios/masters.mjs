import { atLeast, atMost } from '../judge.mjs';
import { holdfast, onePerLibrary } from '../libraries/index.mjs';
import { prepare } from '../support/prepare.mjs';
import { startRedis } from '../support/redis.mjs';
import { sum } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';
import { contest, OURS } from './contest.mjs';

const redlock5 = onePerLibrary.filter(({ module }) => module === 'redlock5');

/** So many servers beside those that are given, for as long as `use` runs. */
async function withServers(count, use) {
  const servers = [];
  try {
    while (servers.length < count) servers.push(await startRedis());
    return await use(servers);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/**
 * @param workerCount processes that do the same; the first one is measured
 * @param method what they do
 */
const threeMasters = (name, workerCount, method) => ({
  rows: [
    {
      name: `three masters, one caller, new keys, ${name}: locks per second`,
      figure: 'holdfast.perSecond',
      against: 'peer.perSecond',
      must: atLeast(0.85),
    },
  ],

  run: (bench) =>
    withServers(3, (servers) =>
      withWorkers(workerCount, async (workers) => {
        const urls = servers.map(({ url }) => url);
        const measure = async (entrant) => {
          const asked = { entrant, urls, callers: 1, every: 8, ms: bench.seconds(0.3) * 1_000 };
          await Promise.all(workers.map((worker) => prepare(worker, asked)));
          const [first] = await Promise.all(workers.map((worker) => worker.ask(method, asked)));
          return { perSecond: (sum(first.counts) / first.ms) * 1_000 };
        };
        return bench.compare(...(await contest(bench, redlock5, measure)));
      }),
    ),
});

/** One node accepts connections and requests, and does not reply. */
const silentNode = {
  rows: [
    {
      name: 'three masters, one caller, new keys, a silent node: time of a lock',
      figure: 'silent.us',
      against: 'healthy.us',
      must: atMost(1.3),
    },
  ],

  run: (bench) =>
    withServers(4, (servers) =>
      withWorkers(1, async ([worker]) => {
        const measure = (from) => async () => {
          const urls = servers.slice(from, from + 3).map(({ url }) => url);
          const ms = bench.seconds(0.3) * 1_000;
          const asked = { entrant: holdfast(OURS), urls, callers: 1, every: 8, ms };
          await prepare(worker, asked);
          const { counts, ms: tookMs } = await worker.ask('loop', asked);
          return { us: (tookMs / sum(counts)) * 1_000 };
        };
        const variants = { healthy: measure(0), silent: measure(1) };
        for (const warmUp of Object.values(variants)) await warmUp();
        servers.at(-1).freeze();
        return bench.compare(variants);
      }),
    ),
};

export const masterScenarios = [
  threeMasters('alone', 1, 'loop'),
  threeMasters('beside a process that locks other keys', 2, 'loop'),
  threeMasters('beside a contender for each key', 1, 'race'),
  silentNode,
];
