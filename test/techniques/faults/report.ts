import { extentOf } from './extent.js';
import { describeStep, type Plan } from './plan.js';
import type { Round } from './orchestrator.js';

/** A round in one line. */
export function summaryOf({ plan, events, violations }: Round): string {
  const { attached, terms } = extentOf(events);
  const count = (type: string): number => events.filter((event) => event.type === type).length;
  const figures = {
    faults: count('fault'),
    grants: count('granted'),
    turns: turnsOf(events),
    ...{ attached, terms },
    refusals: count('refused'),
    'attempts at work': count('attempt'),
    losses: count('lost'),
    failures: count('failed'),
    'unavailable without an outage': unavailableWithoutOutage(plan, events),
    'longest wait': `${longestWaitMs(events).toFixed(0)} ms`,
    violations: violations.length,
  };
  const list = Object.entries(figures).map(([name, figure]) => `${name} ${figure}`);
  return `seed ${plan.seed}, ${plan.nodes} nodes, ${plan.mode}: ${list.join(', ')}`;
}

/** Everything that is needed to look into a round that failed. */
export function reportOf(round: Round): string {
  const { plan, violations, folder } = round;
  const minutes = (plan.lengthMs / 60_000).toFixed(2);
  return [
    summaryOf(round),
    'violations:',
    ...violations.map((violation) => `  ${violation}`),
    'plan:',
    ...plan.steps.map((step) => `  ${step.step}. ${describeStep(step)}`),
    `history: ${folder}`,
    `again: npm run test:faults -- --seed ${plan.seed} --nodes ${plan.nodes} --minutes ${minutes}`,
  ].join('\n');
}

/** Grants that a process gave to the next of its own callers, without asking a server: they have the next fencing token. */
function turnsOf(events: Round['events']): number {
  const last = new Map<string, { readonly client: string; readonly fencingToken: number }>();
  let turns = 0;
  for (const event of events) {
    if (event.type !== 'granted') continue;
    const keys = event.keys.join(' ');
    const before = last.get(keys);
    const isNext = before?.fencingToken === event.fencingToken - 1;
    if (isNext && before.client === event.client) turns += 1;
    last.set(keys, event);
  }
  return turns;
}

/** After an outage, connections are made again. */
const RECOVERY_MS = 500;

/**
 * Callers who were told that there is no majority, when there should have been one. No violation: a busy machine, two faults shortly
 * after each other, or servers that wait before they vote can make it true. But many of them are worth a look.
 */
function unavailableWithoutOutage({ nodes, steps }: Plan, events: Round['events']): number {
  const outages = steps.flatMap(({ kind, step }) => {
    const isOutage = kind === 'outage' || kind === 'client-cut-off';
    if (!isOutage && (nodes > 1 || kind.startsWith('client-'))) return [];
    const [begun, healed] = events.filter((event) => 'step' in event && event.step === step);
    if (begun?.type !== 'fault' || healed === undefined) return [];
    return [{ client: begun.client, from: begun.at, to: healed.at + RECOVERY_MS }];
  });
  const askedAt = new Map<string, number>();
  let unexplained = 0;
  for (const event of events) {
    if (event.type === 'ask') askedAt.set(nameOf(event), event.at);
    if (event.type !== 'failed' || event.error !== 'LockStoreUnavailableError') continue;
    const since = askedAt.get(nameOf(event)) ?? event.at;
    const isExplained = outages.some(
      ({ client = event.client, from, to }) =>
        client === event.client && from < event.at && since < to,
    );
    if (!isExplained) unexplained += 1;
  }
  return unexplained;
}

function longestWaitMs(events: Round['events']): number {
  const askedAt = new Map<string, number>();
  let longest = 0;
  for (const event of events) {
    if (!('ask' in event)) continue;
    const name = nameOf(event);
    // Candidates wait for as long as another one leads.
    if (event.type === 'ask') {
      if (event.how !== 'lead') askedAt.set(name, event.at);
    } else {
      longest = Math.max(longest, event.at - (askedAt.get(name) ?? event.at));
      askedAt.delete(name);
    }
  }
  return longest;
}

const nameOf = ({ client, ask }: { client: string; ask: number }): string => `${client}#${ask}`;
