import { entrants, holdfast, onePerLibrary, waiting } from '../libraries/index.mjs';
import { atLeast, atMost } from '../support/must.mjs';
import { inRounds } from '../support/rounds.mjs';
import { far, FAR_MS, through } from '../support/slow-wire.mjs';
import { highest, jain, median, quantile, ratio, sum } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';

const WARM_UP_MS = 300;

/** Until all processes have got the message. */
const START_IN_MS = 30;

/**
 * @param held how the lock is held
 * @param keys one for all callers, or one for each
 * @param ask what the worker is asked to do
 * @param among who takes part, if not all
 * @param awayMs how much longer each answer takes
 */
const contended = ({
  id,
  title,
  processes,
  callers,
  sectionMs = 0,
  held = {},
  keys = ['one key'],
  ask = 'loop',
  among,
  awayMs = 0,
  musts,
}) => ({
  id,
  title: title + far(awayMs),

  async run({ redis, quick }) {
    const all = among ?? (quick ? onePerLibrary : waiting);
    const ms = quick ? 600 : 1_500;
    const withAll = (url) => async (workers) => {
      const measure = async ({ id: entrant }, time) => {
        const asked = { entrant, urls: [url], keys, callers, sectionMs, held };
        await Promise.all(workers.map((worker) => worker.ask('open', asked)));
        const startAt = Date.now() + START_IN_MS;
        const parts = await Promise.all(
          workers.map((worker) => worker.ask(ask, { ...asked, ms: time, startAt })),
        );
        const counts = parts.flatMap((part) => part.counts);
        const waits = parts.flatMap((part) => [...part.waits]);
        return {
          perSecond: (sum(counts) / time) * 1_000,
          p50: quantile(waits, 0.5),
          p99: quantile(waits, 0.99),
          longest: highest(waits),
          jain: jain(counts),
          sectionMs: median(parts.flatMap((part) => [...part.sections])),
          failed: sum(parts.map(({ failed }) => failed)),
        };
      };
      for (const one of all) await measure(one, quick ? 100 : WARM_UP_MS);
      return inRounds(all, quick ? 1 : 3, (one) => measure(one, ms));
    };
    const results = await through(redis, awayMs, (url) => withWorkers(processes, withAll(url)));
    await redis.flush();

    const of = (one, name) => results.get(one).map((result) => result[name]);
    const ours = of(holdfast, 'perSecond');
    const rows = all.map((one) => ({
      label: one.label,
      kind: one.kind,
      perSecond: median(of(one, 'perSecond')),
      best: highest(of(one, 'perSecond')),
      ours: one === holdfast ? NaN : ratio(ours, of(one, 'perSecond')),
      p50: median(of(one, 'p50')),
      p99: median(of(one, 'p99')),
      longest: highest(of(one, 'longest')),
      jain: median(of(one, 'jain')),
      sectionMs: median(of(one, 'sectionMs')),
      between: 1_000 / median(of(one, 'perSecond')) - median(of(one, 'sectionMs')),
      failed: sum(of(one, 'failed')),
    }));
    const peers = rows.filter(({ kind }) => kind === 'peer');
    const [first] = rows;
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'perSecond', head: 'per second', digits: 0 },
        { name: 'ours', head: 'Holdfast is × as fast', digits: 1 },
        { name: 'p50', head: 'median wait, ms', digits: 1 },
        { name: 'p99', head: 'p99 wait, ms', digits: 1 },
        { name: 'longest', head: 'longest wait, ms', digits: 0 },
        { name: 'jain', head: "Jain's index", digits: 3 },
        ...(sectionMs > 0 && held.limit === undefined
          ? [
              { name: 'sectionMs', head: 'section, ms', digits: 2 },
              { name: 'between', head: 'to the next section, ms', digits: 2 },
            ]
          : []),
        { name: 'failed', head: 'failed', digits: 0 },
      ],
      rows,
      musts: musts({
        // Its luckiest run counts.
        toBestPeer: first.perSecond / highest(peers.map((row) => row.best)),
        p99: first.p99,
        longest: first.longest,
        jain: first.jain,
        sectionMs: median(of(holdfast, 'sectionMs')),
      }),
      plot: { name: 'perSecond', unit: 'per second', digits: 0 },
    };
  },
});

