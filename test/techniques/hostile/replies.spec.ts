import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { acquireScript } from '../../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../../lib/store/redis/scripts/extend.js';
import { beginScript, endScript } from '../../../lib/store/redis/scripts/once.js';
import { keyNames } from '../../../lib/store/redis/scripts/key-names.js';
import { quarantineScript } from '../../../lib/store/redis/scripts/quarantine.js';
import { raiseFenceScript } from '../../../lib/store/redis/scripts/raise-fence.js';
import { releaseScript } from '../../../lib/store/redis/scripts/release.js';
import { valueOfJson } from '../../../lib/once/texts.js';
import { cases } from '../../support/cases.js';
import { asked } from '../../support/encoded.js';
import {
  holdersIn,
  listIn,
  onceIn,
  pairsIn,
  placeIn,
} from '../../../lib/store/redis/node/admin-replies.js';
import { hostileNumber, hostileReply, mutated } from './hostile-values.js';

const NOW_US = 1_800_000_000_000_000;
const HOLDER = 'holdfast:00000000-0000-4000-8000-000000000001';

/** What each script answers when all is well. */
const replies: Readonly<Record<string, readonly unknown[]>> = {
  acquire: [
    [1, NOW_US, NOW_US, 0],
    [1, NOW_US, NOW_US, 3, 1],
    [0, NOW_US, 1, 29_000, HOLDER, String(NOW_US)],
    [0, NOW_US, 2, -1, 'foreign', ''],
    [-1, NOW_US, 5_000_000],
  ],
  extend: [
    [NOW_US, [1]],
    [NOW_US, [0, '12'], [-1]],
    [NOW_US, [-2, 'ERR'], [1]],
  ],
  once: [[1], [0], [0, 1, '', 5], [1, 2, 'error', 5], [2, 1, '{"a":1}', 5, 1, 'owner', 60_000]],
};

/** What the scripts are asked for in these tests. */
const LEASE = { token: HOLDER, ttlMs: 30_000 };
const NAMES = ['a', 'b'].map(keyNames('lock:'));
const ACQUIRE = asked(acquireScript, {
  ...{ ...LEASE, names: NAMES, member: '', ticket: undefined, proposal: 0 },
});
const RENEWAL = { ...LEASE, fencingToken: 1, sureUntilUs: 0, expectedFence: undefined };
const EXTEND = asked(extendScript, { names: NAMES, renewals: [RENEWAL, RENEWAL] });
const ATTEMPT = { ...LEASE, names: NAMES, owner: 'owner', lifeMs: 1 };
const BEGIN = asked(beginScript, { ...ATTEMPT, attempts: 1, keepMs: 1 });
const END = asked(endScript, { ...ATTEMPT, what: 'done', attempt: 1 });

const replyTo = (name: string) =>
  fc.oneof(hostileReply, fc.constantFrom(...(replies[name] ?? [0])).chain(mutated));

/** Whatever is asked for in the terms of a reply has to be a number that can be counted with. */
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

const numRuns = cases(200, 2_000);

describe('what no script would answer', () => {
  it('is no grant and no refusal that could not be one', () => {
    fc.assert(
      fc.property(replyTo('acquire'), (reply) => {
        const answer = ACQUIRE.answer(reply);
        if (answer?.status === 'quarantined') expect(isCount(answer.leftMs)).toBe(true);
        else if (answer?.status === 'granted') expect(isCount(answer.fencingToken)).toBe(true);
        else if (answer?.status === 'held') {
          expect(['0', '1']).toContain(answer.key);
          expect(answer.remainingMs).toBeGreaterThanOrEqual(0);
          expect(answer.heldForMs).toBeGreaterThanOrEqual(0);
          expect(answer.ticket === undefined || Number.isFinite(answer.ticket)).toBe(true);
        } else expect(answer).toBeUndefined();
        if (answer !== undefined) expect(isCount(answer.clockUs)).toBe(true);
      }),
      { numRuns },
    );
  });

  it('renews nothing', () => {
    fc.assert(
      fc.property(replyTo('extend'), (reply) => {
        const answer = EXTEND.answer(reply);
        if (answer === undefined) return;
        expect(isCount(answer.clockUs)).toBe(true);
        expect(answer.answers).toHaveLength(NAMES.length);
        for (const key of answer.answers)
          if (key.status === 'lost' && key.reason !== 'stolen')
            expect(isCount(key.fence)).toBe(true);
      }),
      { numRuns },
    );
  });

  it('gives back no number of keys that is none', () => {
    const release = asked(releaseScript, { ...LEASE, names: NAMES, member: '' });
    const raiseFence = asked(raiseFenceScript, { ...LEASE, names: NAMES, fencingToken: 1 });
    const quarantine = asked(quarantineScript, { isNew: false });
    fc.assert(
      fc.property(fc.oneof(hostileReply, hostileNumber), (reply) => {
        for (const { answer } of [release, raiseFence, quarantine])
          if (!isCount(reply)) expect(answer(reply)).toBeUndefined();
      }),
      { numRuns },
    );
  });

  it('begins no attempt without a number', () => {
    fc.assert(
      fc.property(replyTo('once'), (reply) => {
        const answer = BEGIN.answer(reply);
        if (answer?.status === 'begun') expect(isCount(answer.attempt)).toBe(true);
        else if (answer !== undefined && answer.status !== 'unavailable')
          expect(isCount(answer.attempts)).toBe(true);
        if (END.answer(reply) !== undefined) expect([[0], [-0], [1]]).toContainEqual(reply);
      }),
      { numRuns },
    );
  });

  it('is nothing that an operator sees', () => {
    const lists = fc.oneof(hostileReply, mutated(['1 token', String(NOW_US), HOLDER, '5']));
    fc.assert(
      fc.property(lists, (reply) => {
        const members = pairsIn(reply);
        for (const { token, remainingMs } of holdersIn(members, 5_000)) {
          expect(typeof token).toBe('string');
          expect(remainingMs).toBeGreaterThan(0);
        }
        for (const [member, ticket] of members)
          for (const { token, channel } of placeIn(member, ticket))
            expect([typeof token, typeof channel]).toEqual(['string', 'string']);
        const once = onceIn(listIn(reply), 5);
        if (once !== undefined) expect(isCount(once.attempts)).toBe(true);
      }),
      { numRuns },
    );
  });

  it('is no value of work that is done, and no error', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json()), (text) => {
        valueOfJson(text);
      }),
      { numRuns },
    );
  });
});
