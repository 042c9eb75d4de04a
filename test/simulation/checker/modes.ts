import { nameOf, type Grant } from '../../faults/grants.js';
import type { HistoryEvent } from '../../faults/history.js';
import type { SimEvent } from '../history.js';
import type { Facts } from './facts.js';
import { unheld } from './detached.js';
import { bringsOlderData } from './fencing.js';

type Changed = SimEvent & { readonly type: 'changed' };
type Ask = SimEvent & { readonly type: 'ask' };

/** Locks that changed their mode as they should not have, or said something else than what was promised. */
export const modeViolations = ({ events, grants, done }: Facts): readonly string[] => [
  ...wrongModes(events),
  ...wrongTokens(events),
  ...waitsForEachOther(events),
  // Older data may know a lock again that somebody has had in between.
  ...(done.some(({ fault }) => bringsOlderData(fault)) ? [] : heldInBetween(events, grants)),
];

/** "An upgrade that fails leaves the lock upgradeable", "a downgrade counts from its call on". */
function wrongModes(events: readonly SimEvent[]): readonly string[] {
  const modes = new Map<string, string>();
  return events.flatMap((event) => {
    if (event.type === 'ask') modes.set(nameOf(event), event.mode ?? 'exclusive');
    if (event.type === 'changed') modes.set(nameOf(event), event.mode);
    if (event.type !== 'mode') return [];
    const mode = modes.get(nameOf(event));
    return mode === event.mode
      ? []
      : [`mode: ${nameOf(event)} holds as ${mode ?? 'nobody'}, and its lock says ${event.mode}`];
  });
}

/** "A downgraded lock keeps its token. An upgraded lock has a new token, larger than that of the readers before it." */
function wrongTokens(events: readonly SimEvent[]): readonly string[] {
  const tokens = new Map<string, number>();
  return events.flatMap((event) => {
    if (event.type !== 'granted' && event.type !== 'changed') return [];
    const { client, fencingToken } = event;
    tokens.set(nameOf(event), fencingToken);
    if (event.type === 'granted') return [];
    const before = tokens.get(nameOf({ client, ask: event.continues })) ?? 0;
    const isRight = event.mode === 'exclusive' ? fencingToken > before : fencingToken === before;
    return isRight
      ? []
      : [
          `fencing: ${nameOf(event)} became ${event.mode}, and its token went from ${before} to ${fencingToken}`,
        ];
  });
}

/** "Two such holders would wait for each other": a plain reader that asks for more is refused at once, whatever it would wait. */
function waitsForEachOther(events: readonly SimEvent[]): readonly string[] {
  const open = new Map<string, Ask>();
  const violations: string[] = [];
  for (const event of events) {
    if (event.type === 'ask' && event.holds === 'shared') open.set(nameOf(event), event);
    else if ('ask' in event && open.has(nameOf(event))) {
      const { at } = open.get(nameOf(event))!;
      open.delete(nameOf(event));
      const isRefused = event.type === 'failed' && AT_ONCE.has(event.error);
      if (!isRefused || event.at - at > AT_ONCE_MS)
        violations.push(
          `deadlock: ${nameOf(event)} holds as shared and asked to hold alone: ${event.type} after ${(event.at - at).toFixed(1)} ms`,
        );
    }
  }
  return violations;
}

/** "An upgrade succeeds only if the lock was held all the time: no other caller had a key alone in between." */
function heldInBetween(events: readonly SimEvent[], grants: readonly Grant[]): readonly string[] {
  const byName = new Map(grants.map((grant) => [grant.name, grant]));
  const first = new Map<string, string>();
  const firstOf = (name: string): string => first.get(name) ?? name;
  return events.flatMap((event) => {
    if (event.type !== 'changed') return [];
    const { client, continues } = event;
    first.set(nameOf(event), firstOf(nameOf({ client, ask: continues })));
    if (event.mode !== 'exclusive') return [];
    const [begun, upgraded] = [firstOf(nameOf(event)), nameOf(event)].map((name) =>
      byName.get(name),
    );
    if (begun === undefined || upgraded === undefined) return [];
    const other = grants.find(
      (grant) =>
        grant.mode === 'exclusive' &&
        firstOf(grant.name) !== begun.name &&
        grant.keys.some((key) => event.keys.includes(key)) &&
        grant.grantedAt > begun.grantedAt &&
        grant.grantedAt < upgraded.askedAt,
    );
    return other === undefined
      ? []
      : [`upgrade: ${upgraded.name} holds alone what ${other.name} had alone since ${begun.name}`];
  });
}

const AT_ONCE = new Set(['LockConfigurationError', 'LockLostError']);

/** No request is sent. */
const AT_ONCE_MS = 0.1;

/**
 * The parts of a hold in other modes, as checks of grants know them: each part ends where the next begins. An upgrade that is not granted
 * is no grant, and takes nothing from its holder.
 */
export function partsOf(events: readonly SimEvent[]): readonly HistoryEvent[] {
  const asks = new Map<string, Ask>();
  return events.flatMap((event): readonly HistoryEvent[] => {
    if (event.type === 'ask') asks.set(nameOf(event), event);
    if (event.type === 'detached') return unheld(event, events);
    return event.type === 'changed'
      ? asParts(event, asks.get(nameOf(event)))
      : [event as HistoryEvent];
  });
}

function asParts(
  { at, client, ask, continues, keys, mode, fencingToken }: Changed,
  asked: Ask | undefined,
): readonly HistoryEvent[] {
  const how = 'downgrade';
  return [
    { at, client, ask: continues, type: 'released', result: 'changed' },
    ...(asked === undefined
      ? [{ at, client, ask, type: 'ask' as const, how, keys, mode, waitMs: 0 }]
      : []),
    { at, client, ask, type: 'granted', keys, fencingToken },
  ];
}

/** Marks the grants of locks that were downgraded, and the parts that follow with the same token. */
export function withDowngrades(
  grants: readonly Grant[],
  events: readonly SimEvent[],
): readonly Grant[] {
  const downgrades = events.filter(
    (event): event is Changed => event.type === 'changed' && event.mode !== 'exclusive',
  );
  const after = new Set(downgrades.map(nameOf));
  const before = new Set(downgrades.map(({ client, continues: ask }) => nameOf({ client, ask })));
  return grants.map((grant) => ({
    ...grant,
    ...(before.has(grant.name) && { wasDowngraded: true }),
    ...(after.has(grant.name) && { isDowngraded: true }),
  }));
}
