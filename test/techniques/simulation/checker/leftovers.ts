import type { Played } from '../play.js';
import { foreignName } from '../faults.js';
import type { Scenario } from '../scenario.js';

/** What is left when all is over. */
export function leftovers({ scenario, events, isAtRest, simulatedMs }: Played): readonly string[] {
  const hadFaults = events.some(({ type }) => type === 'fault');
  const allGiveBack = !hadFaults && givesBackAtOnce(scenario);
  const ended = new Set<string>();
  const violations = events.flatMap((event) => {
    if (event.type === 'ended') ended.add(event.client);
    // "Then their locks are lost, `shutdown`, and everything is given back."
    if (event.type === 'held' && ended.has(event.client))
      return [`left: ${event.client}#${event.ask} is held after the shutdown of its process`];
    if (event.type === 'left-open')
      return [
        `left: ${event.client} has ${event.timers} timers and ${event.connections} connections after its shutdown`,
      ];
    if (event.type === 'orphan' && allGiveBack)
      return [`left: key "${event.name}" on server ${event.server} when everybody had gone`];
    if (event.type === 'left-key' && !mayStay(event, hadFaults) && !isForeign(event.name, scenario))
      return [`left: key "${event.name}" on server ${event.server} (PTTL ${event.ttlMs})`];
    return [];
  });
  if (!isAtRest) violations.push(`left: processes run after ${simulatedMs.toFixed(0)} ms`);
  return violations;
}

/** What other software has written is in older copies of the data, too. */
const isForeign = (name: string, { faults }: Scenario): boolean =>
  faults.some((fault) => fault.kind === 'foreign-value' && foreignName(fault) === name);

/** Nobody's keys stay taken after the end of a lock. */
const givesBackAtOnce = ({ processes }: Scenario): boolean =>
  processes.every(({ callers }) =>
    callers.every(({ operations }) =>
      operations.every(
        ({ minHoldMs, release, blocksMs, detach }) =>
          detach === undefined &&
          minHoldMs === undefined &&
          release === undefined &&
          blocksMs === undefined,
      ),
    ),
  );

/**
 * The last fencing token of a key, a limit that was set for it, the number of the last call that replaced others, and what is remembered of work and of processes, for a while; the guard's own key; lines in which
 * somebody died.
 */
function mayStay(
  { name, ttlMs }: { readonly name: string; readonly ttlMs: number },
  hadFaults: boolean,
): boolean {
  if (name.includes('epoch')) return ttlMs === -1;
  // The names of instances are written by plain commands, and a fault may come between the first of all and its expiry.
  if (name === 'lock:{instances}') return ttlMs >= 0 || hadFaults;
  if (name.startsWith('lock:{instances}') || /:(limit|newest)$/.test(name)) return ttlMs >= 0;
  return (
    ttlMs >= 0 && (hadFaults ? /[:{](fence|once|queue)\}?$/ : /[:{](fence|once)\}?$/).test(name)
  );
}
