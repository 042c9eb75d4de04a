import { atLeast } from '../judge.mjs';
import { through } from '../support/slow-wire.mjs';
import { sum } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';
import { contest } from './contest.mjs';

const PROCESSES = 5;
const CALLERS = 8;

/** Each transfer needs two accounts at once, chosen at random, for 1 ms. */
const transfers = (accounts, awayMs) => {
  const where = awayMs === undefined ? '' : `, Redis ${awayMs} ms away`;
  const keys = Array.from({ length: accounts }, (_, index) => `account:${index}`);
  return {
    rows: [
      {
        name: `transfers between ${accounts} accounts, ${PROCESSES} processes × ${CALLERS} callers${where}: transfers per second`,
        figure: 'holdfast.perSecond',
        against: 'baseline.perSecond',
        must: atLeast(0.85),
      },
    ],

    run: (bench) =>
      through(bench.redis, awayMs, (url) =>
        withWorkers(PROCESSES, async (workers) => {
          const measure = async (entrant) => {
            const ms = bench.seconds(2) * 1_000;
            const asked = { entrant, urls: [url], keys, callers: CALLERS, ms };
            await Promise.all(workers.map((worker) => worker.ask('open', asked)));
            const counts = await Promise.all(
              workers.map((worker) => worker.ask('transfers', asked)),
            );
            return { perSecond: (sum(counts) / ms) * 1_000 };
          };
          return bench.compare(...(await contest(bench, [], measure)));
        }),
      ),
  };
};

export const transferScenarios = [undefined, 0.5].flatMap((awayMs) =>
  [3, 10, 100].map((accounts) => transfers(accounts, awayMs)),
);
