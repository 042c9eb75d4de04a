import type { Grant } from '../../faults/grants.js';
import type { HistoryEvent } from '../../faults/history.js';
import type { Loss } from '../../faults/safety.js';
import type { SimEvent } from '../history.js';
import { isOfOperator } from '../scenario.js';
import type { DoneFault } from './losses.js';

/** What checks look at. */
export interface Facts {
  readonly events: readonly SimEvent[];
  /** Those of callers, without what only this test knows. */
  readonly calls: readonly HistoryEvent[];
  readonly grants: readonly Grant[];
  readonly losses: readonly Loss[];
  readonly done: readonly DoneFault[];
  readonly killed: ReadonlySet<string>;
}

/** For how long of a time a process stood still. */
export function stoodStillMs(
  events: readonly SimEvent[],
  client: string,
  [from, to]: readonly [number, number],
): number {
  let sum = 0;
  let since: number | undefined;
  for (const event of events) {
    if (!('client' in event) || event.client !== client) continue;
    if (event.type === 'paused') since ??= event.at;
    if (event.type !== 'resumed' || since === undefined) continue;
    sum += Math.max(0, Math.min(event.at, to) - Math.max(since, from));
    since = undefined;
  }
  return sum + (since === undefined ? 0 : Math.max(0, to - Math.max(since, from)));
}

/**
 * "A connection that is silent for 5 s is replaced", once it is used; the one that only listens is asked every 10 s. By then
 * everybody has heard what was on its way.
 */
export const STALLED_MS = 16_000;

/** Whether nothing was wrong in that time, nor the effect of anything that was wrong before. */
export const isCalm = ({ done }: Pick<Facts, 'done'>, from: number, until: number): boolean =>
  done.every(({ at, healedAt }) => at > until || healedAt + STALLED_MS < from);

/** Whether nothing but operators disturbed anybody. */
export const isCalmBeside = ({ done }: Pick<Facts, 'done'>, from: number, until: number): boolean =>
  isCalm({ done: done.filter(({ fault }) => !isOfOperator(fault)) }, from, until);
