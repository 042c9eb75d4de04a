/** Jobs that are to be run once for each time of a schedule, and work that is to be done once. */
import { type Grant, nameOf } from '../faults/grants.js';
import { callEvents, type HistoryEvent } from '../faults/history.js';
import type { Loss } from '../faults/safety.js';
import type { JobPlan } from './plan.js';

/** By how much the clock of a server may be faster. */
const DRIFT = 0.01;

/** Runs within `atLeastMs` after another one: the key stays taken for so long, whatever happens to the process. */
export function repeatedRuns(
  grants: readonly Grant[],
  { name, atLeastMs }: JobPlan,
  losses: readonly Loss[],
): readonly string[] {
  const runs = grants.filter(({ keys }) => keys.includes(name));
  const isLost = ({ grantedAt }: Grant): boolean =>
    losses.some(
      ({ from, until, keys }) =>
        from <= grantedAt && grantedAt <= until && (keys?.includes(name) ?? true),
    );
  return runs.flatMap((run, index) => {
    const before = runs[index - 1];
    if (before === undefined || isLost(run)) return [];
    // From the earliest to the latest moment that Redis can have granted them.
    const afterMs = run.grantedAt - before.askedAt;
    return afterMs < atLeastMs * (1 - DRIFT)
      ? [`job: ${run.name} ran "${name}" ${afterMs.toFixed(0)} ms after ${before.name} had asked`]
      : [];
  });
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/** The events of work that is to be done once, from the first call for it to the end of the last one without a loss of data. */
export function remembered(
  events: readonly HistoryEvent[],
  losses: readonly Span[],
): readonly HistoryEvent[] {
  const works = new Map<string, HistoryEvent[]>();
  const keys = new Map<string, string>();
  for (const event of callEvents(events)) {
    if (event.type === 'ask' && event.how === 'once') keys.set(nameOf(event), event.keys[0]!);
    const key = keys.get(nameOf(event));
    if (key !== undefined) works.set(key, [...(works.get(key) ?? []), event]);
  }
  return [...works.values()]
    .filter((work) => losses.every(({ from, to }) => to < work[0]!.at || from > work.at(-1)!.at))
    .flat();
}
