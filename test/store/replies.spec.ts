import { describe, expect, it } from '@jest/globals';
import type { Unavailable } from '../../lib/store/lock-store.js';
import { acquireScript } from '../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../lib/store/redis/scripts/extend.js';
import { guardedScript } from '../../lib/store/redis/scripts/guarded.js';
import { beginScript, endScript } from '../../lib/store/redis/scripts/once.js';
import { raiseFenceScript } from '../../lib/store/redis/scripts/raise-fence.js';
import { releaseScript } from '../../lib/store/redis/scripts/release.js';
import type { Verb } from '../../lib/store/redis/scripts/script.js';
import { setLimitScript } from '../../lib/store/redis/scripts/set-limit.js';
import { transferScript } from '../../lib/store/redis/scripts/transfer.js';

const CLOCK_US = 1_700_000_000_000_000;

type AnyVerb = Pick<Verb<never, object>, 'decode'>;

/** Of a request for one key. */
const decode = (verb: unknown, reply: unknown, shortfall?: Unavailable): unknown =>
  (verb as AnyVerb).decode(
    reply,
    { keys: ['key'], lastToken: 7, member: '' } as never,
    { lineMode: 'standalone' } as never,
    shortfall,
  );

const SHORTFALL: Unavailable = { status: 'unavailable', nodes: [], transient: true };

/** What a script answers when it has done what it is for, what that means, and what no version of it answers. */
const REPLIES: readonly [string, unknown, unknown, object, readonly unknown[]][] = [
  [
    'acquire',
    acquireScript,
    [1, CLOCK_US, 8, 0],
    { status: 'granted', fencingToken: 8 },
    [
      [1, -1, 8, 0],
      [1, CLOCK_US, '8', 0],
      [2, CLOCK_US, 1, 100, 'holder', ''],
      [0, CLOCK_US, 2, 100, 'holder', ''],
      [0, CLOCK_US, 1, 'soon', 'holder', ''],
      [0, CLOCK_US, 1, 100, 5, ''],
    ],
  ],
  [
    'extend',
    extendScript,
    [CLOCK_US, [1]],
    { clockUs: CLOCK_US, answers: [{ status: 'extended' }] },
    [
      [-1, [1]],
      [CLOCK_US],
      [CLOCK_US, [1], [1]],
      [CLOCK_US, 'x'],
      [CLOCK_US, [0, 'x']],
      [CLOCK_US, [0, -5]],
      [CLOCK_US, [2, 5]],
      [CLOCK_US, [2, 'text']],
      [CLOCK_US, [-2, 5]],
    ],
  ],
  [
    'guarded',
    guardedScript,
    [1, ['OK']],
    { status: 'written', replies: ['OK'] },
    [[1], [1, 'OK'], [2, -1, 'error'], [2, 'x', 'error'], [2, 0], [3, ['OK']], [3, 0, 'error']],
  ],
  [
    'begin of once-only work',
    beginScript,
    [1, 2],
    { status: 'begun', attempt: 2 },
    [[1], [1, -1], [0, 'x'], [4, 2]],
  ],
  ['end of once-only work', endScript, [1], { status: 'accepted' }, [[], [1, 1], [2], ['1']]],
  ['raise of a fence', raiseFenceScript, 1, { status: 'raised' }, [-1, '1']],
  ['release', releaseScript, 1, { status: 'released' }, [-1, '1']],
  ['limit', setLimitScript, 1, { status: 'set' }, [0, '1']],
  [
    'transfer',
    transferScript,
    [1],
    { status: 'transferred' },
    [[0], [0, 'x'], [-1, -5], [-2, 'x'], [2, 5], [-3, 5]],
  ],
];

describe.each(REPLIES)('the reply to %s', (what, verb, reply, done, malformed) => {
  it('is that it was done', () => {
    expect(decode(verb, reply)).toMatchObject(done);
  });

  it.each([null, undefined, 'OK', {}, ...malformed])('is none of ours: %j', (other) => {
    expect(decode(verb, other)).toBeUndefined();
  });

  if (what !== 'release')
    it('is another one if too few replicas have it', () => {
      const answer = decode(verb, reply, SHORTFALL) as { readonly answers?: readonly unknown[] };
      expect(answer.answers?.[0] ?? answer).toBe(SHORTFALL);
    });
});

it('a fence is not raised at a key that is not held', () => {
  expect(decode(raiseFenceScript, 0)).toEqual({ status: 'lost' });
});

it('an attempt at once-only work does not end that another one has replaced', () => {
  expect(decode(endScript, [0])).toEqual({ status: 'superseded' });
});

it.each([
  ['text', 'text'],
  ['', undefined],
  [null, undefined],
  [5, undefined],
])('once-only work that was done has the value of a text alone: %j', (detail, value) => {
  expect(decode(beginScript, [2, 1, detail])).toStrictEqual({ status: 'done', attempts: 1, value });
});
