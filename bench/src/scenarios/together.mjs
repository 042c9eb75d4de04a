import { entrants, holdfast } from '../libraries/index.mjs';
import { atLeast } from '../support/must.mjs';
import { inRounds } from '../support/rounds.mjs';
import { highest, jain, median, quantile, ratio, sum } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';

const CALLERS = 64;
const WARM_UP_MS = 300;

/** The only peer that has it. */
const semaphores = entrants.filter(({ module }) => module === 'redis-semaphore');

const together = ({
  id,
  title,
  rivals,
  held = {},
  method = 'loop',
  sectionMs = 0,
  oneKey = true,
  musts,
}) => ({
  id,
  title,

  async run({ redis, quick }) {
    const all = [holdfast, ...rivals];
    const keys = oneKey
      ? ['held together']
      : Array.from({ length: CALLERS }, (_, caller) => `work:${caller}`);
    const results = await withWorkers(1, async ([worker]) => {
      const measure = async ({ id: entrant }, ms) => {
        const asked = { entrant, urls: [redis.url], keys, callers: CALLERS, sectionMs, held, ms };
        const before = await redis.cpuSeconds();
        const { counts, waits, failed } = await worker.ask(method, asked);
        const serverUs = (((await redis.cpuSeconds()) - before) * 1e6) / Math.max(1, waits.length);
        return {
          perSecond: (sum(counts) / ms) * 1_000,
          p50: quantile(waits, 0.5),
          p99: quantile(waits, 0.99),
          longest: highest(waits),
          jain: jain(counts),
          serverUs,
          failed,
        };
      };
      for (const one of all) await measure(one, quick ? 100 : WARM_UP_MS);
      return inRounds(all, quick ? 1 : 3, (one) => measure(one, quick ? 400 : 1_500));
    });
    await redis.flush();

    const of = (one, name) => results.get(one).map((result) => result[name]);
    const ours = of(holdfast, 'perSecond');
    const rows = all.map((one) => ({
      label: one.label,
      kind: one.kind,
      perSecond: median(of(one, 'perSecond')),
      ours: one === holdfast ? NaN : ratio(ours, of(one, 'perSecond')),
      p50: median(of(one, 'p50')),
      p99: median(of(one, 'p99')),
      longest: highest(of(one, 'longest')),
      jain: median(of(one, 'jain')),
      serverUs: median(of(one, 'serverUs')),
      failed: sum(of(one, 'failed')),
    }));
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'perSecond', head: 'per second', digits: 0 },
        { name: 'ours', head: 'Holdfast is × as fast', digits: 1 },
        { name: 'p50', head: 'median wait, ms', digits: 1 },
        { name: 'p99', head: 'p99 wait, ms', digits: 1 },
        { name: 'longest', head: 'longest wait, ms', digits: 0 },
        { name: 'jain', head: "Jain's index", digits: 3 },
        { name: 'serverUs', head: 'server CPU, µs', digits: 0 },
        { name: 'failed', head: 'failed', digits: 0 },
      ],
      rows,
      musts: musts(Math.min(...rows.slice(1).map((row) => row.ours))),
      plot: { name: 'perSecond', unit: 'per second', digits: 0 },
    };
  },
});

const isNoSlower = (toBestPeer) => [atLeast('throughput / best peer', toBestPeer, 1)];

export const limited = together({
  id: 'limited',
  title: '64 callers, 8 at a time, nothing to do meanwhile',
  rivals: semaphores,
  held: { limit: 8 },
  musts: isNoSlower,
});

export const limitedSection = together({
  id: 'limited-5ms',
  title: '64 callers, 8 at a time, 5 ms of work',
  rivals: semaphores,
  held: { limit: 8 },
  sectionMs: 5,
  musts: isNoSlower,
});

export const shared = together({
  id: 'shared',
  title: '64 readers of one key, nothing to do meanwhile',
  rivals: [],
  held: { mode: 'shared' },
  musts: () => [],
});

export const once = together({
  id: 'run-once',
  title: 'runOnce: 64 callers, each with work of its own, one piece after the other',
  rivals: [],
  method: 'once',
  oneKey: false,
  musts: () => [],
});
