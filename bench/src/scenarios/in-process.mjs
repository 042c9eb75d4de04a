import { atMost } from '../judge.mjs';
import { bare, holdfast } from '../libraries/index.mjs';
import { prepare } from '../support/prepare.mjs';
import { commandStats } from '../support/redis.mjs';
import { sum } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';
import { OURS } from './contest.mjs';

const KEYS = Array.from({ length: 64 }, (_, caller) => `key:${caller}`);

/** What a lock and a call cost the process, beside the CPU of the bare commands with as many callers. */
export const inMemory = {
  rows: [
    {
      name: 'memory store, 64 callers, acquire and release: client CPU',
      figure: 'memory.cpuUs',
      against: 'bare.cpuUs',
      must: atMost(0.35),
    },
    {
      name: '`run` over `acquire` and `release`, memory store: more client CPU',
      figure: 'calls.runUs',
      against: 'bare.cpuUs',
      must: atMost(0.1),
    },
    {
      name: '`@WithLock` over `run`, memory store: more client CPU',
      figure: 'calls.decoratorUs',
      against: 'bare.cpuUs',
      must: atMost(0.1),
    },
  ],

  run: (bench) =>
    withWorkers(1, async ([worker]) => {
      const ms = bench.seconds(0.3) * 1_000;
      const { url } = bench.redis;
      const cpuOf = (entrant) => async () => {
        const asked = { entrant, urls: [url], keys: KEYS, callers: KEYS.length, every: 8, ms };
        await prepare(worker, asked);
        const { counts, cpuUs } = await worker.ask('loop', asked);
        return { cpuUs: cpuUs / sum(counts) };
      };
      const variants = {
        bare: cpuOf(bare),
        memory: cpuOf(holdfast(OURS, { store: 'memory' })),
        calls: () => worker.ask('callsInMemory', { folder: OURS, ms }),
      };
      for (const warmUp of Object.values(variants)) await warmUp();
      return bench.compare(variants);
    }),
};

const LOCKS = 1_000;

/** No quick collection while so many locks are counted. */
const ROOMY = ['--expose-gc', '--max-semi-space-size=256', '--min-semi-space-size=256'];

/** No must: these are to be compared with an earlier run. */
export const weight = {
  rows: [
    { name: 'one lock: bytes allocated in the client', figure: 'holdfast.bytes' },
    {
      name: 'one lock: bytes allocated in the client',
      figure: 'holdfast.bytes',
      against: 'bare.bytes',
    },
    { name: 'one lock: Redis commands, those in scripts too', figure: 'holdfast.commands' },
    {
      name: 'one lock: Redis commands, those in scripts too',
      figure: 'holdfast.commands',
      against: 'bare.commands',
    },
  ],

  run: (bench) =>
    withWorkers(
      1,
      async ([worker]) => {
        const { url, admin } = bench.redis;
        const measure = (entrant) => async () => {
          const before = await callsOf(admin);
          const bytes = await worker.ask('locks', { entrant, urls: [url], count: LOCKS });
          return { bytes, commands: ((await callsOf(admin)) - before) / LOCKS };
        };
        const variants = { holdfast: measure(holdfast(OURS)), bare: measure(bare) };
        for (const warmUp of Object.values(variants)) await warmUp();
        return bench.compare(variants);
      },
      ROOMY,
    ),
};

async function callsOf(admin) {
  const stats = await commandStats(admin);
  return sum(Object.values(stats).map(({ calls }) => calls));
}
