/** Whether callers were served: nobody waits while everything that those before him could want is free. */
import type { Grant } from '../faults/grants.js';
import { nameOf } from '../faults/grants.js';
import type { HistoryEvent } from '../faults/history.js';
import { FAIR_WAIT_MS } from './plan.js';

/** A process that runs writes this often that it does. */
export const BEAT_MS = 20;

/** While a store recovers from a fault, callers may wait longer beside free keys. */
export interface Recovery {
  readonly from: number;
  readonly until: number;
}

/** To read beside others, to hold the keys alone, or to have so many places of a limit. */
type Wish = 'read' | 'alone' | Places;

interface Places {
  readonly places: number;
  readonly limit: number;
}

interface Waiter {
  readonly name: string;
  readonly keys: readonly string[];
  readonly wish: Wish;
  readonly since: number;
}

/** Those who want the same: what is busy for one of them is busy for all. */
interface Want {
  readonly keys: readonly string[];
  readonly wish: Wish;
  readonly waiters: Map<string, Waiter>;
  /** Since when nothing of it is busy, and nobody was granted any of it. */
  freeSince: number | undefined;
}

type Change = { readonly at: number } & (
  | { readonly kind: 'wait'; readonly waiter: Waiter }
  | { readonly kind: 'leave'; readonly waiter: Waiter }
  | ({ readonly kind: 'take' | 'free'; readonly keys: readonly string[] } & Share)
);

/** What a holder has of its keys. */
interface Share {
  readonly as: keyof Holders;
  readonly count: number;
}

/** How many hold a key, and how many places of it are in use. */
interface Holders {
  readers: number;
  places: number;
  others: number;
}

const NOBODY: Holders = { readers: 0, places: 0, others: 0 };

interface Patience {
  readonly recoveries: readonly Recovery[];
  readonly mostMs: number;
  /** Whether the limits that callers state are those that count. */
  readonly areLimitsStated: boolean;
  /** Whether a key counts as free although somebody wants it together with one that is held. Default: no. */
  readonly isEachKeyAlone?: boolean;
}

/**
 * Callers who waited for longer than that although every key was free that they, or anybody whom they could have to let go first,
 * wanted. For readers a key that others read is free, unless somebody waits who does not. A key has free places if all who wait for it fit.
 * Time for which the machine was too busy does not count.
 *
 * With `isEachKeyAlone`, those before them count for nothing: whoever wants other keys too must not keep a free one from others for longer.
 */
export function gaps(
  events: readonly HistoryEvent[],
  grants: readonly Grant[],
  { recoveries, mostMs, areLimitsStated, isEachKeyAlone = false }: Patience,
): readonly string[] {
  const reachedFrom = isEachKeyAlone ? (keys: readonly string[]) => new Set(keys) : connected;
  const beats = beatsOf(events);
  const wants = new Map<string, Want>();
  const holders = new Map<string, Holders>();
  const found = new Map<string, Waiter[]>();

  const close = (waiter: Waiter, freeSince: number | undefined, at: number): void => {
    if (freeSince === undefined) return;
    const from = Math.max(waiter.since, freeSince);
    if (at - from <= mostMs) return;
    const gapMs = unexplainedMs(from, at, recoveries, beats);
    if (gapMs <= mostMs) return;
    const gap = `for ${gapMs.toFixed(0)} ms, from ${from.toFixed(1)} on`;
    found.set(gap, [...(found.get(gap) ?? []), waiter]);
  };
  const closeAll = (want: Want, at: number): void => {
    const { freeSince, waiters } = want;
    want.freeSince = undefined;
    if (freeSince === undefined || at - freeSince <= mostMs) return;
    for (const waiter of waiters.values()) close(waiter, freeSince, at);
  };

  for (const change of changesOf(events, grants, areLimitsStated)) {
    const { at } = change;
    if (change.kind === 'wait') join(wants, change.waiter);
    else if (change.kind === 'leave') {
      const want = wants.get(wantOf(change.waiter));
      // Refused and dead, or granted and lost: whoever has left does not leave again.
      if (want?.waiters.delete(change.waiter.name) !== true) continue;
      close(change.waiter, want.freeSince, at);
      if (want.waiters.size === 0) wants.delete(wantOf(change.waiter));
    } else count(holders, change);
    const all = [...wants.values()];
    const busy = reachedFrom(busyKeys(holders, all), all);
    const moved = change.kind === 'take' ? reachedFrom(change.keys, all) : new Set();
    for (const want of all) {
      const isBusy = want.keys.some((key) => busy.has(key));
      if (isBusy || want.keys.some((key) => moved.has(key))) closeAll(want, at);
      if (!isBusy) want.freeSince ??= at;
    }
  }
  for (const want of wants.values()) closeAll(want, events.at(-1)?.at ?? 0);
  return [...found].map(([gap, [first, ...others]]) => {
    const who = `${first!.name} (${first!.keys.join(', ')}) and ${others.length} others`;
    return `gap: ${gap}, ${who} waited, and nobody was granted what was free`;
  });
}

