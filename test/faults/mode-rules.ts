/** Locks that change their mode: what they say of it, their tokens, and what others had meanwhile. It knows nothing of the library. */
import { Parcels, unheld } from './detached.js';
import { type Grant, nameOf, wasSeen } from './grants.js';
import { type AnyEvent, type CallEvent, callEvents, type HistoryEvent } from './history.js';

type Changed = CallEvent & { readonly type: 'changed' };
type Ask = CallEvent & { readonly type: 'ask' };

interface Rules {
  /** Of all parts. */
  readonly grants: readonly Grant[];
  /** Whether a server may know a lock again that somebody has had since. */
  readonly bringsOlderData: boolean;
  /** How much later a caller may hear what no server is asked for. */
  readonly atOnceMs: number;
}

/** Locks that changed their mode as they should not have, or said something else than what was promised. */
export const modeViolations = (
  events: readonly AnyEvent[],
  { grants, bringsOlderData, atOnceMs }: Rules,
): readonly string[] => {
  const calls = callEvents(events);
  return [
    ...wrongModes(calls),
    ...wrongTokens(calls),
    ...waitsForEachOther(calls, atOnceMs),
    ...(bringsOlderData ? [] : heldInBetween(calls, grants)),
  ];
};

/** "An upgrade that fails leaves the lock upgradeable", "a downgrade counts from its call on". */
function wrongModes(events: readonly CallEvent[]): readonly string[] {
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
function wrongTokens(events: readonly CallEvent[]): readonly string[] {
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
function waitsForEachOther(events: readonly CallEvent[], atOnceMs: number): readonly string[] {
  const open = new Map<string, Ask>();
  const violations: string[] = [];
  for (const event of events) {
    if (event.type === 'ask' && event.holds === 'shared') open.set(nameOf(event), event);
    else if (open.has(nameOf(event))) {
      const { at } = open.get(nameOf(event))!;
      open.delete(nameOf(event));
      const isRefused = event.type === 'failed' && AT_ONCE.has(event.error);
      if (!isRefused || event.at - at > atOnceMs)
        violations.push(
          `deadlock: ${nameOf(event)} holds as shared and asked to hold alone: ${event.type} after ${(event.at - at).toFixed(1)} ms`,
        );
    }
  }
  return violations;
}

const AT_ONCE = new Set(['LockConfigurationError', 'LockLostError']);

/** "An upgrade succeeds only if the lock was held all the time: no other caller had a key alone in between." */
function heldInBetween(events: readonly CallEvent[], grants: readonly Grant[]): readonly string[] {
  const byName = new Map(grants.map((grant) => [grant.name, grant]));
  const alone = grants.filter((grant) => grant.mode === 'exclusive' && wasSeen(grant));
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
    const other = alone.find(
      (grant) =>
        grant.from > begun.grantedAt &&
        grant.from < upgraded.askedAt &&
        firstOf(grant.name) !== begun.name &&
        grant.keys.some((key) => event.keys.includes(key)),
    );
    return other === undefined
      ? []
      : [`upgrade: ${upgraded.name} holds alone what ${other.name} had alone since ${begun.name}`];
  });
}

/** What callers wrote down besides what they asked for and got. */
const NOTES: ReadonlySet<string> = new Set<CallEvent['type']>([
  ...(['mode', 'not-changed', 'detaches', 'term-over'] as const),
]);

/**
 * The parts of a hold, in other modes and without a holder, as checks of grants know them: each part ends where the next begins. An upgrade
 * that is not granted is no grant, and takes nothing from its holder.
 */
export function partsOf<Event extends AnyEvent>(
  events: readonly Event[],
): readonly (Event | HistoryEvent)[] {
  const parcels = new Parcels(events);
  const asks = new Map<string, Ask>();
  return events.flatMap((each): readonly (Event | HistoryEvent)[] => {
    if (NOTES.has(each.type)) return [];
    const [event] = callEvents([each]);
    if (event?.type === 'ask') asks.set(nameOf(event), event);
    if (event?.type === 'detached') return unheld(event, parcels);
    return event?.type === 'changed' ? asParts(event, asks.get(nameOf(event))) : [each];
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
  events: readonly AnyEvent[],
): readonly Grant[] {
  const downgrades = callEvents(events).filter(
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
