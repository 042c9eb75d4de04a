import { describe, expect, it } from '@jest/globals';
import { instanceIn } from '../../lib/store/redis/node/admin-replies.js';

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

  it.each([[[null]], [['text']], [[{ leaseId: 5 }]], ['none']])(
    'does without leases that are of another kind: %j',
    (holds) => {
      expect(found({ holds })).toMatchObject({ id: 'one', holds: undefined });
    },
  );
});
