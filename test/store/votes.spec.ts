import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { FoundKey } from '../../lib/store/admin-store.js';
import type {
  AcquireOutcome,
  ExtendOutcome,
  ReleaseOutcome,
  Unavailable,
} from '../../lib/store/lock-store.js';
import { quorumOf } from '../../lib/store/redis/quorum/poll.js';
import type { Vote } from '../../lib/store/redis/scripts/acquire.js';
import type { RenewalVote } from '../../lib/store/redis/node/extend.js';
import {
  acquireOutcome,
  extendOutcome,
  mergedKey,
  releaseOutcome,
  unavailable,
} from '../../lib/store/redis/quorum/votes.js';

interface Status {
  readonly status: string;
}
type Answers<Answer> = readonly (Answer | undefined)[];

const failure = (transient = true): Unavailable => ({
  status: 'unavailable',
  nodes: [{ node: 'itself', kind: 'error', message: 'down' }],
  transient,
});
const granted = (fencingToken = 1): Vote => ({
  status: 'granted',
  fencingToken,
  othersWait: false,
});
const refused = (holder: string, remainingMs = 1_000, key = 'key'): Vote => ({
  status: 'held',
  key,
  holder,
  remainingMs,
  checkAgainMs: remainingMs,
});

type Nodes = readonly { readonly name: string; readonly isSilent: boolean }[];

const nodes = (...names: readonly string[]): Nodes =>
  names.map((name) => ({ name, isSilent: false }));

const nodesOf = (answers: readonly unknown[]): Nodes =>
  nodes(...answers.map((_, index) => `node ${String(index)}`));

const count = (answers: Answers<Status>, ...statuses: readonly string[]): number =>
  answers.filter((answer) => answer !== undefined && statuses.includes(answer.status)).length;

const failureArb: fc.Arbitrary<Unavailable> = fc
  .record({ transient: fc.boolean(), unsent: fc.boolean() })
  .map(({ transient, unsent }) => ({ ...failure(transient), ...(unsent && { sent: false }) }));

const voteArb: fc.Arbitrary<Vote> = fc.oneof(
  fc.integer({ min: 1, max: 9 }).map(granted),
  fc
    .tuple(fc.constantFrom('A', 'B', 'C'), fc.nat(30_000), fc.constantFrom('key', 'other'))
    .map((parts) => refused(...parts)),
  failureArb,
);

const GONE: RenewalVote = { status: 'lost', reason: 'released-elsewhere', fences: [0] };

const renewalArb: fc.Arbitrary<RenewalVote> = fc.oneof(
  fc.constant<RenewalVote>({ status: 'extended' }),
  fc.constant<RenewalVote>(GONE),
  fc.constant<RenewalVote>({ status: 'lost', reason: 'stolen' }),
  failureArb,
);

const releaseArb: fc.Arbitrary<ReleaseOutcome> = fc.oneof(
  fc.constant<ReleaseOutcome>({ status: 'released' }),
  fc.constant<ReleaseOutcome>({ status: 'not-held' }),
  failureArb,
);

/** Some answers, and how many of the missing ones are waited for. */
function situation<Answer>(
  answer: fc.Arbitrary<Answer>,
): fc.Arbitrary<{ readonly answers: Answers<Answer>; readonly awaited: number }> {
  return fc
    .array(fc.option(answer, { nil: undefined }), { minLength: 1, maxLength: 7 })
    .chain((answers) =>
      fc.record({
        answers: fc.constant(answers),
        awaited: fc.nat(answers.filter((each) => each === undefined).length),
      }),
    );
}

/** How a vote comes in: what all nodes answer, in which order, and which of them are not waited for. */
interface Course<Answer> {
  readonly answers: readonly Answer[];
  readonly order: readonly number[];
  readonly notAwaited: readonly boolean[];
}

