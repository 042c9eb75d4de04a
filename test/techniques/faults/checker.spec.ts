import { describe, expect, it } from '@jest/globals';
import { SLACK_MS } from './answers.js';
import { check } from './checker.js';
import type { History, HistoryEvent } from './history.js';
import type { Plan, Step } from './plan.js';

const KILLED: Step = {
  step: 0,
  lane: 0,
  atMs: 100,
  forMs: 300,
  kind: 'node-killed',
  target: 1,
  delayMs: 0,
};
const STOPPED: Step = {
  step: 1,
  lane: 1,
  atMs: 100,
  forMs: 300,
  kind: 'client-stopped',
  target: 3,
};
const CLIENT_KILLED: Step = { ...STOPPED, kind: 'client-killed' };

const PLAN: Plan = {
  mode: 'forgetful',
  seed: 1,
  nodes: 3,
  clients: 4,
  withoutHandoff: [],
  lengthMs: 1_000,
  steps: [KILLED],
};

const FAULT: readonly HistoryEvent[] = [
  { type: 'fault', step: 0, at: 100 },
  { type: 'healed', step: 0, at: 400 },
];

interface Hold {
  readonly client?: string;
  readonly ask: number;
  readonly token?: number;
  readonly keys?: readonly string[];
  readonly from: number;
  readonly to: number;
}

/** A caller that asks, is granted, looks at both ends and gives back. */
function holds({ client = 'p', ask, token = ask, keys = ['k'], from, to }: Hold): HistoryEvent[] {
  const who = { client, ask };
  return [
    { ...who, type: 'ask', how: 'acquire', keys, waitMs: 1_000, at: from - 2 },
    { ...who, type: 'granted', keys, fencingToken: token, at: from - 1 },
    { ...who, type: 'held', until: from + 500, at: from },
    { ...who, type: 'held', until: to + 500, at: to },
    { ...who, type: 'releasing', at: to + 0.1 },
    { ...who, type: 'released', result: 'true', at: to + 0.5 },
  ];
}

/** Enough of other grants, on a key of their own, for a run that is not vacuous. */
const OTHERS = Array.from({ length: 10 }, (_, turn) =>
  holds({
    client: 'o',
    ask: turn + 1,
    keys: ['other'],
    from: turn * 100 + 10,
    to: turn * 100 + 50,
  }),
).flat();

function violationsOf(
  events: readonly HistoryEvent[],
  { plan = PLAN, ...rest }: Partial<History> = {},
): readonly string[] {
  const all = [...FAULT, ...OTHERS, ...events].sort((a, b) => a.at - b.at);
  return check({ plan, events: all, left: [], ...rest });
}

