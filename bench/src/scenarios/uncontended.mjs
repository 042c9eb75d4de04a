import { atLeast, atMost } from '../judge.mjs';
import { onePerLibrary } from '../libraries/index.mjs';
import { prepare } from '../support/prepare.mjs';
import { commandStats } from '../support/redis.mjs';
import { through } from '../support/slow-wire.mjs';
import { sum } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';
import { contest } from './contest.mjs';

/** Of so many locks the time of one is taken. */
const TIMED = 8;

const KEYS = Array.from({ length: 64 }, (_, caller) => `key:${caller}`);

const uncontended = ({ callers, isNew = false, awayMs, rows }) => {
  const who = callers === 1 ? 'one caller' : `${callers} callers, own keys`;
  const where = awayMs === undefined ? '' : `, Redis ${awayMs} ms away`;
  const name = `${who}, ${isNew ? 'new keys' : 'keys locked again'}${where}`;
  return {
    rows: rows.map((row) => ({ ...row, name: `${name}: ${row.name}` })),

    run: (bench) =>
      through(bench.redis, awayMs, (url) =>
        withWorkers(1, async ([worker]) => {
          const measure = async (entrant) => {
            const keys = isNew ? undefined : KEYS;
            const ms = bench.seconds(0.3) * 1_000;
            const asked = { entrant, urls: [url], keys, callers, every: TIMED, ms };
            await prepare(worker, asked);
            const before = await serverUs(bench.redis, entrant);
            const { counts, cpuUs, ms: tookMs } = await worker.ask('loop', asked);
            const count = sum(counts);
            return {
              perSecond: (count / tookMs) * 1_000,
              cpuUs: cpuUs / count,
              serverUs: ((await serverUs(bench.redis, entrant)) - before) / count,
            };
          };
          return bench.compare(...(await contest(bench, onePerLibrary, measure)));
        }),
      ),
  };
};

/** What the calls of the client have cost the server. The time of a script contains its commands, and only those by hand send SET. */
async function serverUs({ admin }, { module }) {
  const stats = await commandStats(admin);
  return (stats.evalsha?.us ?? 0) + (module === 'bare' ? (stats.set?.us ?? 0) : 0);
}

const figure = (name, one, must) => ({
  name,
  figure: `holdfast.${one}`,
  against: `bare.${one}`,
  must,
});
const rate = (must) => figure('locks per second', 'perSecond', must);
const cpu = (must) => figure('client CPU', 'cpuUs', must);
const server = (must) => figure('time in the server', 'serverUs', must);
const toPeer = {
  name: 'locks per second',
  figure: 'holdfast.perSecond',
  against: 'peer.perSecond',
  must: atLeast(1),
};

const one = [rate(atLeast(0.8)), cpu(atMost(1.25)), server(atMost(3.2))];
const grouped = (least) => [rate(atLeast(least)), toPeer, cpu(atMost(0.85)), server(atMost(1.9))];
const far = [rate(atLeast(0.95))];

/** Each lock is the least there is: nobody else wants its key. */
export const uncontendedScenarios = [
  uncontended({ callers: 1, rows: one }),
  uncontended({ callers: 1, isNew: true, rows: one }),
  uncontended({ callers: 64, rows: grouped(1.4) }),
  uncontended({ callers: 64, isNew: true, rows: grouped(1.1) }),
  uncontended({ callers: 1, awayMs: 0.5, rows: far }),
  uncontended({ callers: 1, isNew: true, awayMs: 0.5, rows: far }),
  uncontended({ callers: 64, awayMs: 0.5, rows: far }),
  uncontended({ callers: 64, isNew: true, awayMs: 0.5, rows: far }),
];
