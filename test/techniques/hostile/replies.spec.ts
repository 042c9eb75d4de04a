import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { acquireScript } from '../../../lib/store/redis/scripts/acquire.js';
import { extendScript } from '../../../lib/store/redis/scripts/extend.js';
import { onceScript } from '../../../lib/store/redis/scripts/once.js';
import { quarantineScript } from '../../../lib/store/redis/scripts/quarantine.js';
import { raiseFenceScript } from '../../../lib/store/redis/scripts/raise-fence.js';
import { releaseScript } from '../../../lib/store/redis/scripts/release.js';
import { valueOfJson } from '../../../lib/once/texts.js';
import { cases } from '../../support/cases.js';
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

const replyTo = (name: string) =>
  fc.oneof(hostileReply, fc.constantFrom(...(replies[name] ?? [0])).chain(mutated));

/** Whatever is asked for in the terms of a reply has to be a number that can be counted with. */
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

const numRuns = cases(200, 2_000);

describe('what no script would answer', () => {
  it('is no grant and no refusal that could not be one', () => {
    fc.assert(
      fc.property(replyTo('acquire'), (reply) => {
        const answer = acquireScript.decode(reply);
        if (answer.status === 'malformed') return;
        expect(isCount(answer.clockUs)).toBe(true);
        if (answer.status === 'quarantined') expect(isCount(answer.leftUs)).toBe(true);
        else if (answer.status === 'granted') expect(isCount(answer.fencingToken)).toBe(true);
        else {
          expect(isCount(answer.position)).toBe(true);
          expect(answer.remainingMs).toBeGreaterThanOrEqual(0);
          expect(answer.ticket === undefined || Number.isFinite(answer.ticket)).toBe(true);
        }
      }),
      { numRuns },
    );
  });

  it('renews nothing', () => {
    fc.assert(
      fc.property(replyTo('extend'), (reply) => {
        const answer = extendScript.decode(reply);
        if (answer.status === 'malformed') return;
        expect(isCount(answer.clockUs)).toBe(true);
        for (const key of answer.keys)
          if (key.status === 'gone') expect(isCount(key.fence)).toBe(true);
      }),
      { numRuns },
    );
  });

  it('gives back no number of keys that is none', () => {
    fc.assert(
      fc.property(fc.oneof(hostileReply, hostileNumber), (reply) => {
        const [released, raised, quarantine] = [
          releaseScript.decode(reply),
          raiseFenceScript.decode(reply),
          quarantineScript.decode(reply),
        ];
        if (released.status === 'answered') expect(isCount(released.released)).toBe(true);
        if (raised.status === 'answered') expect(isCount(raised.raised)).toBe(true);
        if (quarantine.status === 'answered') expect(isCount(quarantine.leftMs)).toBe(true);
      }),
      { numRuns },
    );
  });

  it('begins no attempt without a number', () => {
    fc.assert(
      fc.property(replyTo('once'), (reply) => {
        const answer = onceScript.decode(reply);
        switch (answer.status) {
          case 'begun':
            expect(isCount(answer.attempt)).toBe(true);
            break;
          case 'lost':
          case 'done':
          case 'exhausted':
            expect(isCount(answer.attempts)).toBe(true);
        }
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