function count(
  holders: Map<string, Holders>,
  { kind, keys, as, count: many }: Change & { readonly kind: 'take' | 'free' },
): void {
  for (const key of keys) {
    const ofKey = holders.get(key) ?? { ...NOBODY };
    ofKey[as] += kind === 'take' ? many : -many;
    holders.set(key, ofKey);
  }
}

const wantOf = ({ wish, keys }: Waiter): string => `${JSON.stringify(wish)} ${keys.join(' ')}`;

function join(wants: Map<string, Want>, waiter: Waiter): void {
  const { keys, wish } = waiter;
  const name = wantOf(waiter);
  const want = wants.get(name) ?? { keys, wish, waiters: new Map(), freeSince: undefined };
  want.waiters.set(waiter.name, waiter);
  wants.set(name, want);
}

/** Keys that somebody has to wait for. */
function busyKeys(
  holders: ReadonlyMap<string, Holders>,
  wants: readonly Want[],
): readonly string[] {
  const wanted = (isMeant: (wish: Wish) => boolean): ReadonlySet<string> =>
    new Set(wants.flatMap(({ wish, keys }) => (isMeant(wish) ? keys : [])));
  const excludesReaders = wanted((wish) => wish === 'alone' || typeof wish === 'object');
  const fits = (key: string, inUse: number): boolean =>
    wants.every(
      ({ keys, wish }) =>
        !keys.includes(key) || (typeof wish === 'object' && inUse + wish.places <= wish.limit),
    );
  return [...holders].flatMap(([key, { readers, places, others }]) => {
    const isBusy = (excludesReaders.has(key) && readers > 0) || (places > 0 && !fits(key, places));
    return others > 0 || isBusy ? [key] : [];
  });
}

/** With these, all keys that are wanted together with one of them: who wants such a key may have to let somebody older go first. */
function connected(keys: readonly string[], wants: readonly Want[]): ReadonlySet<string> {
  const reached = new Set(keys);
  for (let size = -1; size !== reached.size;) {
    size = reached.size;
    for (const { keys: wanted } of wants) {
      if (wanted.some((key) => reached.has(key))) for (const key of wanted) reached.add(key);
    }
  }
  return reached;
}

const LIMIT = /^limit:(\d+)$/;

function shareOf({ mode, places }: Grant, areLimitsStated: boolean): Share {
  if (areLimitsStated && LIMIT.test(mode)) return { as: 'places', count: places };
  return { as: mode === 'shared' ? 'readers' : 'others', count: 1 };
}

function wishOf({ mode = 'exclusive', places = 1 }: Ask, areLimitsStated: boolean): Wish {
  const limit = LIMIT.exec(mode)?.[1];
  if (areLimitsStated && limit !== undefined) return { places, limit: Number(limit) };
  return mode === 'shared' ? 'read' : 'alone';
}

type Ask = HistoryEvent & { readonly type: 'ask' };

