import { extentOf } from '../faults/extent.js';
import type { EngineRound } from './stage.js';

/** A round in one line. */
export function summaryOf({ plan, events, scripts, violations }: EngineRound): string {
  const count = (type: string): number => events.filter((event) => event.type === type).length;
  const figures = {
    faults: plan.faults.length,
    grants: count('granted'),
    ...extentOf(events),
    refusals: count('refused'),
    losses: count('lost'),
    failures: count('failed'),
    'longest block': `${longestBlockMs(events).toFixed(0)} ms`,
    'scripts a call': (scripts / Math.max(1, count('ask'))).toFixed(1),
    violations: violations.length,
  };
  const list = Object.entries(figures).map(([name, figure]) => `${name} ${figure}`);
  return `seed ${plan.seed}, ${plan.store}: ${list.join(', ')}`;
}

/** For so long the event loop of a process could not go on. */
const longestBlockMs = (events: EngineRound['events']): number =>
  Math.max(0, ...events.map((event) => (event.type === 'ended' ? (event.longestBlockMs ?? 0) : 0)));

const MOST_SHOWN = 20;

/** Everything that is needed to look into a round that failed. */
export function reportOf(round: EngineRound): string {
  const { plan, violations, folder } = round;
  const more = violations.length - MOST_SHOWN;
  const minutes = (plan.lengthMs / 60_000).toFixed(2);
  return [
    summaryOf(round),
    'violations:',
    ...violations.slice(0, MOST_SHOWN).map((violation) => `  ${violation}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
    'faults:',
    ...plan.faults.map(({ atMs, ...fault }) => `  ${atMs} ms: ${Object.values(fault).join(' ')}`),
    `plan and history: ${folder}`,
    `again: npm run test:faults -- --engine ${plan.store} --seed ${plan.seed} --minutes ${minutes}`,
  ].join('\n');
}

/** @throws the report of a round with violations */
export function expectSound(round: EngineRound): void {
  if (round.violations.length > 0) throw new Error(reportOf(round));
}
