import type { Grant } from '../../faults/grants.js';
import type { SimEvent } from '../history.js';

/** A limit that was set for a key. */
interface SetLimit {
  readonly key: string;
  readonly limit: number;
  readonly askedAt: number;
  /** `Infinity`: nobody knows whether it was set, or when. */
  readonly doneAt: number;
}

/**
 * Grants with the largest limit that may have been in force when they were given.
 *
 * @param isKept whether limits that were set are never lost
 */
export function withLimits(
  grants: readonly Grant[],
  events: readonly SimEvent[],
  isKept: boolean,
): readonly Grant[] {
  const all = setLimits(events);
  if (all.length === 0) return grants;
  return grants.map((grant) =>
    grant.mode.startsWith('limit:')
      ? { ...grant, mostPlaces: mostPlaces(grant, all, isKept) }
      : grant,
  );
}

function setLimits(events: readonly SimEvent[]): readonly SetLimit[] {
  return events.flatMap((event, index) => {
    if (event.type !== 'sets-limit') return [];
    const { client, ask, key, limit, at } = event;
    const done = events
      .slice(index)
      .find((other) => other.type === 'limit-set' && other.client === client && other.ask === ask);
    return [{ key, limit, askedAt: at, doneAt: done?.at ?? Infinity }];
  });
}

function mostPlaces(grant: Grant, all: readonly SetLimit[], isKept: boolean): number {
  const { keys, askedAt, grantedAt } = grant;
  const stated = Number(/^limit:(\d+)$/.exec(grant.mode)?.[1] ?? Infinity);
  const ofKeys = keys.map((key) => {
    const sets = all.filter((each) => each.key === key);
    const before = sets.filter(({ doneAt }) => doneAt <= askedAt);
    const possible = sets
      .filter((set) => set.askedAt <= grantedAt)
      .filter((set) => !before.some((later) => later.askedAt >= set.doneAt && later !== set))
      .map(({ limit }) => limit);
    return Math.max(...possible, isKept && before.length > 0 ? 0 : stated);
  });
  return Math.max(...ofKeys);
}