function changesOf(
  events: readonly HistoryEvent[],
  grants: readonly Grant[],
  areLimitsStated: boolean,
): readonly Change[] {
  const changes: Change[] = [];
  const killedAt = new Map<string, number>();
  const endedAt = events.at(-1)?.at ?? 0;
  for (const event of events) {
    if (event.type === 'killed') killedAt.set(event.client, event.at);
  }
  const waiters = new Map<string, Waiter>();
  for (const event of events) {
    if (!('ask' in event)) continue;
    const { at, client } = event;
    const name = nameOf(event);
    if (event.type === 'ask') {
      // Who replaces others looks again after a pause.
      if (event.waitMs === 0 || event.replaceWaitMs !== undefined) continue;
      const waiter = { name, keys: event.keys, wish: wishOf(event, areLimitsStated), since: at };
      waiters.set(name, waiter);
      changes.push({ at, kind: 'wait', waiter });
      const diesAt = killedAt.get(client);
      if (diesAt !== undefined) changes.push({ at: diesAt, kind: 'leave', waiter });
      continue;
    }
    // Whatever comes next is its answer.
    const waiter = waiters.get(name);
    if (waiter !== undefined) changes.push({ at, kind: 'leave', waiter });
    waiters.delete(name);
  }
  for (const grant of grants) {
    const { keys, grantedAt, endedAt: end, minHoldMs, promised } = grant;
    const share = shareOf(grant, areLimitsStated);
    // Of one who was killed, the lease has to run out.
    const over = Math.max(end ?? Math.max(promised, grantedAt), grantedAt + minHoldMs);
    changes.push({ at: grantedAt, kind: 'take', keys, ...share });
    if (over < endedAt) changes.push({ at: over, kind: 'free', keys, ...share });
  }
  return changes.sort((a, b) => a.at - b.at);
}

function beatsOf(events: readonly HistoryEvent[]): ReadonlyMap<string, readonly number[]> {
  const beats = new Map<string, number[]>();
  for (const event of events) {
    if (event.type !== 'beat') continue;
    const ofClient = beats.get(event.client);
    if (ofClient === undefined) beats.set(event.client, [event.at]);
    else ofClient.push(event.at);
  }
  return beats;
}

/** What is left of a gap without the time of recoveries, and without that for which a process did not run. */
function unexplainedMs(
  from: number,
  to: number,
  recoveries: readonly Recovery[],
  beats: ReadonlyMap<string, readonly number[]>,
): number {
  const begin = recoveries.reduce(
    (start, recovery) => (recovery.from <= to && recovery.until > start ? recovery.until : start),
    from,
  );
  if (begin >= to) return 0;
  const awakeMs = [...beats.values()]
    .filter((ofClient) => ofClient[0]! <= begin && ofClient.at(-1)! >= to)
    .map((ofClient) => ofClient.filter((at) => at > begin && at <= to).length * BEAT_MS);
  return Math.min(to - begin, ...awakeMs);
}

/** A process whose beats are further apart did not run between them. */
const BUSY_MS = 200;

type Pause = readonly [from: number, to: number];

/** When each process could not run: the machine was too busy. */
export function pauses(events: readonly HistoryEvent[]): ReadonlyMap<string, readonly Pause[]> {
  const pausesOf = (beats: readonly number[]): readonly Pause[] =>
    beats.flatMap((at, index) => {
      const before = beats[index - 1] ?? at;
      return at - before > BUSY_MS ? [[before, at]] : [];
    });
  return new Map([...beatsOf(events)].map(([client, beats]) => [client, pausesOf(beats)]));
}

/** Of a wait, for so much of it a process has run that did nothing else. */
const AWAKE = 0.8;

/** Callers who were patient, and were sent away all the same. Time for which the machine was too busy does not count. */
export function refusals(events: readonly HistoryEvent[]): readonly string[] {
  const beats = beatsOf(events);
  const patient = new Map<string, number>();
  let refused = 0;
  for (const event of events) {
    if (event.type === 'ask' && event.waitMs >= FAIR_WAIT_MS && event.replaceWaitMs === undefined)
      patient.set(nameOf(event), event.at);
    const since = event.type === 'refused' ? patient.get(nameOf(event)) : undefined;
    if (since === undefined) continue;
    if (unexplainedMs(since, event.at, [], beats) >= AWAKE * (event.at - since)) refused += 1;
  }
  return refused === 0
    ? []
    : [`refused: ${refused} callers, after a wait of ${FAIR_WAIT_MS} ms and more`];
}
