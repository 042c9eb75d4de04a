import { byKey, nameOf } from '../../faults/grants.js';
import { isOfOperator, type Scenario } from '../scenario.js';
import type { Facts } from './facts.js';

/** For clocks that differ in speed, and for what is on its way. */
const SLACK_MS = 60;

/**
 * Runs of a job that are not as docs/internals/promises.md says: for each time of the schedule one process works, as long as none is late by
 * more than `atLeast`.
 */
export function jobViolations(scenario: Scenario, facts: Facts): readonly string[] {
  const jobs = jobsOf(scenario);
  if (jobs.size === 0) return [];
  return [...repeated(jobs, facts), ...(scenario.servers.length === 1 ? left(jobs, facts) : [])];
}

/** Of each time of a schedule: for how long its key stays taken. */
const jobsOf = ({ processes }: Scenario): ReadonlyMap<string, number> =>
  new Map(
    processes.flatMap(({ callers }) =>
      callers.flatMap(({ operations }) =>
        operations.flatMap(({ isJob, keys, minHoldMs = 0 }) =>
          isJob === true ? [[keys[0]!, minHoldMs] as const] : [],
        ),
      ),
    ),
  );

/** Whatever happens to the process that works. Its clock tells how long it has worked. */
function repeated(
  jobs: ReadonlyMap<string, number>,
  { events, grants, losses, done }: Facts,
): readonly string[] {
  if (done.some(({ fault }) => fault.kind === 'process-clock-set')) return [];
  const lost = new Set(events.flatMap((event) => (event.type === 'lost' ? [nameOf(event)] : [])));
  return [...byKey(grants)].flatMap(([key, runs]) => {
    const atLeastMs = jobs.get(key);
    if (atLeastMs === undefined) return [];
    // "Only a forced release, data loss and other software can end the time earlier."
    const isLost = (until: number): boolean =>
      done.some(({ fault, at }) => isOfOperator(fault) && at < until) ||
      losses.some(({ from, keys }) => from < until && (keys?.includes(key) ?? true));
    return runs.flatMap((run, index) => {
      const before = runs[index - 1];
      if (before === undefined || isLost(run.grantedAt)) return [];
      // "After a loss, it is counted from when Redis granted the lock."
      const since = lost.has(before.name) ? before.askedAt : before.grantedAt;
      const afterMs = run.grantedAt - since;
      return afterMs < atLeastMs - SLACK_MS
        ? [
            `cron: ${run.name} ran "${key}" ${afterMs.toFixed(0)} ms after ${before.name}, which keeps it for ${atLeastMs} ms`,
          ]
        : [];
    });
  });
}

/** Without faults, a run is skipped only for another one. */
function left(
  jobs: ReadonlyMap<string, number>,
  { events, grants, done }: Facts,
): readonly string[] {
  if (done.length > 0) return [];
  const asked = new Set(events.flatMap((event) => (event.type === 'ask' ? event.keys : [])));
  const granted = byKey(grants);
  return [...asked]
    .filter((key) => jobs.has(key) && !granted.has(key))
    .map((key) => `cron: no process ran "${key}"`);
}
