import { describe, expect, it } from '@jest/globals';
import type { HistoryEvent } from '../faults/history.js';
import { range } from '../faults/plan.js';
import { checkEngine, type DoneFault, type EngineHistory } from './checker.js';
import { BEAT_MS } from './liveness.js';
import { type Crew, type EnginePlan, FAIR_WAIT_MS, type Fault } from './plan.js';

const CREW: Crew = {
  process: 0,
  services: 1,
  callers: 1,
  keys: ['k'],
  ttlsMs: [900],
  waitsMs: [FAIR_WAIT_MS],
  holdMs: [0, 0],
  pauseMs: [0, 0],
};

const PLAN: EnginePlan = {
  seed: 1,
  store: 'one-redis',
  lengthMs: 2_000,
  crews: [CREW],
  faults: [],
};

interface Hold {
  readonly client?: string;
  readonly ask: number;
  readonly keys?: readonly string[];
  readonly mode?: string;
  readonly places?: number;
  readonly token?: number;
  readonly aheadMs?: number;
  /** Default: when it is granted. */
  readonly askedAt?: number;
  readonly from: number;
  readonly to: number;
}

function holds({
  client = 'p',
  ask,
  keys = ['k'],
  mode = 'exclusive',
  places = 1,
  ...rest
}: Hold): HistoryEvent[] {
  const { from, to, askedAt = from, token: fencingToken = from, aheadMs = 0 } = rest;
  const who = { client, ask };
  return [
    { ...who, type: 'ask', how: 'run', keys, mode, places, waitMs: FAIR_WAIT_MS, at: askedAt },
    { ...who, type: 'granted', keys, fencingToken, aheadMs, at: from },
    { ...who, type: 'held', until: to + 500, at: from },
    { ...who, type: 'held', until: to + 500, at: to },
    { ...who, type: 'releasing', at: to },
    { ...who, type: 'released', result: 'true', at: to },
  ];
}

/** Of a key of their own, so that the run is not vacuous. */
const OTHERS = Array.from({ length: 20 }, (_, turn) =>
  holds({ client: 'o', ask: turn + 1, keys: ['other'], from: turn * 10 + 1, to: turn * 10 + 5 }),
).flat();

const BEATS = Array.from({ length: PLAN.lengthMs / BEAT_MS }, (_, beat): HistoryEvent => ({
  type: 'beat',
  client: 'p',
  at: beat * BEAT_MS,
}));

function violationsOf(
  events: readonly HistoryEvent[],
  { beats = BEATS, ...rest }: Partial<EngineHistory> & { beats?: readonly HistoryEvent[] } = {},
): readonly string[] {
  const all = [...beats, ...OTHERS, ...events].sort((a, b) => a.at - b.at);
  return checkEngine({ plan: PLAN, events: all, faults: [], scripts: 0, ...rest });
}

/** A fault at 500 ms, and a run that goes on after it. */
function withFault(
  fault: Fault,
  events: readonly HistoryEvent[],
  store: EnginePlan['store'] = 'one-redis',
): readonly string[] {
  const done: DoneFault = { fault, from: 500, to: 501 };
  const after = holds({ client: 'o', ask: 99, keys: ['other'], from: 1_990, to: 1_991 });
  const plan = { ...PLAN, store, faults: [fault] };
  return violationsOf([...events, ...after], { plan, faults: [done] });
}

const FLUSHED: Fault = { kind: 'all-data-lost', atMs: 500 };
const SLOT_MOVED: Fault = { kind: 'slot-moved', key: 'k', atMs: 500 };
const LINE_LOST: Fault = { kind: 'line-lost', key: 'k', atMs: 500 };

