/**
 * Says from the history of a world whether the locks kept their promises. It knows the scenario and docs/internals/promises.md, and nothing of the
 * library.
 */
import { detachViolations, partsOf, withLeases } from '../../faults/detached.js';
import { grantsOf, nameOf, type Grant } from '../../faults/grants.js';
import type { HistoryEvent } from '../../faults/history.js';
import type { SimEvent } from '../history.js';
import type { Played } from '../play.js';
import type { Scenario } from '../scenario.js';
import { answerViolations } from './answers.js';
import { exclusionViolations } from './exclusion.js';
import { fencingViolations } from './fencing.js';
import { jobViolations } from './jobs.js';
import { leaderViolations } from './leaders.js';
import { leftovers } from './leftovers.js';
import { livenessViolations } from './liveness.js';
import { loginViolations } from './logins.js';
import { bringsOlderData, doneFaults, lossesOf, type DoneFault } from './losses.js';
import { onceViolations } from './once.js';
import { orderViolations } from './order.js';
import { starvationViolations } from './starvation.js';
import { operatorViolations } from './operators.js';
import { replaceViolations } from './replacing.js';
import { refusedTries } from './tries.js';
import { surprises } from './surprises.js';
import { validityViolations } from './validity.js';

/** Of a server with older data, the guard knows only that it was restarted. */
const isUnguarded = ({ service }: Scenario, { fault }: DoneFault): boolean =>
  bringsOlderData(fault) &&
  (service.restartGuard === undefined || fault.kind !== 'server-restarted');

/** All violations, in words; none if the world was as it should be. */
export function check(played: Played): readonly string[] {
  const { scenario, events } = played;
  const done = doneFaults(scenario, events);
  const killed = new Set(
    events.flatMap((event) => (event.type === 'killed' ? [event.client] : [])),
  );
  const calls = callsOf(events);
  const losses = lossesOf(scenario, done, calls);
  const parts = withLeases(grantsOf(calls, killed), events);
  const given = parts.map((grant) => asShortened(grant, events));
  const grants = given.map((grant) => keptAfterwards(grant, events, ['kept']));
  const longest = given.map((grant) => keptAfterwards(grant, events, ['kept', 'perhaps-kept']));
  const facts = { events, calls, grants, losses, done, killed };
  return [
    ...exclusionViolations(facts),
    ...fencingViolations(scenario, facts),
    ...orderViolations(scenario, facts),
    ...starvationViolations(scenario, facts),
    ...answerViolations(scenario, facts),
    ...livenessViolations(scenario, { ...facts, grants: longest }),
    ...refusedTries(scenario, facts),
    ...onceViolations(scenario, facts),
    ...detachViolations(
      events,
      () => done.length === 0,
      (from, to) =>
        done.some((each) => isUnguarded(scenario, each) && from <= each.at && each.at <= to),
    ),
    ...leaderViolations(scenario, facts),
    ...loginViolations(scenario, facts),
    ...jobViolations(scenario, facts),
    ...operatorViolations(scenario, facts),
    ...replaceViolations(scenario, facts),
    ...validityViolations(scenario, facts),
    ...surprises(scenario, facts),
    ...leftovers(played),
  ];
}

/** As the checks of the fault test know them: who was told what became of work, or runs inside a section, has had what it wanted. */
const callsOf = (events: readonly SimEvent[]): readonly HistoryEvent[] =>
  partsOf(events)
    .filter(({ type }) => !NOT_THERE.has(type))
    .flatMap((event): readonly HistoryEvent[] => {
      const { type } = event as SimEvent;
      if (type !== 'once' && type !== 'nested') return [event as HistoryEvent];
      const { at, client, ask } = event as SimEvent & { readonly type: 'once' | 'nested' };
      return [{ at, client, ask, type: 'released', result: type }];
    });

const NOT_THERE = new Set<SimEvent['type']>([
  'uncovered',
  'attempt',
  'extends',
  'sets-limit',
  'limit-set',
  'kept',
  'perhaps-kept',
  'overdue',
  'fault',
  'healed',
  'not-nested',
  'stands',
  'ends-term',
  'term-closed',
  'stops',
  'operator-looks',
  'operator-saw',
  'operator-acts',
  'operator-done',
]);

/** A caller that asked for another TTL may have a shorter lease than it knew when it died. */
function asShortened(grant: Grant, events: readonly SimEvent[]): Grant {
  if (!events.some((event) => event.type === 'extends' && nameOf(event) === grant.name))
    return grant;
  const seen = events.filter((event) => event.type === 'held' && nameOf(event) === grant.name);
  return { ...grant, to: seen.at(-1)?.at ?? -Infinity };
}

/** "With `release: 'on-expiry'` the same holds for a whole `ttl` after the end." */
function keptAfterwards(
  grant: Grant,
  events: readonly SimEvent[],
  types: readonly SimEvent['type'][],
): Grant {
  const kept = events.find(
    (event) => 'forMs' in event && types.includes(event.type) && nameOf(event) === grant.name,
  );
  if (kept === undefined || !('forMs' in kept)) return grant;
  const end = grant.endedAt ?? Math.max(grant.promised, grant.grantedAt);
  return { ...grant, minHoldMs: Math.max(grant.minHoldMs, end - grant.grantedAt + kept.forMs) };
}
