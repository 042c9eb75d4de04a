import { describe, expect, it } from '@jest/globals';
import { grantsOf } from './grants.js';
import type { HistoryEvent } from './history.js';
import { modeViolations, partsOf, withDowngrades } from './mode-rules.js';
import { wrongTokens } from './safety.js';

const p = { client: 'p', keys: ['k'] } as const;

const granted = (ask: number, mode: string, at: number, fencingToken = at): HistoryEvent[] => [
  { ...p, type: 'ask', ask, how: 'acquire', mode, waitMs: 100, at: at - 1 },
  { ...p, type: 'granted', ask, fencingToken, at },
  { ...p, type: 'held', ask, until: at + 500, at },
];

/** A hold that goes on as another part. */
const changed = (
  [continues, ask]: readonly [number, number],
  mode: string,
  at: number,
  fencingToken: number,
): HistoryEvent[] => [
  { ...p, type: 'held', ask: continues, until: at + 500, at },
  { ...p, type: 'changed', continues, ask, mode, fencingToken, at },
  { ...p, type: 'held', ask, until: at + 500, at },
];

const upgradeAsked = (ask: number, holds: string, at: number): HistoryEvent => ({
  ...{ ...p, type: 'ask', ask, how: 'upgrade', mode: 'exclusive', holds, waitMs: 100, at },
});

/** Of another process, for 10 ms. */
const heldBy = (client: string, at: number, fencingToken = at): HistoryEvent[] => [
  { client, type: 'ask', ask: 1, how: 'run', keys: ['k'], waitMs: 100, at: at - 1 },
  { client, type: 'granted', ask: 1, keys: ['k'], fencingToken, at },
  { client, type: 'held', ask: 1, until: at + 500, at },
  { client, type: 'held', ask: 1, until: at + 500, at: at + 10 },
  { client, type: 'released', ask: 1, result: 'true', at: at + 10 },
];

function violationsOf(events: readonly HistoryEvent[], bringsOlderData = false): readonly string[] {
  const sorted = [...events].sort((a, b) => a.at - b.at);
  const grants = withDowngrades(grantsOf(partsOf(sorted), new Set()), sorted);
  return [
    ...modeViolations(sorted, { grants, bringsOlderData, atOnceMs: 50 }),
    ...wrongTokens(grants),
  ];
}

const UPGRADED = [
  ...granted(1, 'upgradeable', 10),
  upgradeAsked(2, 'upgradeable', 100),
  ...changed([1, 2], 'exclusive', 120, 120),
];

describe('the rules of locks that change their mode', () => {
  it('find nothing in an upgrade and two downgrades', () => {
    const history = [
      ...UPGRADED,
      ...changed([2, 3], 'upgradeable', 140, 120),
      ...changed([3, 4], 'shared', 160, 120),
      { ...p, type: 'mode', ask: 4, mode: 'shared', at: 161 } as const,
    ];
    expect(violationsOf(history)).toEqual([]);
  });

  it('find a lock that says another mode than it was changed to', () => {
    const mode = (ask: number, mode: string): HistoryEvent => ({
      ...p,
      type: 'mode',
      ask,
      mode,
      at: 200,
    });
    expect(violationsOf([...UPGRADED, mode(2, 'exclusive')])).toEqual([]);
    expect(violationsOf([...UPGRADED, mode(2, 'upgradeable')])).toEqual([
      'mode: p#2 holds as exclusive, and its lock says upgradeable',
    ]);
  });

  it('find an upgrade that failed, and whose lock is exclusive', () => {
    const failed = [
      ...granted(1, 'upgradeable', 10),
      upgradeAsked(2, 'upgradeable', 100),
      { ...p, type: 'refused', ask: 2, at: 200 } as const,
      { ...p, type: 'mode', ask: 1, mode: 'exclusive', at: 201 } as const,
    ];
    expect(violationsOf(failed)).toEqual([
      'mode: p#1 holds as upgradeable, and its lock says exclusive',
    ]);
  });

  it('find an upgraded lock without a new token, and a downgraded one with a new token', () => {
    const history = [
      ...granted(1, 'upgradeable', 10),
      upgradeAsked(2, 'upgradeable', 100),
      ...changed([1, 2], 'exclusive', 120, 10),
      ...changed([2, 3], 'shared', 140, 11),
    ];
    expect(violationsOf(history)).toEqual(
      expect.arrayContaining([
        'fencing: p#2 became exclusive, and its token went from 10 to 10',
        'fencing: p#3 became shared, and its token went from 10 to 11',
      ]),
    );
  });

  it('find an upgrade, although another caller had the key alone since the lock was granted', () => {
    const history = [...UPGRADED, ...heldBy('q', 50)];
    expect(violationsOf(history)).toEqual([
      'upgrade: p#2 holds alone what q#1 had alone since p#1',
    ]);
    expect(violationsOf(history, true)).toEqual([]);
    expect(violationsOf([...UPGRADED, ...heldBy('q', 2)])).toEqual([]);
  });

  describe('of a plain reader that asks to hold alone', () => {
    const answered = (answer: Record<string, unknown>): readonly string[] =>
      violationsOf([
        ...granted(1, 'shared', 10),
        upgradeAsked(2, 'shared', 100),
        { ...p, ask: 2, at: 110, ...answer } as unknown as HistoryEvent,
      ]);

    it('find nothing where it is refused at once', () => {
      expect(answered({ type: 'failed', error: 'LockConfigurationError' })).toEqual([]);
    });

    it('find that it waited, or was upgraded', () => {
      const late = { type: 'failed', error: 'LockConfigurationError', at: 200 };
      expect(answered(late)).toEqual([expect.stringMatching(/^deadlock: p#2 .* 100\.0 ms/)]);
      expect(answered({ type: 'refused' })).toEqual([expect.stringMatching(/^deadlock: p#2/)]);
      const isUpgraded = { type: 'changed', continues: 1, mode: 'exclusive', fencingToken: 110 };
      expect(answered(isUpgraded)).toEqual([expect.stringMatching(/^deadlock: p#2 .*changed/)]);
    });
  });

  it('know that readers join a downgraded lock under its token, and that writers do not', () => {
    const downgraded = [...granted(1, 'exclusive', 10), ...changed([1, 2], 'shared', 20, 10)];
    const joins = (mode: string): HistoryEvent[] =>
      heldBy('q', 30, 10).map((event) => (event.type === 'ask' ? { ...event, mode } : event));
    expect(violationsOf([...downgraded, ...joins('shared')])).toEqual([]);
    expect(violationsOf([...downgraded, ...joins('exclusive')])).toContainEqual(
      expect.stringMatching(/^fencing: token 10 of key "k" was given to/),
    );
  });
});
