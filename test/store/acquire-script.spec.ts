import { describe, expect, it } from '@jest/globals';
import { acquireScript, type AcquireCall } from '../../lib/store/redis/scripts/acquire.js';
import { keyNames } from '../../lib/store/redis/scripts/key-names.js';
import type { LineMode } from '../../lib/store/redis/scripts/script.js';
import { asked } from '../support/encoded.js';

const CLOCK_US = 1_700_000_000_000_000;

/** For one key, by a caller who does not stand in line. */
const request = (options: Partial<AcquireCall> & { readonly lineMode?: LineMode } = {}) =>
  asked(acquireScript, {
    ...{ names: [keyNames('lock:')('key')], token: 'holdfast:me', ttlMs: 30_000 },
    ...{ member: '', ticket: undefined, proposal: 0, ...options },
  });

describe('a request for a lock', () => {
  it('has no empty arguments at its end', () => {
    const [keyCount, ...rest] = request().call;
    expect(rest.slice(keyCount)).toEqual(['holdfast:me', 30_000, 600_000]);
    expect(request({ member: 'place', joins: 7 }).call.slice(-6)).toEqual([
      ...['', 'place', '', '', ''],
      7,
    ]);
  });
});

describe('the fencing token of a grant', () => {
  it.each<[string, number, number, boolean]>([
    ['is a reading of the clock', 0, 0, true],
    ['is a proposal a little ahead of the clock', 20_000, 20_000, true],
    ['is a proposal further ahead than turns may begin', 20_001, 20_001, false],
    ['follows a fence that is ahead of the clock', 1, 0, false],
    ['is behind the clock: that of those who hold the key together', -5_000, 0, false],
    ['follows a fence, and not the proposal', 7_000, 5_000, false],
  ])('%s: %d µs, proposed %d, may be followed by turns: %j', (_what, first, proposed, is) => {
    const proposal = proposed === 0 ? 0 : CLOCK_US + proposed;
    const fencingToken = CLOCK_US + first;
    expect(request({ proposal }).answer([1, CLOCK_US, fencingToken, 0])).toMatchObject({
      ...{ status: 'granted', fencingToken, isFromClock: is },
    });
  });

  it.each([
    [0, false],
    [2, true],
  ])('comes with the number of those in line: %d', (inLine, othersWait) => {
    expect(request().answer([1, CLOCK_US, CLOCK_US, inLine])).toMatchObject({ othersWait });
  });
});

describe('the refusal of a lock', () => {
  const OURS = 'holdfast:other';
  const REMAINING_MS = 30_000;
  const TICKET = '5';
  const refused = (holder: string, ticket: string, ...rest: readonly number[]) => [
    ...[0, CLOCK_US, 1, REMAINING_MS, holder, ticket],
    ...rest,
  ];

  it.each<[string, string, string, string, number]>([
    ['the end of the lease by a caller who wants no place in line', '', OURS, '', REMAINING_MS],
    ['the end of the lease by a caller in line', 'place', OURS, TICKET, REMAINING_MS],
    ['a second by a caller who got no place in line', 'place', OURS, '', 1_000],
    ['a second by a caller whom other software refuses', '', 'theirs', '', 1_000],
  ])('is slept on until %s', (_what, member, holder, ticket, checkAgainMs) => {
    expect(request({ member }).answer(refused(holder, ticket))).toMatchObject({
      ...{ status: 'held', remainingMs: REMAINING_MS, checkAgainMs },
    });
  });

  it.each<[LineMode, number | undefined]>([
    ['standalone', 5],
    ['cluster', 5],
    ['quorum', undefined],
  ])(
    'has the ticket of the place in line where one server decides on it: %s',
    (lineMode, ticket) => {
      const { answer } = request({ member: 'place', lineMode });
      expect(answer(refused(OURS, TICKET))).toMatchObject({ status: 'held', ticket });
    },
  );

  it.each([
    [CLOCK_US - 2_500_000, 2_500],
    [CLOCK_US, 0],
    [CLOCK_US + 7_000, 0],
  ])('says for how long the key has been held: since %d', (fence, heldForMs) => {
    expect(request().answer(refused(OURS, '', fence))).toMatchObject({ heldForMs });
  });

  it.each<[AcquireCall['keeps'], number, boolean | undefined]>([
    [undefined, 0, undefined],
    [{ ttlMs: 100, limitMs: 50, before: 1 }, 0, false],
    [{ ttlMs: 100, limitMs: 50, before: 1 }, 1, true],
  ])('says whether earlier keys are held, if that was asked for: %j, %d', (keeps, held, kept) => {
    expect(request({ keeps }).answer(refused(OURS, '', CLOCK_US, held))).toMatchObject({ kept });
  });
});
