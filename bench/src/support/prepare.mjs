/**
 * Each entrant is used by many callers at first, also where one is measured: a service that has run for an hour has compiled its code,
 * and one caller far from Redis makes too few calls for that in the time of a bench.
 */
const WARM_UP = { callers: 64, ms: 1_000 };

/** In each round, an entrant runs this long before it is measured: the garbage of the one before is not its cost. */
const RUN_UP_MS = 100;

/** Of each worker, what has warmed up there. */
const warm = new WeakMap();

/** Has an entrant run in that worker until it can be measured there. */
export async function prepare(worker, asked) {
  const known = warm.get(worker) ?? new Set();
  warm.set(worker, known);
  const id = JSON.stringify([asked.entrant, asked.urls]);
  if (!known.has(id)) await worker.ask('loop', { ...asked, ...WARM_UP });
  known.add(id);
  await worker.ask('loop', { ...asked, ms: RUN_UP_MS });
}
