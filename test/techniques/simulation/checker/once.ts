import { nameOf } from '../../faults/grants.js';
import { repeatedWork } from '../../faults/once-work.js';
import type { SimEvent } from '../history.js';
import type { Fault, Scenario } from '../scenario.js';
import type { Facts } from './facts.js';
import { losesData } from './losses.js';
import { operationsOf, type Operation } from './operators.js';

/** Work that is to be done once: marked by one attempt, and not tried again after that. */
export function onceViolations(scenario: Scenario, { events, done }: Facts): readonly string[] {
  // "If Redis loses its data, it forgets what was done."
  if (done.some(({ fault }) => forgetsWork(fault))) return [];
  const forgotten = operationsOf(scenario, events).filter(
    ({ fault, status, actsAt }) =>
      fault.kind === 'work-forgotten' &&
      actsAt < Infinity &&
      status !== 'refused' &&
      status !== 'nothing',
  );
  const inOrder = forgotten.toSorted((one, other) => one.doneAt - other.doneAt);
  return repeatedWork(inOrder.reduce(asOtherWork, events));
}

const forgetsWork = (fault: Fault): boolean =>
  losesData(fault) || fault.kind === 'server-clock-set';

/** Work that was forgotten is other work from then on. Of calls that ran meanwhile, nobody knows what they found. */
function asOtherWork(events: readonly SimEvent[], operation: Operation): readonly SimEvent[] {
  const { fault, actsAt, doneAt } = operation;
  if (fault.kind !== 'work-forgotten') return events;
  const { key } = fault;
  const lastAt = new Map<string, number>();
  for (const event of events) if ('ask' in event) lastAt.set(nameOf(event), event.at);
  const unknown = new Set<string>();
  return events.flatMap((event): readonly SimEvent[] => {
    if (event.type === 'ask' && event.keys[0]?.split(' ')[0] === key) {
      if (event.at > doneAt) return [{ ...event, keys: [`${key} since ${doneAt}`] }];
      if (lastAt.get(nameOf(event))! > actsAt) unknown.add(nameOf(event));
    }
    return 'ask' in event && unknown.has(nameOf(event)) ? [] : [event];
  });
}
