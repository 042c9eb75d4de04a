import { bare, byId, entrants, holdfast, onePerLibrary } from '../libraries/index.mjs';
import { atLeast, atMost } from '../support/must.mjs';
import { startRedis } from '../support/redis.mjs';
import { inRounds } from '../support/rounds.mjs';
import { far, FAR_MS, through } from '../support/slow-wire.mjs';
import { highest, median, quantile, ratio, sum } from '../support/stats.mjs';
import { withWorkers } from '../support/workers.mjs';

/**
 * So long each entrant is used by many callers at first, also where one is measured: a service that has run for an hour has
 * compiled its code, and one caller far from Redis makes too few calls for that in the time of a bench.
 */
const WARM_UP_MS = 1_000;

const WARM_UP_CALLERS = 64;

/** After its turn came, an entrant runs so long before it is measured. */
const RUN_UP_MS = 100;

/** Nobody waits here, so the pauses between tries do not matter. */
const all = entrants.filter((one) => one.kind !== 'peer' || onePerLibrary.includes(one));

/** Of so many locks the time of one is taken. */
const TIMED = 8;

const leastOf = (callers, awayMs) => {
  if (awayMs > 0) return 0.98;
  return callers === 1 ? 0.9 : 1;
};

/** @returns of each entrant the results of its rounds */
const inTurn = (among, { redis, urls, callers, quick }) =>
  withWorkers(1, async ([worker]) => {
    const keys = Array.from({ length: WARM_UP_CALLERS }, (_, caller) => `key:${caller}`);
    const loop = ({ id: entrant }, options) =>
      worker.ask('loop', { entrant, urls, keys, every: TIMED, ...options });
    for (const one of among)
      await loop(one, { callers: WARM_UP_CALLERS, ms: quick ? 200 : WARM_UP_MS });
    return inRounds(among, quick ? 3 : 5, async (one) => {
      // What the one before left to be collected is not its cost.
      await loop(one, { callers, ms: RUN_UP_MS });
      const before = await redis.cpuSeconds();
      const { counts, waits, cpuMs, failed, ms } = await loop(one, {
        callers,
        ms: quick ? 200 : 400,
      });
      const server = (await redis.cpuSeconds()) - before;
      const count = sum(counts);
      const perCall = 1_000 / count;
      return {
        perSecond: (count / ms) * 1_000,
        p50: quantile(waits, 0.5),
        p99: quantile(waits, 0.99),
        clientUs: cpuMs * perCall,
        serverUs: server * 1_000 * perCall,
        failed,
      };
    });
  });

/** @param awayMs how much longer each answer takes */
const uncontended = (id, callers, awayMs = 0) => ({
  id,
  title: `No contention: acquire and release, ${callers === 1 ? 'one caller' : `${callers} callers, each with a key of its own`}${far(awayMs)}`,

  async run({ redis, quick }) {
    const results = await through(redis, awayMs, (url) =>
      inTurn(all, { redis, urls: [url], callers, quick }),
    );
    await redis.flush();

    const of = (one, name) => results.get(one).map((result) => result[name]);
    const [ours, least] = [holdfast, bare].map((one) => of(one, 'perSecond'));
    const rows = all.map((one) => ({
      label: one.library,
      kind: one.kind,
      perSecond: median(of(one, 'perSecond')),
      best: highest(of(one, 'perSecond')),
      toBare: ratio(of(one, 'perSecond'), least),
      p50: median(of(one, 'p50')),
      p99: median(of(one, 'p99')),
      clientUs: median(of(one, 'clientUs')),
      serverUs: median(of(one, 'serverUs')),
      failed: sum(of(one, 'failed')),
    }));
    const toPeers = all
      .filter(({ kind }) => kind === 'peer')
      .map((one) => ratio(ours, of(one, 'perSecond')));
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'perSecond', head: 'per second', digits: 0 },
        { name: 'toBare', head: '× bare commands', digits: 2 },
        { name: 'p99', head: 'p99 acquire, ms', digits: 2 },
        { name: 'clientUs', head: 'client CPU, µs', digits: 0 },
        { name: 'serverUs', head: 'server CPU, µs', digits: 0 },
        { name: 'failed', head: 'failed', digits: 0 },
      ],
      rows,
      musts: [
        atLeast('throughput / the bare commands', ratio(ours, least), leastOf(callers, awayMs)),
        atMost(
          'client CPU / that of the bare commands',
          ratio(of(holdfast, 'clientUs'), of(bare, 'clientUs')),
          callers === 1 ? 2 : 1.5,
        ),
        atLeast('throughput / best peer', Math.min(...toPeers), 1),
      ],
      plot: { name: 'perSecond', unit: 'per second', digits: 0 },
    };
  },
});

/** Who can ask several masters. */
const overMasters = [...onePerLibrary, byId('scripts-alone')];

export const threeMasters = {
  id: 'three-masters',
  title: 'No contention: acquire and release on a quorum of three masters, one caller',

  async run({ redis, quick }) {
    const others = [await startRedis(), await startRedis()];
    let results;
    try {
      const urls = [redis, ...others].map(({ url }) => url);
      results = await inTurn(overMasters, { redis, urls, callers: 1, quick });
    } finally {
      await Promise.all(others.map((server) => server.stop()));
    }
    await redis.flush();

    const rows = [...results].map(([one, rounds]) => {
      const of = (name) => rounds.map((round) => round[name]);
      return {
        label: one.library,
        kind: one.kind,
        perSecond: median(of('perSecond')),
        best: highest(of('perSecond')),
        p99: median(of('p99')),
        clientUs: median(of('clientUs')),
        serverUs: median(of('serverUs')),
        failed: sum(of('failed')),
      };
    });
    const redlock5 = overMasters.find(({ module }) => module === 'redlock5');
    const [ours, theirs] = [holdfast, redlock5].map((one) =>
      results.get(one).map(({ perSecond }) => perSecond),
    );
    return {
      columns: [
        { name: 'label', head: '' },
        { name: 'perSecond', head: 'per second', digits: 0 },
        { name: 'p99', head: 'p99 acquire, ms', digits: 2 },
        { name: 'clientUs', head: 'client CPU, µs', digits: 0 },
        { name: 'serverUs', head: 'CPU of one server, µs', digits: 0 },
        { name: 'failed', head: 'failed', digits: 0 },
      ],
      rows,
      musts: [atLeast('throughput / redlock 5', ratio(ours, theirs), 0.9)],
      plot: { name: 'perSecond', unit: 'per second', digits: 0 },
    };
  },
};

export const oneCaller = uncontended('uncontended-1', 1);
export const manyCallers = uncontended('uncontended-64', 64);
export const farUncontended = FAR_MS.flatMap((awayMs) => [
  uncontended(`far-uncontended-1-${awayMs}`, 1, awayMs),
  uncontended(`far-uncontended-64-${awayMs}`, 64, awayMs),
]);
