import { atLeast, atMost } from '../judge.mjs';
import { peers } from '../libraries/index.mjs';
import { through } from '../support/slow-wire.mjs';
import { jain, sum } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';
import { contest } from './contest.mjs';

/** Until all processes have got the message. */
const START_IN_MS = 30;

/** Processes with callers who all want one key. */
const contended = ({ processes, callers, sectionMs = 0, awayMs, seconds, rows }) => {
  const who = processes === 1 ? 'one process' : `${processes} processes`;
  const work = sectionMs === 0 ? 'no work' : `${sectionMs} ms of work`;
  const where = awayMs === undefined ? '' : `, Redis ${awayMs} ms away`;
  const name = `${who} × ${callers} callers on one key, ${work}${where}`;
  return {
    rows: rows.map((row) => ({ ...row, name: `${name}: ${row.name}` })),

    run: (bench) =>
      through(bench.redis, awayMs, (url) =>
        withWorkers(processes, async (workers) => {
          const ms = bench.seconds(seconds) * 1_000;
          const measure = async (entrant) => {
            const asked = { entrant, urls: [url], keys: ['one key'], callers, sectionMs, ms };
            await Promise.all(workers.map((worker) => worker.ask('open', asked)));
            const startAt = Date.now() + START_IN_MS;
            const parts = await Promise.all(
              workers.map((worker) => worker.ask('loop', { ...asked, startAt })),
            );
            const counts = parts.flatMap((part) => part.counts);
            return {
              perSecond: (sum(counts) / Math.max(...parts.map((part) => part.ms))) * 1_000,
              longestMs: Math.max(...parts.map((part) => part.longest)),
              jain: jain(counts),
            };
          };
          return bench.compare(...(await contest(bench, peers, measure)));
        }),
      ),
  };
};

const to = (against, least) => ({
  name: 'locks per second',
  figure: 'holdfast.perSecond',
  against: `${against}.perSecond`,
  must: atLeast(least),
});

const between = (leastToPeer) => [
  to('baseline', 0.95),
  to('peer', leastToPeer),
  { name: "Jain's index", figure: 'holdfast.jain', must: atLeast(0.99) },
];

const four = { processes: 4, callers: 8 };
const empty = { ...four, seconds: 1 };
const section = { ...four, sectionMs: 5, seconds: 2 };

export const contendedScenarios = [
  contended({
    processes: 1,
    callers: 32,
    seconds: 0.5,
    rows: [
      to('peer', 20),
      { name: 'longest wait, ms', figure: 'holdfast.longestMs', must: atMost(20) },
    ],
  }),
  contended({ ...empty, rows: between(8) }),
  contended({ ...section, rows: between(0.9) }),
  contended({ ...empty, awayMs: 0.5, rows: between(1) }),
  contended({ ...section, awayMs: 0.5, rows: between(1) }),
];
