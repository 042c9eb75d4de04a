import type { SimEvent } from '../history.js';
import type { Scenario } from '../scenario.js';
import type { Facts } from './facts.js';

/** Until a process that waits for the first time stands in line: it connects its inbox, and sends scripts that the server does not know. */
export const TRIPS_TO_THE_LINE = 20;

/** "Up to 16 of them, or 20 ms of them, go one after the other under one lease before other processes have their turn." */
const TENURE_MS = 20;

/** A candidate may join the line again up to this much too early, because its timer fires in a slot. */
const SLOT_MS = 6;

/**
 * The place of a process in the line of a key. When it was taken is not known to its callers: not before the first of them asked, after
 * whom there was always somebody who waited, and not later than when the process last gave the key back.
 */
interface Place {
  earliest: number;
  latest: number;
  /** By the number of the call, when it was made. */
  readonly waiting: Map<number, number>;
}

type Ask = SimEvent & { readonly type: 'ask' };

/** First come, first served between processes: on one Redis, of exclusive locks of one key, and without faults. */
export function orderViolations(scenario: Scenario, { events, done }: Facts): readonly string[] {
  if (scenario.servers.length > 1 || done.length > 0 || !isPlain(scenario)) return [];
  const { latencyUs, jitterUs } = scenario.network;
  const slackMs = (TRIPS_TO_THE_LINE * (latencyUs + jitterUs)) / 1_000 + 5;
  const wasServed = servedBefore(events, jitterUs / 1_000);
  const olderThan = (
    key: string,
    client: string,
    { before, at }: { readonly before: number; readonly at: number },
  ): { readonly client: string; readonly since: number } | undefined => {
    for (const [name, place] of places) {
      const [other, otherKey] = name.split(' ') as [string, string];
      if (otherKey !== key || other === client || place.latest >= before) continue;
      if (!wasServed(other, place, at)) return { client: other, since: place.latest };
    }
    return undefined;
  };
  const places = new Map<string, Place>();
  /** Places whose last caller has just gone. What it asked for may be on its way, and is for the next caller of its process. */
  const gone = new Map<string, { readonly earliest: number; readonly at: number }>();
  const roundTripMs = (2 * (latencyUs + jitterUs)) / 1_000;
  const inheritedBy = ({ client, keys, at, how }: Ask): number => {
    const before = gone.get(`${client} ${keys[0]!}`);
    const lateMs = roundTripMs + (how === 'lead' ? SLOT_MS : 0);
    return before && at - before.at <= lateMs ? Math.min(before.earliest, at) : at;
  };
  const asks = new Map<string, Ask>();
  const holders = new Map<string, string>();
  /** Of each key: since when its last holder's process has had it. */
  const tenures = new Map<string, number>();
  /** Of each key: who was granted it last, and has not ended. */
  const open = new Map<string, string>();
  const violations: string[] = [];
  for (const event of events) {
    // An attempt begins under a lock that is granted.
    if (!('ask' in event) || event.type === 'attempt') continue;
    const name = `${event.client}#${event.ask}`;
    if (event.type === 'ask') {
      asks.set(name, event);
      if (event.waitMs > 0) enter(places, event, inheritedBy(event));
      continue;
    }
    const ask = asks.get(name);
    if (ask === undefined) continue;
    const key = ask.keys[0]!;
    const place = places.get(`${event.client} ${key}`);
    if (event.type === 'granted') {
      const since = Math.min(place?.earliest ?? ask.at, inheritedBy(ask));
      // A holder that did not listen has lost it, nobody knows when, and those of its process stand in line since then.
      const unheard = open.has(key) && places.get(`${holders.get(key)!} ${key}`);
      if (unheard) unheard.latest = event.at;
      if (holders.get(key) !== event.client) {
        const older = olderThan(key, event.client, { before: since - slackMs, at: event.at });
        if (older !== undefined)
          violations.push(
            `order: ${name} was granted "${key}" before ${older.client}, which had waited since ${older.since.toFixed(1)}, ${(since - older.since).toFixed(1)} ms longer`,
          );
        tenures.set(key, event.at);
      } else {
        const tenure = tenures.get(key) ?? event.at;
        const older = olderThan(key, event.client, { before: tenure - slackMs, at: event.at });
        if (older !== undefined && event.at - tenure > TENURE_MS + slackMs)
          violations.push(
            `turns: ${name} had its turn at "${key}" ${(event.at - tenure).toFixed(1)} ms after its process was granted it, and ${older.client} had waited since ${older.since.toFixed(1)}`,
          );
      }
      holders.set(key, event.client);
      open.set(key, name);
    } else if (event.type !== 'held' && event.type !== 'extends' && open.get(key) === name)
      open.delete(key);
    // A caller that finds that the work is done has had the lock for a moment. Its answer may come after the next grant.
    if (event.type === 'once' && !open.has(key)) holders.set(key, event.client);
    // Its process has had its turn; those who are left stand in line anew.
    // Else its wait was over, and it read that the work is done without a turn of its process.
    const isServed =
      event.type === 'once' &&
      event.at <= ask.at + ask.waitMs &&
      place?.waiting.has(event.ask) === true;
    const isOfHolder = holders.get(key) === event.client && place?.waiting.has(event.ask) === false;
    if (place !== undefined && (isServed || isOfHolder)) place.latest = event.at;
    place?.waiting.delete(event.ask);
    if (place !== undefined && (event.type === 'granted' || isServed))
      place.earliest = Math.min(...place.waiting.values());
    if (place?.waiting.size === 0) {
      places.delete(`${event.client} ${key}`);
      gone.set(`${event.client} ${key}`, { earliest: place.earliest, at: event.at });
    }
  }
  return violations;
}

/** The server answers "done" to one process before it lets the next one in, and that answer may take longer on its way. */
function servedBefore(
  events: readonly SimEvent[],
  jitterMs: number,
): (client: string, place: Place, at: number) => boolean {
  const doneAt = new Map<string, number>();
  for (const event of events)
    if (event.type === 'once') doneAt.set(`${event.client}#${event.ask}`, event.at);
  return (client, { waiting }, at) =>
    [...waiting.keys()].some((ask) => doneAt.get(`${client}#${ask}`)! <= at + jitterMs + 0.001);
}

function enter(places: Map<string, Place>, { client, keys, ask, at }: Ask, earliest: number): void {
  const name = `${client} ${keys[0]!}`;
  const place = places.get(name) ?? {
    earliest,
    latest: at,
    waiting: new Map<number, number>(),
  };
  place.waiting.set(ask, at);
  places.set(name, place);
}

const isPlain = ({ processes, service }: Scenario): boolean =>
  service.restartGuard === undefined &&
  // "Its locks wait by asking again."
  service.hasDriver === undefined &&
  processes.every(({ callers }) =>
    callers.every(({ operations }) =>
      operations.every(
        ({ keys, mode, inner, blocksMs, detach, replaceWaitMs }) =>
          keys.length === 1 &&
          replaceWaitMs === undefined &&
          mode === 'exclusive' &&
          inner === undefined &&
          detach === undefined &&
          blocksMs === undefined,
      ),
    ),
  );