function course<Answer>(answer: fc.Arbitrary<Answer>): fc.Arbitrary<Course<Answer>> {
  return fc.array(answer, { minLength: 1, maxLength: 7 }).chain((answers) => {
    const nodes = answers.map((_, index) => index);
    return fc.record({
      answers: fc.constant(answers),
      order: fc.shuffledSubarray(nodes, { minLength: nodes.length }),
      notAwaited: fc.array(fc.boolean(), { minLength: nodes.length, maxLength: nodes.length }),
    });
  });
}

/** What is said after each answer, with those that are missing all waited for, or without some of them. */
function said<Answer, Outcome>(
  { answers, order, notAwaited }: Course<Answer>,
  waits: 'for all' | 'for some',
  outcomeOf: (answers: Answers<Answer>, awaited: number, names: Nodes) => Outcome | undefined,
): readonly (Outcome | undefined)[] {
  return order.map((_, last) => {
    const here = order.slice(0, last + 1);
    const known = answers.map((answer, index) => (here.includes(index) ? answer : undefined));
    const missing = answers.filter(
      (_answer, index) =>
        !here.includes(index) && (waits === 'for all' || notAwaited[index] !== true),
    );
    return outcomeOf(known, missing.length, nodesOf(answers));
  });
}

/** The one who has so many refusals for one key that no other can have a majority. */
function certainHolder(votes: Answers<Vote>): string | undefined {
  const counts = new Map<string, number>();
  for (const vote of votes) {
    if (vote?.status !== 'held') continue;
    const id = `${vote.key} ${vote.holder}`;
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return [...counts].find(([, votesOf]) => votesOf >= quorumOf(votes.length))?.[0];
}

describe('acquireOutcome', () => {
  it('grants with a majority, and with nothing less; the token is the largest of those that granted', () => {
    fc.assert(
      fc.property(situation(voteArb), ({ answers, awaited }) => {
        const outcome = acquireOutcome(answers, awaited, nodesOf(answers));
        const tokens = answers.flatMap((vote) =>
          vote?.status === 'granted' ? [vote.fencingToken] : [],
        );
        expect(outcome?.status === 'granted').toBe(tokens.length >= quorumOf(answers.length));
        if (outcome?.status === 'granted') expect(outcome.fencingToken).toBe(Math.max(...tokens));
      }),
    );
  });

  it('says something as soon as nobody is waited for', () => {
    fc.assert(
      fc.property(situation(voteArb), ({ answers }) => {
        expect(acquireOutcome(answers, 0, nodesOf(answers))).toBeDefined();
      }),
    );
  });

  it('names a holder for certain only where one token has a majority, and then at once', () => {
    fc.assert(
      fc.property(situation(voteArb), ({ answers, awaited }) => {
        const outcome = acquireOutcome(answers, awaited, nodesOf(answers));
        const isCertain = outcome?.status === 'held' && outcome.contended === undefined;
        const holder = certainHolder(answers);
        expect(isCertain).toBe(holder !== undefined);
        if (isCertain) expect(holder?.split(' ')[0]).toBe(outcome.key);
      }),
    );
  });

  it('says that it is contended only where a majority has answered, and nobody can be granted it by those waited for', () => {
    fc.assert(
      fc.property(situation(voteArb), ({ answers, awaited }) => {
        const outcome = acquireOutcome(answers, awaited, nodesOf(answers));
        if (outcome?.status !== 'held' || outcome.contended === undefined) return;
        const quorum = quorumOf(answers.length);
        expect(count(answers, 'granted', 'held')).toBeGreaterThanOrEqual(quorum);
        expect(count(answers, 'granted') + awaited).toBeLessThan(quorum);
      }),
    );
  });

  const kindOf = (outcome: AcquireOutcome): string =>
    outcome.status === 'held' && outcome.contended === undefined ? 'certain' : outcome.status;

  it('contradicts itself never while all are waited for: granted, held and unavailable stay so', () => {
    fc.assert(
      fc.property(course(voteArb), (votes) => {
        const outcomes = said(votes, 'for all', acquireOutcome);
        const first = outcomes.find((outcome) => outcome !== undefined);
        const since = outcomes.slice(outcomes.indexOf(first));
        expect(new Set(since.map((outcome) => outcome?.status)).size).toBe(1);
      }),
    );
  });

  it('never takes back a grant or a certain holder, whoever is not waited for', () => {
    fc.assert(
      fc.property(course(voteArb), (votes) => {
        const kinds = said(votes, 'for some', acquireOutcome).map(
          (outcome) => outcome && kindOf(outcome),
        );
        for (const kind of ['granted', 'certain']) {
          const first = kinds.indexOf(kind);
          if (first >= 0) expect(new Set(kinds.slice(first))).toEqual(new Set([kind]));
        }
      }),
    );
  });

  it('is an outage only where it can name a node that is to blame', () => {
    fc.assert(
      fc.property(course(voteArb), (votes) => {
        // As poll does: who is not waited for is less than a majority.
        const some = votes.notAwaited.filter((each) => each).length;
        if (votes.answers.length - some < quorumOf(votes.answers.length)) return;
        for (const outcome of said(votes, 'for some', acquireOutcome)) {
          if (outcome?.status === 'unavailable') expect(outcome.nodes).not.toEqual([]);
        }
      }),
    );
  });

  it('is plain, and has a token from the clock, only if that is so of all that granted it', () => {
    const names = nodes('a', 'b', 'c');
    const plain = (fencingToken: number): Vote =>
      ({ ...granted(fencingToken), isPlain: true, isFromClock: true }) as Vote;
    const whole = (fencingToken: number): Vote =>
      ({ ...granted(fencingToken), isFromClock: false }) as Vote;
    const is = (isPlain: boolean, isFromClock: boolean) => ({
      ...{ status: 'granted', fencingToken: 5, isPlain, isFromClock },
    });
    expect(acquireOutcome([plain(5), plain(5), refused('A')], 0, names)).toMatchObject(
      is(true, true),
    );
    expect(acquireOutcome([plain(5), plain(4), plain(3)], 0, names)).toMatchObject(is(true, true));
    expect(acquireOutcome([plain(5), whole(5), failure()], 0, names)).toMatchObject(
      is(false, false),
    );
    expect(acquireOutcome([plain(4), whole(5), failure()], 0, names)).toMatchObject(
      is(false, false),
    );
  });

  it('waits for no more answers than decide the matter', () => {
    const names = nodes('a', 'b', 'c');
    expect(acquireOutcome([granted(3), undefined, granted(5)], 1, names)).toEqual({
      status: 'granted',
      fencingToken: 5,
      isFromClock: false,
      isPlain: false,
      othersWait: false,
    });
    expect(acquireOutcome([refused('A'), undefined, refused('A')], 1, names)).toMatchObject({
      status: 'held',
    });
    expect(acquireOutcome([failure(), undefined, failure()], 1, names)).toMatchObject({
      status: 'unavailable',
    });
    expect(acquireOutcome([refused('A'), refused('B'), undefined], 1, names)).toMatchObject({
      status: 'held',
      contended: true,
    });
    expect(acquireOutcome([granted(), undefined, undefined], 2, names)).toBeUndefined();
    expect(acquireOutcome([granted(), refused('A'), undefined], 1, names)).toBeUndefined();
  });

  it('tells a caller who is refused for certain to come back at the time of the k-th vote, k being a majority', () => {
    fc.assert(
      fc.property(situation(voteArb), ({ answers, awaited }) => {
        const outcome = acquireOutcome(answers, awaited, nodesOf(answers));
        if (outcome?.status !== 'held' || outcome.contended === true) return;
        const times = answers.map((vote) => {
          if (vote?.status === 'granted') return 0;
          return vote?.status === 'held' ? vote.remainingMs : Infinity;
        });
        const kth = times.toSorted((a, b) => a - b)[quorumOf(answers.length) - 1];
        expect(outcome).toMatchObject({ remainingMs: kth, checkAgainMs: kth });
      }),
    );
  });

  it('tells when to look again apart from when it ends: some holders do not tell of their release', () => {
    const vote = (remainingMs: number, checkAgainMs: number): Vote => ({
      ...(refused('A', remainingMs) as Vote & { status: 'held' }),
      checkAgainMs,
    });
    expect(
      acquireOutcome(
        [vote(30_000, 1_000), vote(20_000, 20_000), vote(25_000, 3_000)],
        0,
        nodes('a', 'b', 'c'),
      ),
    ).toEqual({
      status: 'held',
      key: 'key',
      remainingMs: 25_000,
      checkAgainMs: 3_000,
      holder: 'A',
    });
  });

  it('says that it is held for good where locks without TTL leave nobody a majority, whosever they are', () => {
    const [x, y] = [refused('X', Infinity, 'a'), refused('Y', Infinity, 'b')];
    const names = nodes('a', 'b', 'c');
    const told = (vote: Vote): Vote => ({ ...vote, checkAgainMs: 1_000 }) as Vote;
    for (const third of [granted(), refused('Z', 10), failure()]) {
      expect(acquireOutcome([told(x), told(y), third], 0, names)).toEqual({
        status: 'held',
        key: 'a',
        remainingMs: Infinity,
        checkAgainMs: 1_000,
      });
    }
    // One of three keeps nobody from a majority.
    expect(acquireOutcome([x, refused('Y', 10), granted()], 0, names)).toMatchObject({
      contended: true,
    });
  });

  it('callers that split the votes try again soon', () => {
    expect(
      acquireOutcome(
        [granted(), refused('A', 30_000), refused('B', 30_000)],
        0,
        nodes('a', 'b', 'c'),
      ),
    ).toEqual({
      status: 'held',
      key: 'key',
      remainingMs: 100,
      checkAgainMs: 100,
      contended: true,
    });
  });

  it('does not call it held where a majority did not answer, and names no holder where a minority refused', () => {
    const names = nodes('a', 'b', 'c');
    expect(acquireOutcome([refused('A'), failure(), failure()], 0, names)).toMatchObject({
      status: 'unavailable',
    });
    expect(acquireOutcome([refused('A'), granted(), failure()], 0, names)).toMatchObject({
      status: 'held',
      contended: true,
    });
    expect(acquireOutcome([granted(), granted(), failure(), failure()], 0, names)).toMatchObject({
      status: 'unavailable',
    });
  });
});

describe('extendOutcome', () => {
  it('is extended with a majority, and with nothing less', () => {
    fc.assert(
      fc.property(situation(renewalArb), ({ answers, awaited }) => {
        const outcome = extendOutcome(answers, awaited, nodesOf(answers));
        expect(outcome?.status === 'extended').toBe(
          count(answers, 'extended') >= quorumOf(answers.length),
        );
      }),
    );
  });

  it('is lost when no majority can have it any more, and not before: who does not answer says nothing', () => {
    fc.assert(
      fc.property(situation(renewalArb), ({ answers, awaited }) => {
        const outcome = extendOutcome(answers, awaited, nodesOf(answers));
        const against = count(answers, 'lost');
        expect(outcome?.status === 'lost').toBe(
          answers.length - against < quorumOf(answers.length),
        );
        if (outcome?.status !== 'lost') return;
        const isStolen = answers.some(
          (vote) => vote?.status === 'lost' && vote.reason === 'stolen',
        );
        expect(outcome.reason).toBe(isStolen ? 'stolen' : 'released-elsewhere');
      }),
    );
  });

  it('says something as soon as nobody is waited for', () => {
    fc.assert(
      fc.property(situation(renewalArb), ({ answers }) => {
        expect(extendOutcome(answers, 0, nodesOf(answers))).toBeDefined();
      }),
    );
  });

  it('contradicts itself never while all are waited for: extended, lost and unavailable stay so', () => {
    fc.assert(
      fc.property(course(renewalArb), (votes) => {
        const outcomes = said(votes, 'for all', extendOutcome);
        const first = outcomes.find((outcome) => outcome !== undefined);
        const since = outcomes.slice(outcomes.indexOf(first));
        expect(new Set(since.map((outcome) => outcome?.status)).size).toBe(1);
      }),
    );
  });

  it('never takes back what it said of a lease that stands or is lost, whoever is not waited for', () => {
    fc.assert(
      fc.property(course(renewalArb), (votes) => {
        const statuses = said(votes, 'for some', extendOutcome).map((outcome) => outcome?.status);
        for (const status of ['extended', 'lost'] satisfies ExtendOutcome['status'][]) {
          const first = statuses.indexOf(status);
          if (first >= 0) expect(new Set(statuses.slice(first))).toEqual(new Set([status]));
        }
      }),
    );
  });

  it('does not wait for what cannot change it', () => {
    const extended: RenewalVote = { status: 'extended' };
    const names = nodes('a', 'b', 'c', 'd', 'e');
    expect(
      extendOutcome([failure(), failure(), failure(), extended, undefined], 1, names),
    ).toMatchObject({ status: 'unavailable' });
    expect(extendOutcome([failure(), GONE, GONE, extended, undefined], 1, names)).toBeUndefined();
    expect(
      extendOutcome([failure(), failure(), extended, extended, undefined], 1, names),
    ).toBeUndefined();
  });
});

describe('releaseOutcome', () => {
  it('is released with a majority, not held when no majority can have had it, and neither otherwise', () => {
    fc.assert(
      fc.property(situation(releaseArb), ({ answers, awaited }) => {
        const outcome = releaseOutcome(answers, awaited, nodesOf(answers));
        const quorum = quorumOf(answers.length);
        expect(outcome?.status === 'released').toBe(count(answers, 'released') >= quorum);
        expect(outcome?.status === 'not-held').toBe(
          answers.length - count(answers, 'not-held') < quorum,
        );
        if (awaited === 0) expect(outcome).toBeDefined();
      }),
    );
  });

  it('contradicts itself never while all are waited for; what is said of it without some of them stays so, too', () => {
    fc.assert(
      fc.property(course(releaseArb), fc.constantFrom('for all', 'for some'), (answers, waits) => {
        const statuses = said(answers, waits, releaseOutcome).map((outcome) => outcome?.status);
        const final = waits === 'for all' ? ['unavailable'] : [];
        for (const status of ['released', 'not-held', ...final]) {
          const first = (statuses as (string | undefined)[]).indexOf(status);
          if (first >= 0) expect(new Set(statuses.slice(first))).toEqual(new Set([status]));
        }
      }),
    );
  });
});

describe('mergedKey', () => {
  /** What a node knows of the key: nothing where the text is empty, else who holds it there. */
  const sight = (holder: string, remainingMs = 10): FoundKey => ({
    key: 'key',
    holders: holder === '' ? [] : [{ token: holder, remainingMs }],
    line: [],
  });
  const free = sight('');
  const merged = (sights: readonly FoundKey[], nodes = sights.length) =>
    mergedKey('key', sights, nodes);
  const held = (sights: readonly FoundKey[], nodes?: number) =>
    merged(sights, nodes).holders.map(({ token, remainingMs }) => [token, remainingMs]);

  /** What a majority at least has answered, and the number of nodes. */
  const sightsArb = fc
    .array(
      fc
        .tuple(fc.constantFrom('', 'A', 'B', 'C'), fc.nat(30_000))
        .map(([holder, ms]) => sight(holder, ms)),
      { minLength: 1, maxLength: 7 },
    )
    .chain((sights) =>
      fc.record({
        sights: fc.constant(sights),
        nodes: fc.integer({ min: sights.length, max: 2 * sights.length - 1 }),
      }),
    );

  it('names as holders those that have a majority, and those that may have one with the nodes that have not answered', () => {
    fc.assert(
      fc.property(sightsArb, ({ sights, nodes }) => {
        const { holders, strays = [] } = merged(sights, nodes);
        const tokens = sights.flatMap((each) => each.holders.map(({ token }) => token));
        const mayHold = (token: string): boolean =>
          tokens.filter((each) => each === token).length + nodes - sights.length >= quorumOf(nodes);
        for (const { token } of holders) expect(mayHold(token)).toBe(true);
        for (const { token } of strays) expect(mayHold(token)).toBe(false);
        const named = [...holders, ...strays].map(({ token }) => token);
        expect(named.sort()).toEqual([...new Set(tokens)].sort());
      }),
    );
  });

  it.each<[string, readonly FoundKey[], number, number]>([
    ['one node', [sight('A', 7)], 1, 7],
    ['all nodes', [sight('A', 10), sight('A', 30), sight('A', 20)], 3, 20],
    ['a majority, and one that lost it', [sight('A', 10), free, sight('A', 30)], 3, 10],
    ['a majority that may be, with one that is not there', [sight('A', 10), free], 3, 10],
    ['a majority of five', [10, 50, 20, 40, 30].map((ms) => sight('A', ms)), 5, 30],
    [
      'a majority, and a vote of somebody else',
      [sight('B', 90), sight('A', 10), sight('A', 20)],
      3,
      10,
    ],
  ])('says that a lease is over when no majority is left: %s', (_what, sights, nodes, ms) => {
    expect(held(sights, nodes)).toEqual([['A', ms]]);
  });

  it('names those as holders whose locks without TTL leave nobody a majority, whosever they are', () => {
    const [x, y] = [sight('X', Infinity), sight('Y', Infinity)];
    const forGood = [
      ['X', Infinity],
      ['Y', Infinity],
    ];
    for (const third of [free, sight('Z', 10)]) expect(held([x, y, third])).toEqual(forGood);
    expect(held([x, y], 3)).toEqual(forGood);
    expect(held([x, sight('Y', 10), free])).toEqual([]);
    // Of five, two of them and one that does not answer may be three.
    expect(held([x, y, free, free], 5)).toEqual(forGood);
    expect(held([x, y, free, free, free])).toEqual([]);
  });

  it('names nobody when nobody has a majority', () => {
    const { holders, strays } = merged([sight('A'), sight('B'), sight('C')]);
    expect([holders, strays?.length]).toEqual([[], 3]);
    expect(held([sight('A'), free, free])).toEqual([]);
  });

  it('has the largest fencing token, and each place in line once', () => {
    const place = (token: string) => ({ token, channel: `of ${token}` });
    const sights = [
      { ...free, fencingToken: 7, line: [place('b'), place('a')] },
      { ...free, line: [place('a'), place('c')] },
    ];
    const { fencingToken, line } = merged(sights);
    expect(fencingToken).toBe(7);
    expect(line.map(({ token }) => token)).toEqual(['b', 'a', 'c']);
    expect(merged([free, free]).fencingToken).toBeUndefined();
  });
});

describe('unavailable', () => {
  it('names every node that failed, is silent or refused, by its own name, in their order; of the others nothing is known', () => {
    const outcome = unavailable(
      [
        undefined,
        undefined,
        refused('A'),
        granted(),
        { ...failure(), nodes: [{ node: 'x:1', kind: 'connection', message: 'ECONNREFUSED' }] },
      ],
      [...nodes('a:1'), { name: 'silent:1', isSilent: true }, ...nodes('b:1', 'c:1', 'x:1')],
    );
    expect(outcome).toEqual({
      status: 'unavailable',
      transient: true,
      nodes: [
        { node: 'silent:1', kind: 'timeout', message: 'has not answered earlier requests yet' },
        { node: 'b:1', kind: 'refused', message: 'held by another owner' },
        { node: 'x:1', kind: 'connection', message: 'ECONNREFUSED' },
      ],
    });
  });

  it('passes by itself unless a majority can never be, and has left nothing only where nothing was sent', () => {
    fc.assert(
      fc.property(situation(voteArb), ({ answers }) => {
        const outcome = unavailable(answers, nodesOf(answers));
        const failures = answers.flatMap((each) => (each?.status === 'unavailable' ? [each] : []));
        const forGood = failures.filter(({ transient }) => !transient).length;
        expect(outcome.transient).toBe(answers.length - forGood >= quorumOf(answers.length));
        expect(outcome.sent === false).toBe(
          failures.length === answers.length && failures.every(({ sent }) => sent === false),
        );
        expect(outcome.nodes).toHaveLength(count(answers, 'unavailable', 'held'));
      }),
    );
  });
});
