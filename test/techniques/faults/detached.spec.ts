import { describe, expect, it } from '@jest/globals';
import { detachViolations, partsOf, withLeases } from './detached.js';
import { grantsOf } from './grants.js';
import type { HistoryEvent } from './history.js';
import { overlaps, wrongTokens } from './safety.js';

const KEYS = ['k'] as const;

const holds = (
  client: string,
  [from, to]: readonly [number, number],
  fencingToken: number,
): HistoryEvent[] => [
  { client, type: 'ask', ask: 1, how: 'acquire', keys: KEYS, waitMs: 100, at: from },
  { client, type: 'granted', ask: 1, keys: KEYS, fencingToken, at: from },
  { client, type: 'held', ask: 1, until: to + 500, at: from },
  { client, type: 'held', ask: 1, until: to + 500, at: to },
  { client, type: 'releasing', ask: 1, at: to },
];

/** Held from 10 on, and detached at 100, for a second. */
const DETACHED: readonly HistoryEvent[] = [
  ...holds('p', [10, 100], 7),
  { client: 'p', type: 'detaches', ask: 1, part: 2, at: 100 },
  {
    ...{ client: 'p', type: 'detached', ask: 1, part: 2, at: 102 },
    ...{ keys: KEYS, mode: 'exclusive', fencingToken: 7, forMs: 1_000 },
  },
];

const asks = (client: string, at: number): HistoryEvent => ({
  ...{ client, type: 'ask', ask: 5, how: 'attach', keys: KEYS, mode: 'exclusive', waitMs: 0, at },
  ...{ sender: 'p', part: 2 },
});

const attaches = (client: string, at: number, fencingToken = 7): HistoryEvent[] => [
  asks(client, at),
  { client, type: 'granted', ask: 5, keys: KEYS, fencingToken, at: at + 1 },
  { client, type: 'held', ask: 5, until: at + 500, at: at + 1 },
  { client, type: 'held', ask: 5, until: at + 500, at: at + 50 },
  { client, type: 'released', ask: 5, result: 'true', at: at + 50 },
];

const refused = (client: string, at: number): HistoryEvent[] => [
  asks(client, at),
  { client, type: 'failed', ask: 5, error: 'LockNotAttachedError', at: at + 1 },
];

const calmUntil =
  (moment: number) =>
  (_from: number, to: number): boolean =>
    to < moment;

function violationsOf(
  events: readonly HistoryEvent[],
  isCalm = calmUntil(Infinity),
): readonly string[] {
  const sorted = [...DETACHED, ...events].sort((a, b) => a.at - b.at);
  const grants = withLeases(grantsOf(partsOf(sorted), new Set()), sorted);
  return [...detachViolations(sorted, isCalm), ...overlaps(grants), ...wrongTokens(grants)];
}

describe('the rules of detached locks', () => {
  it('find nothing where one caller attaches it, and another one comes after that', () => {
    expect(violationsOf([...attaches('q', 300), ...refused('r', 310)])).toEqual([]);
    expect(violationsOf(refused('q', 1_200))).toEqual([]);
  });

  it('let any of several have it who attach it in the same moment', () => {
    const rivals = [...refused('q', 300), ...attaches('r', 300.5)];
    expect(violationsOf(rivals)).toEqual([]);
    expect(violationsOf([...refused('q', 300), ...refused('r', 300.5)])).toEqual([
      'attach: q#5 came in time, and was refused',
    ]);
  });

  it('find that it was attached twice', () => {
    const twice = [...attaches('q', 300), ...attaches('r', 400)];
    expect(violationsOf(twice)).toEqual(['attach: q#5 and r#5 attached one lock']);
  });

  it('find that it was attached with another token', () => {
    expect(violationsOf(attaches('q', 300, 8))).toContain(
      'attach: q#5 has another token than the lock that it attached',
    );
  });

  it('find that it was attached when its time was over, and refused before', () => {
    const late = attaches('q', 1_300);
    const early = refused('q', 300);
    expect(violationsOf(late)).toEqual(['attach: q#5 came too late, and attached the lock']);
    expect(violationsOf(early)).toEqual(['attach: q#5 came in time, and was refused']);
    expect(violationsOf(late, calmUntil(0))).toEqual([]);
    expect(violationsOf(early, calmUntil(0))).toEqual([]);
  });

  it('allow for a store that forgets it while the request to attach it is under way', () => {
    expect(violationsOf(refused('q', 300), calmUntil(300.5))).toEqual([]);
    expect(violationsOf(attaches('q', 1_300), calmUntil(1_300.5))).toEqual([]);
  });

  it('find another holder while it has none, and one beside the caller who attached it', () => {
    expect(violationsOf(holds('w', [500, 510], 9))).toContainEqual(
      expect.stringMatching(/^overlap: key "k" was held by p:nobody#2 and w#1 at once/),
    );
    expect(violationsOf([...attaches('q', 300), ...holds('w', [320, 330], 9)])).toContainEqual(
      expect.stringMatching(/^overlap: key "k" was held by q#5 and w#1 at once/),
    );
    expect(violationsOf(holds('w', [1_200, 1_210], 9))).toEqual([]);
  });

  it('allow for a process that was stopped before it heard of its detach', () => {
    const late = DETACHED.map((event) =>
      event.type === 'detached' ? { ...event, at: 1_500 } : event,
    );
    const history = [...late, ...holds('w', [1_450, 1_550], 9)].sort((a, b) => a.at - b.at);
    expect(overlaps(grantsOf(partsOf(history), new Set()))).toEqual([]);
  });

  it('find that the caller that detached it still believes to hold it', () => {
    const still = { client: 'p', type: 'held', ask: 1, until: 900, at: 340 } as const;
    expect(violationsOf([...attaches('q', 300), still])).toContainEqual(
      expect.stringMatching(/^overlap: key "k" was held by p/),
    );
  });

  it('find a later holder with the same token, who is not of its lease', () => {
    const other = holds('w', [400, 410], 7);
    expect(violationsOf([...attaches('q', 300), ...other])).toContainEqual(
      expect.stringMatching(/^fencing: token 7 of key "k"/),
    );
  });
});
