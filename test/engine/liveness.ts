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

/** To read beside others, to be the one of the readers that may be upgraded, to hold the keys alone, or to hold alone what is held as upgradeable. */
type Wish = 'read' | 'upgradeable' | 'alone' | 'upgrade';

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
  | { readonly kind: 'take' | 'free'; readonly keys: readonly string[]; readonly as: keyof Holders }
);

/** How many hold a key. */
interface Holders {
  readers: number;
  upgradeables: number;
  others: number;
}

const NOBODY: Holders = { readers: 0, upgradeables: 0, others: 0 };

/**
 * Callers who waited for longer than that although every key was free that they, or anybody whom they could have to let go first,
 * wanted. For readers a key that others read is free, unless somebody waits who does not. Time for which the machine was too busy does
 * not count.
 */
export function gaps(
  events: readonly HistoryEvent[],
  grants: readonly Grant[],
  recoveries: readonly Recovery[],
  mostMs: number,
): readonly string[] {
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

  for (const change of changesOf(events, grants)) {
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
    const busy = connected(busyKeys(holders, all), all);
    const moved = change.kind === 'take' ? connected(change.keys, all) : new Set();
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
  { kind, keys, as }: Change & { readonly kind: 'take' | 'free' },
): void {
  for (const key of keys) {
    const ofKey = holders.get(key) ?? { ...NOBODY };
    ofKey[as] += kind === 'take' ? 1 : -1;
    holders.set(key, ofKey);
  }
}

const wantOf = ({ wish, keys }: Waiter): string => `${wish} ${keys.join(' ')}`;

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
  const wanted = (wish: Wish): ReadonlySet<string> =>
    new Set(wants.flatMap((want) => (want.wish === wish ? want.keys : [])));
  const [alone, upgrade, upgradeable] = [wanted('alone'), wanted('upgrade'), wanted('upgradeable')];
  return [...holders].flatMap(([key, { readers, upgradeables, others }]) => {
    // A caller that waits for an upgrade holds the key, stands before all others, and waits for readers only.
    const isBusy = upgrade.has(key)
      ? readers > 0
      : (alone.has(key) && readers + upgradeables > 0) ||
        (upgradeable.has(key) && upgradeables > 0);
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

const HELD_AS: Readonly<Record<string, keyof Holders>> = {
  shared: 'readers',
  upgradeable: 'upgradeables',
};

function wishOf({ mode, holds }: { readonly mode?: string; readonly holds?: string }): Wish {
  if (holds !== undefined) return 'upgrade';
  return mode === 'shared' ? 'read' : mode === 'upgradeable' ? 'upgradeable' : 'alone';
}

function changesOf(events: readonly HistoryEvent[], grants: readonly Grant[]): readonly Change[] {
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
      if (event.waitMs === 0) continue;
      const waiter = { name, keys: event.keys, wish: wishOf(event), since: at };
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
  for (const { keys, mode, grantedAt, endedAt: end, minHoldMs, promised } of grants) {
    const as = HELD_AS[mode] ?? 'others';
    // Of one who was killed, the lease has to run out.
    const over = Math.max(end ?? Math.max(promised, grantedAt), grantedAt + minHoldMs);
    changes.push({ at: grantedAt, kind: 'take', keys, as });
    if (over < endedAt) changes.push({ at: over, kind: 'free', keys, as });
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

/** Callers who were patient, and were sent away all the same. */
export function refusals(events: readonly HistoryEvent[]): readonly string[] {
  const patient = new Set<string>();
  let refused = 0;
  for (const event of events) {
    if (event.type === 'ask' && event.waitMs >= FAIR_WAIT_MS) patient.add(nameOf(event));
    if (event.type === 'refused' && patient.has(nameOf(event))) refused += 1;
  }
  return refused === 0
    ? []
    : [`refused: ${refused} callers, after a wait of ${FAIR_WAIT_MS} ms and more`];
}
