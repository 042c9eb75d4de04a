import { atLeast } from '../judge.mjs';
import { bareWith, holdfast } from '../libraries/index.mjs';
import { packages } from '../libraries/packages.mjs';
import { prepare } from '../support/prepare.mjs';
import { sum } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';
import { OURS } from './contest.mjs';

/** Of so many locks the time of one is taken. */
const TIMED = 8;

const LEAST = { 1: 0.75, 64: 1.1 };

/** Its work is done by a thread beside that of JavaScript: reported without a must. */
const REPORTED = 'valkey-glide';

const withPackage = (client, callers) => {
  const who = callers === 1 ? 'one caller' : `${callers} callers, own keys`;
  const row = {
    name: `${client}: ${who}, new keys: locks per second`,
    figure: 'holdfast.perSecond',
    against: 'bare.perSecond',
    must: client === REPORTED ? undefined : atLeast(LEAST[callers]),
  };
  return {
    rows: [row],
    run: (bench) =>
      withWorkers(1, async ([worker]) => {
        const measure = (entrant) => async () => {
          const ms = bench.seconds(0.3) * 1_000;
          const asked = { entrant, urls: [bench.redis.url], callers, every: TIMED, ms };
          await prepare(worker, asked);
          const { counts, ms: tookMs } = await worker.ask('loop', asked);
          return { perSecond: (sum(counts) / tookMs) * 1_000 };
        };
        const bare = bareWith(client);
        const variants = { holdfast: measure(holdfast(OURS, { client })), bare: measure(bare) };
        for (const warmUp of Object.values(variants)) await warmUp();
        return bench.compare(variants, { bare: bare.label });
      }),
  };
};

/** Each lock is the least there is, with a client of each package beside its own bare commands. */
export const packageScenarios = Object.keys(packages).flatMap((client) => [
  withPackage(client, 1),
  withPackage(client, 64),
]);