describe('the checker of the engine', () => {
  describe('of holders', () => {
    const two = (mode: string, other: string, third?: string): readonly string[] =>
      violationsOf([
        ...holds({ ask: 1, mode, token: 1, from: 10, to: 50 }),
        ...holds({ client: 'q', ask: 2, mode: other, token: 1, from: 20, to: 40 }),
        ...(third ? holds({ client: 'r', ask: 3, mode: third, token: 1, from: 30, to: 35 }) : []),
      ]);

    it('lets readers hold a key together, and so many as a limit says', () => {
      expect(two('shared', 'shared', 'shared')).toEqual([]);
      expect(two('limit:2', 'limit:2')).toEqual([]);
    });

    it('counts the places of a limit', () => {
      const places = (mode: string, ...each: readonly number[]): readonly string[] =>
        violationsOf(
          each.flatMap((places, index) =>
            holds({
              client: `c${index}`,
              ask: 1,
              mode,
              places,
              token: 1,
              from: 10 + index,
              to: 50,
            }),
          ),
        );
      expect(places('limit:3', 2, 1)).toEqual([]);
      expect(places('limit:3', 2, 2)).toContainEqual(expect.stringMatching(/^overlap: key "k"/));
      expect(places('limit:3', 1, 3)).toContainEqual(expect.stringMatching(/^overlap: key "k"/));
    });

    it.each([
      ['a reader and a writer', 'shared', 'exclusive', undefined],
      ['a reader and one of two', 'shared', 'limit:2', undefined],
      ['three of two', 'limit:2', 'limit:2', 'limit:2'],
    ])('finds %s at once', (_who, one, other, third) => {
      expect(two(one, other, third)).toContainEqual(expect.stringMatching(/^overlap: key "k"/));
    });

    it('allows for a TTL after data were lost, and no longer', () => {
      const two = (to: number): HistoryEvent[] => [
        ...holds({ ask: 1, from: 490, to }),
        ...holds({ client: 'q', ask: 2, from: 510, to }),
      ];
      expect(withFault(FLUSHED, two(1_390))).toEqual([]);
      expect(withFault(FLUSHED, two(1_450))).toEqual([expect.stringMatching(/^overlap/)]);
      expect(withFault(LINE_LOST, two(1_390))).toEqual([expect.stringMatching(/^overlap/)]);
    });
  });

  it('allows for no overlap while a slot moves', () => {
    const two = [
      ...holds({ ask: 1, from: 490, to: 520 }),
      ...holds({ client: 'q', ask: 2, from: 510, to: 515 }),
    ];
    expect(withFault(SLOT_MOVED, two, 'cluster')).toEqual([expect.stringMatching(/^overlap/)]);
  });

  describe('of calls that replace others', () => {
    const replacing = (hold: Hold): HistoryEvent[] =>
      holds({ ...hold, keys: ['newest'] }).map((event) =>
        event.type === 'ask' ? { ...event, replaceWaitMs: 2_000 } : event,
      );
    const two = [
      ...replacing({ ask: 1, from: 510, to: 540 }),
      ...replacing({ client: 'q', ask: 2, from: 520, to: 550 }),
    ];

    it('allows for an older holder that could not be notified', () => {
      expect(violationsOf(two)).toEqual([expect.stringMatching(/^overlap: key "newest"/)]);
      expect(withFault(FLUSHED, two)).toEqual([]);
      expect(withFault({ ...FLUSHED, kind: 'connections-killed' }, two)).toEqual([]);
    });

    it('lets them replace each other, and nobody else', () => {
      const [ask] = holds({ ask: 1, from: 10, to: 20 });
      const failed = {
        type: 'failed',
        client: 'p',
        ask: 1,
        error: 'LockLostError',
        at: 20,
      } as const;
      const lost = { type: 'lost', client: 'p', ask: 2, reason: 'replaced', at: 20 } as const;
      const held = replacing({ ask: 2, from: 15, to: 20 });
      expect(violationsOf([{ ...ask, replaceWaitMs: 2_000 } as HistoryEvent, failed])).toEqual([]);
      expect(violationsOf([...held, lost])).toEqual([]);
      expect(violationsOf([ask!, failed])).toEqual(['error: a caller was given a LockLostError']);
    });
  });

  it('finds a job that ran again too soon, unless data were lost', () => {
    const job = { name: 'job', everyMs: 700, atLeastMs: 400 };
    const plan = { ...PLAN, crews: [{ ...CREW, job }] };
    const runs = (client: string, from: number): HistoryEvent[] =>
      holds({ client, ask: 1, keys: ['job'], from, to: from + 1 });
    expect(violationsOf([...runs('p', 300), ...runs('q', 700)], { plan })).toEqual([]);
    const soon = [...runs('p', 300), ...runs('q', 600)];
    expect(violationsOf(soon, { plan })).toEqual([expect.stringMatching(/^job: q#1 ran "job"/)]);
    const faults = [{ fault: FLUSHED, from: 500, to: 501 }];
    const lost = { ...plan, faults: [FLUSHED] };
    const after = runs('r', 1_990);
    expect(violationsOf([...soon, ...after], { plan: lost, faults })).toEqual([]);
  });

  it('finds work that was done again, unless Redis may have forgotten it', () => {
    const works = (client: string, from: number): HistoryEvent[] => {
      const [ask, granted] = holds({ client, ask: 1, keys: ['work'], from, to: from });
      const who = { client, ask: 1 };
      const attempt = { type: 'attempt', attempt: 1, isLast: false, fencingToken: from } as const;
      return [
        { ...ask, how: 'once' } as HistoryEvent,
        { ...who, ...attempt, at: from },
        granted!,
        { ...who, type: 'once', outcome: 'completed', attempts: 1, at: from + 5 },
      ];
    };
    const again = [...works('p', 480), ...works('q', 510)];
    const found = expect.stringMatching(/^once: q#1 is attempt 1 at "work"/);
    expect(violationsOf(again)).toContainEqual(found);
    expect(withFault(SLOT_MOVED, again, 'cluster')).toContainEqual(found);
    expect(withFault(FLUSHED, again)).toEqual([]);
  });

  describe('of fencing tokens', () => {
    it('finds two who hold a key together', () => {
      const history = [
        ...holds({ ask: 1, mode: 'shared', token: 7, from: 10, to: 50 }),
        ...holds({ client: 'q', ask: 2, mode: 'shared', token: 8, from: 20, to: 60 }),
      ];
      expect(violationsOf(history)).toEqual([expect.stringMatching(/^fencing: .* together/)]);
    });

    it('finds a phase after a writer whose token is not larger', () => {
      const history = [
        ...holds({ ask: 1, token: 8, from: 10, to: 20 }),
        ...holds({ client: 'q', ask: 2, mode: 'shared', token: 7, from: 30, to: 60 }),
      ];
      expect(violationsOf(history)).toEqual([expect.stringMatching(/^fencing: key "k" went/)]);
    });

    it('allows for a smaller one soon after several masters have lost their data, and no longer', () => {
      const smaller = (from: number): HistoryEvent[] => [
        ...holds({ ask: 1, token: 8, from: 480, to: 490 }),
        ...holds({ client: 'q', ask: 2, token: 7, from, to: from + 10 }),
      ];
      const found = [expect.stringMatching(/^fencing: key "k" went/)];
      expect(withFault(FLUSHED, smaller(540), 'three-masters')).toEqual([]);
      expect(withFault(FLUSHED, smaller(640), 'three-masters')).toEqual(found);
      expect(withFault(FLUSHED, smaller(540))).toEqual(found);
    });

    it('allows for a smaller one of a turn after the key was lost, in the process of the old holder only', () => {
      const turnOf = (client: string): HistoryEvent[] => [
        ...holds({ ask: 1, token: 8, from: 480, to: 540 }),
        ...holds({ client: 'q', ask: 2, token: 90_000, from: 510, to: 520 }),
        ...holds({ client, ask: 3, token: 9, from: 545, to: 550 }),
      ];
      const lost: Fault = { kind: 'key-lost', key: 'k', atMs: 500 };
      expect(withFault(lost, turnOf('p'))).toEqual([]);
      expect(withFault(lost, turnOf('r'))).toEqual([
        expect.stringMatching(/^fencing: key "k" went/),
      ]);
    });

    it('finds one that is far ahead of the clock', () => {
      const history = holds({ ask: 1, aheadMs: 1_000, from: 10, to: 20 });
      expect(violationsOf(history)).toEqual([expect.stringMatching(/^fencing: 1 tokens were/)]);
    });
  });

  describe('of callers who wait', () => {
    const late = (from: number, mode = 'exclusive'): HistoryEvent[] =>
      holds({ client: 'q', ask: 2, mode, askedAt: 300, from, to: from + 10 });

    it('finds one beside a free key', () => {
      expect(violationsOf(late(540))).toEqual([]);
      expect(violationsOf(late(700))).toEqual([expect.stringMatching(/^gap: for 400 ms/)]);
    });

    it('lets one wait for a key that is held', () => {
      expect(violationsOf([...holds({ ask: 1, from: 10, to: 690 }), ...late(700)])).toEqual([]);
    });

    it('lets one wait for somebody older who waits for another key', () => {
      const history = [
        ...holds({ ask: 1, keys: ['l'], from: 10, to: 690 }),
        ...holds({ ask: 2, keys: ['k', 'l'], askedAt: 200, from: 691, to: 695 }),
        ...late(700),
      ];
      expect(violationsOf(history)).toEqual([]);
    });

    it('finds a reader beside readers, unless a writer waits before him', () => {
      const readers = holds({ ask: 1, mode: 'shared', token: 7, from: 10, to: 1_000 });
      const reader = late(700, 'shared').map((event) => ({ ...event, fencingToken: 7 }));
      const writer = holds({ client: 'w', ask: 3, askedAt: 20, from: 1_010, to: 1_020 });
      expect(violationsOf([...readers, ...reader])).toEqual([expect.stringMatching(/^gap/)]);
      expect(violationsOf([...readers, ...reader, ...writer])).toEqual([]);
    });

    it('finds one beside free places, unless they are too few for it or for one before it', () => {
      const holder = holds({ ask: 1, mode: 'limit:3', token: 7, from: 10, to: 1_000 });
      const waits = (client: string, places: number, from: number): HistoryEvent[] =>
        holds({ client, ask: 2, mode: 'limit:3', places, token: 7, askedAt: 300, from, to: from });
      expect(violationsOf([...holder, ...waits('q', 2, 700)])).toEqual([
        expect.stringMatching(/^gap: for 400 ms/),
      ]);
      expect(violationsOf([...holder, ...waits('q', 3, 1_010)])).toEqual([]);
      expect(violationsOf([...holder, ...waits('q', 2, 1_020), ...waits('r', 3, 1_010)])).toEqual(
        [],
      );
    });

    it('allows for a machine that is too busy', () => {
      const beats = BEATS.filter(({ at }) => at < 350 || at > 600);
      expect(violationsOf(late(700), { beats })).toEqual([]);
    });

    it('allows for the time in which those who wait notice that their line is lost, and no longer', () => {
      const waits = (to: number): HistoryEvent[] => [
        ...holds({ ask: 1, from: 10, to: 510 }),
        ...late(to),
      ];
      expect(withFault(LINE_LOST, waits(1_000))).toEqual([]);
      expect(withFault(LINE_LOST, waits(1_300))).toEqual([expect.stringMatching(/^gap/)]);
    });

    it('finds one who heard too late, unless its process could not run', () => {
      const [ask] = holds({ ask: 1, from: 10, to: 10 });
      const refused = { type: 'refused', client: 'p', ask: 1, at: 4_200 } as const;
      const history = [{ ...ask, waitMs: 100 } as HistoryEvent, refused];
      const beats = range(210).map((beat): HistoryEvent => ({ ...BEATS[0]!, at: beat * BEAT_MS }));
      const busy = beats.filter(({ at }) => at < 100 || at > 1_000);
      expect(violationsOf(history, { beats })).toContainEqual(
        expect.stringMatching(/^late: p#1 .* after 4190 ms/),
      );
      expect(violationsOf(history, { beats: busy }).join()).not.toContain('late:');
    });

    it('finds one who was patient, and was refused', () => {
      const [ask] = holds({ ask: 1, from: 10, to: 20 });
      const refused = { type: 'refused', client: 'p', ask: 1, at: 1_010 } as const;
      const history = [...holds({ client: 'h', ask: 1, from: 5, to: 1_500 }), ask!, refused];
      expect(violationsOf(history)).toEqual([expect.stringMatching(/^refused: 1/)]);
      const beats = BEATS.filter((_, beat) => beat % 2 === 0);
      expect(violationsOf(history, { beats })).toEqual([]);
    });
  });

  it('finds locks that were lost without any fault', () => {
    const lost = { type: 'lost', client: 'p', ask: 1, reason: 'expired', at: 20 } as const;
    const history = [...holds({ ask: 1, from: 10, to: 30 }), lost];
    expect(violationsOf(history)).toEqual([expect.stringMatching(/^lost: 1/)]);
    expect(withFault(FLUSHED, history)).toEqual([]);
  });

  it('finds errors that nobody expects', () => {
    const [ask] = holds({ ask: 1, from: 10, to: 20 });
    const failed = { type: 'failed', client: 'p', ask: 1, error: 'TypeError', at: 20 } as const;
    expect(violationsOf([ask!, failed])).toEqual(['error: a caller was given a TypeError']);
  });

  it('expects a LockNotAttachedError of those who attach, and of nobody else', () => {
    const [ask] = holds({ ask: 1, from: 10, to: 20 });
    const answer = { type: 'failed', client: 'p', ask: 1, at: 20 } as const;
    const failed = { ...answer, error: 'LockNotAttachedError' };
    const attaches = { ...ask, how: 'attach', waitMs: 0 } as HistoryEvent;
    expect(violationsOf([attaches, failed])).toEqual([]);
    expect(violationsOf([ask!, failed])).toEqual([
      'error: a caller was given a LockNotAttachedError',
    ]);
  });

  it('has the rules of detached locks and of leaders', () => {
    const who = { client: 'p', ask: 1 } as const;
    const held = holds({ ask: 1, from: 10, to: 20 });
    const leads = held.map((event) =>
      event.type === 'ask' ? { ...event, how: 'lead', candidate: 9 } : event,
    );
    expect(violationsOf(leads)).toEqual([expect.stringMatching(/^lead: p#1 was not notified/)]);
    const facts = { keys: ['k'], mode: 'exclusive', fencingToken: 10 };
    const detached: HistoryEvent[] = [
      ...held.slice(0, -1),
      { ...who, type: 'detaches', part: 2, at: 20 },
      { ...who, type: 'detached', part: 2, ...facts, forMs: 900, at: 21 },
    ];
    const attach = { type: 'ask', how: 'attach', keys: ['k'], waitMs: 0, sender: 'p', part: 2 };
    const refused = (client: string, at: number): HistoryEvent[] => [
      { ...attach, client, ask: 3, at } as HistoryEvent,
      { type: 'failed', client, ask: 3, error: 'LockNotAttachedError', at: at + 1 },
    ];
    expect(violationsOf([...detached, ...refused('q', 1_200)])).toEqual([]);
    expect(violationsOf([...detached, ...refused('q', 100)])).toEqual([
      'attach: q#3 came in time, and was refused',
    ]);
    expect(withFault(FLUSHED, [...detached, ...refused('q', 510)])).toEqual([]);
  });

  it('finds that keys were handed round, by the number of scripts', () => {
    expect(violationsOf([], { scripts: 20 * 20 })).toEqual([]);
    expect(violationsOf([], { scripts: 20 * 21 })).toEqual([
      expect.stringMatching(/^wasted: .*21/),
    ]);
  });

  it('finds a run that proves nothing', () => {
    expect(checkEngine({ plan: PLAN, events: [], faults: [], scripts: 0 })).toEqual([
      'vacuous: 0 grants',
    ]);
    const plan = { ...PLAN, faults: [FLUSHED] };
    expect(violationsOf([], { plan })).toEqual(['vacuous: 1 faults were not done']);
    const faults = [{ fault: FLUSHED, from: 1_900, to: 1_901 }];
    expect(violationsOf([], { plan, faults })).toEqual(['vacuous: no grant after the last fault']);
  });

  it('finds that many locks were granted, and none of them was attached', () => {
    const crew = { ...CREW, detaches: 0.5 };
    const many = range(400).flatMap((turn) =>
      holds({ client: 'm', ask: turn + 1, keys: ['m'], from: turn * 4 + 1, to: turn * 4 + 2 }),
    );
    expect(violationsOf(many)).toEqual([]);
    expect(violationsOf(many, { plan: { ...PLAN, crews: [crew] } })).toEqual([
      'vacuous: no lock was attached, in 420 grants',
    ]);
  });
});