const ONE_PROCESS = {
  id: 'one-process',
  title: 'One process, 32 callers on one key, nothing to do under the lock',
  processes: 1,
  callers: 32,
  musts: ({ toBestPeer, longest }) => [
    atLeast('throughput / best peer', toBestPeer, 15),
    atMost('longest wait, ms', longest, 20),
  ],
};
export const oneProcess = contended(ONE_PROCESS);

const FOUR_PROCESSES = {
  id: 'four-processes',
  title: '4 processes × 8 callers on one key, nothing to do under the lock',
  processes: 4,
  callers: 8,
  musts: ({ toBestPeer, jain: fairness, p99, longest }) => [
    atLeast('throughput / best peer', toBestPeer, 5),
    atLeast("Jain's fairness index over the callers", fairness, 0.99),
    atMost('p99 wait, ms', p99, 10),
    atMost('longest wait, ms', longest, 60),
  ],
};
export const fourProcesses = contended(FOUR_PROCESSES);

const SECTION = {
  id: 'section-5ms',
  title: '4 processes × 8 callers on one key, 5 ms of work under the lock',
  processes: 4,
  callers: 8,
  sectionMs: 5,
  musts: ({ toBestPeer, jain: fairness, p99, sectionMs }) => [
    atLeast('throughput / best peer', toBestPeer, 0.98),
    atMost('p99 wait / 32 sections', p99 / (32 * sectionMs), 1.2),
    atLeast("Jain's fairness index over the callers", fairness, 0.99),
  ],
};
export const section = contended(SECTION);

/** A way to the server takes what it takes: throughput is what can be compared. */
const farMusts = ({ toBestPeer }) => [atLeast('throughput / best peer', toBestPeer, 1)];

export const farContended = FAR_MS.flatMap((awayMs) =>
  [ONE_PROCESS, FOUR_PROCESSES, SECTION].map((scenario) =>
    contended({
      ...scenario,
      id: `far-${scenario.id}-${awayMs}`,
      among: onePerLibrary,
      awayMs,
      musts: scenario === SECTION ? SECTION.musts : farMusts,
    }),
  ),
);

/** The only peer that has it. */
const semaphores = [holdfast, ...entrants.filter(({ module }) => module === 'redis-semaphore')];
const isNoSlower = ({ toBestPeer }) => [atLeast('throughput / best peer', toBestPeer, 1)];

export const limited = contended({
  id: 'limited',
  title: '64 callers, 8 at a time (`limit`), nothing to do meanwhile',
  processes: 1,
  callers: 64,
  held: { limit: 8 },
  among: semaphores,
  musts: isNoSlower,
});

export const limitedSection = contended({
  id: 'limited-5ms',
  title: '64 callers, 8 at a time (`limit`), 5 ms of work',
  processes: 1,
  callers: 64,
  held: { limit: 8 },
  sectionMs: 5,
  among: semaphores,
  musts: isNoSlower,
});

export const places = [1, 3].map((count) =>
  contended({
    id: `places-${count}`,
    title: `32 callers, ${count} of 10 places each (\`places\`), 5 ms of work`,
    processes: 1,
    callers: 32,
    held: { limit: 10, places: count },
    sectionMs: 5,
    among: semaphores,
    musts: isNoSlower,
  }),
);

export const shared = contended({
  id: 'shared',
  title: "64 readers of one key (`mode: 'shared'`), nothing to do meanwhile",
  processes: 1,
  callers: 64,
  held: { mode: 'shared' },
  among: [holdfast],
  musts: () => [],
});

export const once = contended({
  id: 'run-once',
  title: '`runOnce`: 64 callers, each with work of its own, one piece after the other',
  processes: 1,
  callers: 64,
  keys: Array.from({ length: 64 }, (_, caller) => `work:${caller}`),
  ask: 'once',
  among: [holdfast],
  musts: () => [],
});
