/** The grants of a history: what was held, by whom, and for how long that is proven. */
import type { HistoryEvent } from './history.js';

/** One grant, and the time for which it is proven that the lock was held: none if nobody looked in time. */
export interface Grant {
  readonly name: string;
  readonly client: string;
  readonly keys: readonly string[];
  /** 'exclusive', 'shared' or 'limit:<n>'. */
  readonly mode: string;
  /** Of those that a limit counts. */
  readonly places: number;
  /** The largest limit that may have been in force when it was granted. Default: that of its mode. */
  readonly mostPlaces?: number;
  readonly fencingToken: number;
  /** The same for all who have it one after the other, with one token. Default: its own. */
  readonly lease?: string;
  /** By how much the token was ahead of the clock. */
  readonly aheadMs: number;
  readonly askedAt: number;
  readonly grantedAt: number;
  from: number;
  to: number;
  /** Until when the lock said that it would be held. */
  promised: number;
  /** When its holder had given it back, or had lost it. */
  endedAt: number | undefined;
  /** For so long from the grant on its keys stay taken. */
  readonly minHoldMs: number;
  /** Its holder has begun to give it back, or has lost it. */
  isOver: boolean;
}

export const nameOf = ({ client, ask }: { client: string; ask: number }): string =>
  `${client}#${ask}`;

/** All grants, in the order in which they came. */
export function grantsOf(
  events: readonly HistoryEvent[],
  killed: ReadonlySet<string>,
): readonly Grant[] {
  const grants = new Map<string, Grant>();
  const asks = new Map<string, HistoryEvent & { readonly type: 'ask' }>();
  for (const event of events) {
    if (!('ask' in event)) continue;
    const name = nameOf(event);
    const grant = grants.get(name);
    if (event.type === 'ask') asks.set(name, event);
    else if (event.type === 'granted') {
      const { client, keys, fencingToken, aheadMs = 0, at } = event;
      const ask = asks.get(name);
      grants.set(name, {
        ...{ name, client, keys, fencingToken, aheadMs },
        mode: ask?.mode ?? 'exclusive',
        places: ask?.places ?? 1,
        minHoldMs: ask?.minHoldMs ?? 0,
        askedAt: ask?.at ?? at,
        grantedAt: at,
        ...{ from: Infinity, to: -Infinity, promised: -Infinity },
        endedAt: undefined,
        isOver: false,
      });
    } else if (grant === undefined) continue;
    else if (event.type === 'held') {
      grant.from = Math.min(grant.from, event.at);
      grant.to = Math.max(grant.to, event.at);
      grant.promised = Math.max(grant.promised, event.until);
    } else {
      grant.isOver = true;
      if (event.type !== 'releasing') grant.endedAt ??= event.at;
    }
  }
  for (const grant of grants.values()) {
    // Killed in mid-hold, it has given nothing back: to the end of its lease nobody else may have the lock.
    if (killed.has(grant.client) && !grant.isOver) grant.to = Math.max(grant.to, grant.promised);
  }
  return [...grants.values()];
}

export const wasSeen = ({ from, to }: Grant): boolean => from <= to;

export function byKey(grants: readonly Grant[]): ReadonlyMap<string, readonly Grant[]> {
  const sorted = new Map<string, Grant[]>();
  for (const grant of grants) {
    for (const key of grant.keys) {
      const ofKey = sorted.get(key);
      if (ofKey === undefined) sorted.set(key, [grant]);
      else ofKey.push(grant);
    }
  }
  return sorted;
}
