import { describe, expect, it } from '@jest/globals';
import { holdersIn, instanceIn, onceIn } from '../../lib/store/redis/node/admin-replies.js';

const KNOWN = {
  ...{ id: 'one', application: 'shop', host: 'h', pid: 7, startedAtMs: 1_000 },
  holds: [{ leaseId: 'lease' }],
};

const found = (more: object): ReturnType<typeof instanceIn> =>
  instanceIn('one', JSON.stringify({ ...KNOWN, lifeMs: 30_000, ...more }), 10_000);

describe('the record of an instance', () => {
  it.each([
    ['says no more than it has to', {}],
    ['says where it is called', { address: '["plain holdfast:one"]' }],
    ['says which version it is', { version: '1.2.3', service: 'orders' }],
  ])('counts where it %s', (_, more) => {
    expect(found(more)).toMatchObject({ ...KNOWN, ...more, seenMsAgo: 20_000 });
  });

  it.each([
    ['address', { address: 'no list' }],
    ['address', { address: '[1]' }],
    ['version', { version: 5 }],
    ['service', { service: null }],
  ])('is left out where its %s is of another kind: %j', (_, more) => {
    expect(found(more)).toBeUndefined();
  });

  it.each([[[null]], [['text']], [[{ leaseId: 5 }]], [[{ leaseId: 'lease' }, null]], ['none']])(
    'does without leases that are of another kind: %j',
    (holds) => {
      expect(found({ holds })).toMatchObject({ id: 'one', holds: undefined });
    },
  );
});

describe('the record of work that is to be done once', () => {
  it.each([
    ['running', { state: 'running', attempts: 2, text: 'why', remainingMs: 100 }],
    ['unheard of', undefined],
    [5, undefined],
  ])('counts where its state is known, and is left out with any other: %j', (state, found) => {
    expect(onceIn([state, '2', 'why'], 100)).toEqual(found);
  });
});

describe('the holders of a key', () => {
  it('are listed once each, however many places they have', () => {
    const [one, other] = ['holdfast:one*2:limit:3', 'holdfast:other:limit:3'];
    const ends = [
      [`+1:${one}`, 4_000_000],
      [one, 4_000_000],
      [other, 5_000_000],
    ] as const;
    expect(holdersIn(ends, 2_000)).toEqual([
      { token: one, remainingMs: 1_000 },
      { token: other, remainingMs: 2_000 },
    ]);
  });
});
