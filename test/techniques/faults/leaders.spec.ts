import { describe, expect, it } from '@jest/globals';
import type { HistoryEvent } from './history.js';
import { leaderViolations } from './leaders.js';

interface Term {
  readonly ask: number;
  /** When it is granted, and when its work ends. */
  readonly from: number;
  readonly to: number;
  readonly reason?: string;
  readonly after?: string;
  /** The term of the notification; default: its own. */
  readonly term?: number;
  readonly result?: string;
}

const who = { client: 'p' } as const;

const begins = ({ ask, from }: Term): HistoryEvent[] => [
  { ...who, type: 'ask', ask, how: 'lead', keys: ['k'], waitMs: 1, candidate: 100, at: from - 5 },
  { ...who, type: 'granted', ask, keys: ['k'], fencingToken: from, at: from },
];

const isNotified = (term: Term): HistoryEvent => {
  const { ask, to, reason = 'stepped-down', after = 'AbortError' } = term;
  const at = reason === 'failed' ? to + 1 : to - 1;
  return { ...who, type: 'term-over', ask, term: term.term ?? term.from, reason, after, at };
};

const ends = ({ ask, to, result = 'true' }: Term): HistoryEvent => ({
  ...{ ...who, type: 'released', ask, result, at: to },
});

const leads = (term: Term): HistoryEvent[] => [...begins(term), isNotified(term), ends(term)];

const violationsOf = (
  events: readonly HistoryEvent[],
  killed: readonly string[] = [],
): readonly string[] =>
  leaderViolations(
    [...events].sort((a, b) => a.at - b.at),
    new Set(killed),
  );

const FIRST: Term = { ask: 1, from: 10, to: 20 };

describe('the rules of leaders', () => {
  it('find nothing in terms that end for all reasons', () => {
    const history = [
      ...leads(FIRST),
      ...leads({ ask: 2, from: 1_030, to: 1_040, reason: 'lost', after: 'LockLostError' }),
      ...leads({
        ask: 3,
        from: 1_050,
        to: 1_060,
        reason: 'failed',
        after: 'Error',
        result: 'Error',
      }),
      ...leads({ ask: 4, from: 2_070, to: 2_080, reason: 'rotated' }),
      ...leads({ ask: 5, from: 3_090, to: 3_100, reason: 'stopped' }),
    ];
    expect(violationsOf(history)).toEqual([]);
  });

  it('find a leader that was not notified of the end, unless it was killed', () => {
    const untold = [...begins(FIRST), ends(FIRST)];
    expect(violationsOf(untold)).toEqual(['lead: p#1 was not notified that its term is over']);
    expect(violationsOf(untold, ['p'])).toEqual([]);
    expect(violationsOf(begins(FIRST))).toEqual([]);
  });

  it('find nothing in a term that is over before its work has looked at its lock', () => {
    const [asks, ...others] = begins(FIRST);
    const told = { ...isNotified({ ...FIRST, reason: 'stopped' }), at: 10 };
    expect(violationsOf([asks!, told, ...others, ends(FIRST)])).toEqual([]);
  });

  it('find one that was notified twice, or of another term', () => {
    expect(violationsOf([...leads(FIRST), isNotified(FIRST)])).toEqual([
      'lead: p#1 was notified 2 times that its term is over',
    ]);
    expect(violationsOf(leads({ ...FIRST, term: 9 }))).toEqual([
      'lead: p#1 led in term 10, and was notified that term 9 is over',
    ]);
  });

  it('find a reason that does not go with what the signal said, or with the work', () => {
    expect(violationsOf(leads({ ...FIRST, reason: 'lost' }))).toEqual([
      'lead: the term of p#1 was over as lost, after a AbortError',
    ]);
    expect(violationsOf(leads({ ...FIRST, reason: 'forgotten' }))).toEqual([
      'lead: the term of p#1 was over as forgotten, after a AbortError',
    ]);
    expect(violationsOf(leads({ ...FIRST, reason: 'failed', after: 'Error' }))).toEqual([
      'lead: the work of p#1 ended with true, and its term as failed',
    ]);
  });

  it('find one that stepped down, and did not stand aside', () => {
    const again = (from: number, reason: string): readonly string[] =>
      violationsOf([...leads({ ...FIRST, reason }), ...begins({ ask: 2, from, to: from })]);
    expect(again(900, 'stepped-down')).toEqual([
      'lead: p#1 was stepped-down, and elected again after 881 ms',
    ]);
    expect(again(900, 'rotated')).toEqual([expect.stringMatching(/^lead: p#1 was rotated/)]);
    expect(again(1_020, 'rotated')).toEqual([]);
    expect(again(5_000, 'stopped')).toEqual(['lead: p#1 was stopped, and elected again as p#2']);
  });
});