describe('the checker', () => {
  it('finds nothing in a run in which one held the lock after the other', () => {
    const history = [
      { type: 'started', client: 'p', at: 0 } as const,
      ...holds({ ask: 1, from: 10, to: 20 }),
      ...holds({ client: 'q', ask: 2, from: 21, to: 30 }),
      ...holds({ ask: 3, keys: ['j', 'k'], from: 31, to: 40 }),
      { type: 'ask', client: 'q', ask: 4, how: 'run', keys: ['k'], waitMs: 5, at: 31 } as const,
      { type: 'refused', client: 'q', ask: 4, at: 37 } as const,
      { type: 'ended', client: 'p', at: 50 } as const,
    ];
    const left = [{ node: 0, name: '{lock:k}:fence', ttlMs: 100 }];
    expect(violationsOf(history, { left })).toEqual([]);
  });

  describe('of two holders', () => {
    it('finds that they overlapped', () => {
      const history = [
        ...holds({ ask: 1, from: 10, to: 20 }),
        ...holds({ client: 'q', ask: 2, from: 19, to: 30 }),
      ];
      expect(violationsOf(history)).toEqual([
        'overlap: key "k" was held by p#1 and q#2 at once, from 19.0 on for 1.0 ms',
      ]);
    });

    it('finds one that began and ended within another, and one after that', () => {
      const history = [
        ...holds({ ask: 1, from: 10, to: 90 }),
        ...holds({ client: 'q', ask: 2, from: 20, to: 30 }),
        ...holds({ client: 'q', ask: 3, from: 40, to: 50 }),
      ];
      expect(violationsOf(history)).toHaveLength(2);
    });

    it('finds it of one key of several', () => {
      const history = [
        ...holds({ ask: 1, keys: ['j', 'k'], from: 10, to: 20 }),
        ...holds({ client: 'q', ask: 2, keys: ['k', 'l'], from: 15, to: 30 }),
      ];
      expect(violationsOf(history)).toEqual([expect.stringMatching(/^overlap: key "k"/)]);
    });

    it('finds it when the process of the first was stopped, and believes to hold it when it goes on', () => {
      const plan = { ...PLAN, steps: [KILLED, STOPPED] };
      const history = [
        ...holds({ client: 's', ask: 1, from: 10, to: 450 }),
        ...holds({ client: 'q', ask: 2, from: 300, to: 310 }),
        { type: 'fault', step: 1, client: 's', at: 20 } as const,
        { type: 'healed', step: 1, at: 400 } as const,
      ];
      expect(violationsOf(history, { plan })).toEqual([expect.stringMatching(/^overlap: .*s#1/)]);
    });

    it('believes a process that was killed that it held the lock until its lease was over', () => {
      const plan = { ...PLAN, steps: [KILLED, CLIENT_KILLED] };
      const killed = [
        ...holds({ client: 's', ask: 1, from: 10, to: 50 }).slice(0, 3), // promised until 510
        { type: 'started', client: 's', at: 0 } as const,
        { type: 'fault', step: 1, client: 's', at: 20 } as const,
        { type: 'healed', step: 1, at: 400 } as const,
      ];
      const early = holds({ client: 'q', ask: 2, from: 509, to: 520 });
      const late = holds({ client: 'q', ask: 2, from: 511, to: 520 });
      expect(violationsOf([...killed, ...early], { plan })).toEqual([
        expect.stringMatching(/^overlap/),
      ]);
      expect(violationsOf([...killed, ...late], { plan })).toEqual([]);
    });

    it('does not blame a holder for a time at which nobody looked', () => {
      const history = [
        ...holds({ ask: 1, from: 10, to: 90 }).filter(({ at }) => at < 90),
        ...holds({ client: 'q', ask: 2, from: 20, to: 30 }),
      ];
      expect(violationsOf(history)).toEqual([]);
    });
  });

  describe('of fencing tokens', () => {
    it('finds one that is smaller than that of an earlier holder', () => {
      const history = [
        ...holds({ ask: 1, token: 7, from: 10, to: 20 }),
        ...holds({ client: 'q', ask: 2, token: 8, from: 30, to: 40 }),
        ...holds({ ask: 3, token: 6, from: 50, to: 60 }),
      ];
      expect(violationsOf(history)).toEqual([
        'fencing: key "k" went from q#2 to p#3, and its token from 8 to 6',
      ]);
    });

    it('finds one that was given twice, also where nobody looked at the lock', () => {
      const history = [
        ...holds({ ask: 1, token: 7, from: 10, to: 20 }),
        ...holds({ client: 'q', ask: 2, token: 7, from: 1, to: 2 }).filter(
          ({ type }) => type !== 'held',
        ),
      ];
      expect(violationsOf(history)).toEqual([
        'fencing: token 7 of key "k" was given to q#2 and p#1',
      ]);
    });

    it('takes each key for itself', () => {
      const history = [
        ...holds({ ask: 1, token: 7, keys: ['j'], from: 10, to: 20 }),
        ...holds({ client: 'q', ask: 2, token: 6, keys: ['k'], from: 30, to: 40 }),
      ];
      expect(violationsOf(history)).toEqual([]);
    });
  });

  describe('of work that is to be done once', () => {
    const plan = { ...PLAN, steps: [STOPPED] };
    const attemptOf = (client: string, at: number): readonly HistoryEvent[] => [
      { type: 'ask', client, ask: 9, how: 'once', keys: ['job'], waitMs: 50, at },
      {
        client,
        ask: 9,
        at: at + 1,
        ...{ type: 'attempt', attempt: 1, isLast: false, fencingToken: at },
      },
      {
        client,
        ask: 9,
        at: at + 2,
        ...{ type: 'once', outcome: 'completed', attempts: 1, value: client },
      },
    ];
    const STEP: readonly HistoryEvent[] = [
      { type: 'fault', step: 1, client: 's', at: 20 },
      { type: 'healed', step: 1, at: 420 },
    ];
    const found = (more: readonly HistoryEvent[], where: Plan = plan): readonly string[] =>
      violationsOf([...STEP, ...attemptOf('p', 10), ...more], { plan: where });

    it('finds that it was done again', () => {
      expect(found(attemptOf('q', 500))).toEqual([
        'once: q#9 is attempt 1 at "job", which p#9 has marked as done',
        'once: "job" was marked as done by p#9 and by q#9',
      ]);
    });

    it('finds that somebody was told another value', () => {
      const [ask] = attemptOf('q', 500);
      const outcome = { type: 'once', outcome: 'done-elsewhere', attempts: 1 } as const;
      const told = (value: string): readonly HistoryEvent[] => [
        ask!,
        { client: 'q', ask: 9, at: 501, ...outcome, value },
      ];
      expect(found(told('p'))).toEqual([]);
      expect(found(told('x'))).toEqual(['once: q#9 was told the value "x" of "job", which is "p"']);
    });

    it('lets an earlier attempt begin late that has lost its lock', () => {
      const [ask, attempt] = attemptOf('q', 500);
      const failed = { type: 'failed', client: 'q', ask: 9, error: 'Error', at: 503 } as const;
      const begunWith = (fencingToken: number): readonly HistoryEvent[] => [
        ask!,
        { ...attempt, fencingToken } as HistoryEvent,
        failed,
      ];
      expect(found(begunWith(9))).toEqual([]);
      expect(found(begunWith(11))).toEqual([
        'once: q#9 is attempt 1 at "job", which p#9 has marked as done',
      ]);
    });

    it('finds that an attempt marked it that a later one had superseded', () => {
      const [ask, attempt, outcome] = attemptOf('p', 10);
      const [laterAsk, later] = attemptOf('q', 11);
      const failed = { type: 'failed', client: 'q', ask: 9, error: 'Error', at: 30 } as const;
      expect(
        violationsOf([...STEP, ask!, attempt!, laterAsk!, later!, outcome!, failed], { plan }),
      ).toEqual(['once: "job" was marked as done by p#9, which q#9 had superseded']);
    });

    it('lets it be done again where a server has forgotten it', () => {
      expect(found(attemptOf('q', 500), { ...PLAN, steps: [KILLED, STOPPED] })).toEqual([]);
    });
  });

  describe('of callers', () => {
    const ASK = { type: 'ask', client: 's', ask: 1, how: 'run', keys: ['k'], waitMs: 50 } as const;
    const lateBy = (ms: number): readonly HistoryEvent[] => [
      { ...ASK, at: 10 },
      { type: 'failed', client: 's', ask: 1, error: 'Error', at: 10 + 50 + SLACK_MS + ms },
    ];

    it('finds one who never heard anything', () => {
      expect(violationsOf([{ ...ASK, at: 10 }])).toEqual(['late: s#1 (run) never heard anything']);
    });

    it('finds one who heard too late', () => {
      expect(violationsOf(lateBy(-1))).toEqual([]);
      expect(violationsOf(lateBy(2))).toEqual([
        `late: s#1 (run) was to hear within 50 ms, and heard after ${50 + SLACK_MS + 2} ms: failed`,
      ]);
    });

    it('allows for the time for which their process was stopped', () => {
      const plan = { ...PLAN, steps: [KILLED, STOPPED] };
      const stop: readonly HistoryEvent[] = [
        { type: 'fault', step: 1, client: 's', at: 20 },
        { type: 'healed', step: 1, at: 420 },
      ];
      expect(violationsOf([...stop, ...lateBy(399)], { plan })).toEqual([]);
      expect(violationsOf([...stop, ...lateBy(401)], { plan })).toHaveLength(1);
    });

    it('expects nothing of a process that was killed, and of every other that it shuts down', () => {
      const plan = { ...PLAN, steps: [KILLED, CLIENT_KILLED] };
      const started: readonly HistoryEvent[] = [{ type: 'started', client: 's', at: 0 }];
      const killed: readonly HistoryEvent[] = [
        { ...ASK, at: 10 },
        { type: 'fault', step: 1, client: 's', at: 20 },
        { type: 'healed', step: 1, at: 420 },
      ];
      expect(violationsOf([...started, ...killed], { plan })).toEqual([]);
      expect(violationsOf(started)).toEqual(['unfinished: client s did not shut down']);
    });
  });

  it.each([
    ['a lock', 'lock:k', 100],
    ['a line', '{lock:k}:queue', 100],
    ['a fencing token without TTL', '{lock:k}:fence', -1],
    ['a key of the guard that will expire', 'lock:{epoch}', 100],
  ])('finds %s that was left behind', (_what, name, ttlMs) => {
    expect(violationsOf([], { left: [{ node: 2, name, ttlMs }] })).toEqual([
      `left behind: "${name}" on server 2 (PTTL ${ttlMs})`,
    ]);
  });

  it('lets the place of a killed process stay until its line ends', () => {
    const plan = { ...PLAN, steps: [KILLED, CLIENT_KILLED] };
    const killed: readonly HistoryEvent[] = [
      { type: 'fault', step: 1, client: 's', at: 20 },
      { type: 'healed', step: 1, at: 420 },
    ];
    const lasting = (ttlMs: number) => ({
      plan,
      left: [{ node: 0, name: '{lock:k}:queue', ttlMs }],
    });
    expect(violationsOf(killed, lasting(20_000))).toEqual([]);
    expect(violationsOf(killed, lasting(20_001))).toHaveLength(1);
    expect(violationsOf(killed, lasting(-1))).toHaveLength(1);
  });

  it('lets fencing tokens stay for a while, and the key of the guard for good', () => {
    const left = [
      { node: 0, name: '{lock:k}:fence', ttlMs: 100 },
      { node: 0, name: '{app}:lock:k:{fence}', ttlMs: 100 },
      { node: 0, name: 'lock:epoch', ttlMs: -1 },
    ];
    expect(violationsOf([], { left })).toEqual([]);
  });

  describe('of a run that proves nothing', () => {
    it('finds that there were few grants', () => {
      const plan = { ...PLAN, lengthMs: 3_000 };
      expect(violationsOf([], { plan })).toEqual(['vacuous: 10 grants, of at least 15']);
    });

    it('finds a fault that was not done, or not undone', () => {
      const plan = { ...PLAN, steps: [KILLED, STOPPED] };
      const missing = [expect.stringMatching(/^vacuous: step 1 was not done/)];
      expect(violationsOf([], { plan })).toEqual(missing);
      expect(violationsOf([{ type: 'fault', step: 1, at: 20 }], { plan })).toEqual(missing);
    });

    it('finds that nothing was granted after a fault', () => {
      const events = [...FAULT, ...OTHERS].filter(({ at }) => at <= 400);
      expect(check({ plan: { ...PLAN, lengthMs: 400 }, events, left: [] })).toEqual([
        expect.stringMatching(/^vacuous: no grant after step 0 was over/),
      ]);
    });

    it('finds that nothing was granted while a server was down', () => {
      const events = [...FAULT, ...OTHERS].filter(
        ({ at, type }) => type !== 'granted' || at < 100 || at > 400,
      );
      const violations = check({ plan: PLAN, events, left: [] });
      expect(violations).toContain('vacuous: no grant while one of the servers was down');
    });
  });
});
