import { describe, expect, it } from '@jest/globals';
import type { Lease } from '../../lib/lease/lease.js';
import { PastHolds } from '../../lib/lease/past-holds.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

function setUp() {
  const past = new PastHolds(new VirtualRuntime());
  const ended = (fencingToken: number, keys: readonly string[], heldMs = 1_000, isLost = false) => {
    const outcome = isLost ? 'lost' : 'released';
    past.add({ keys, fencingToken, request: {} } as unknown as Lease, {
      outcome,
      heldMs,
    });
  };
  const tokensOf = (key: string): readonly number[] =>
    past.of(key).map(({ fencingToken }) => fencingToken);
  return { ended, tokensOf };
}

describe('the locks that a process remembers', () => {
  it('are those of the key, the newest first', () => {
    const { ended, tokensOf } = setUp();
    ended(1, ['a']);
    ended(2, ['b', 'a']);
    ended(3, ['b']);
    expect(tokensOf('a')).toEqual([2, 1]);
    expect(tokensOf('b')).toEqual([3, 2]);
    expect(tokensOf('c')).toEqual([]);
  });

  it('were held for a second, or lost', () => {
    const { ended, tokensOf } = setUp();
    ended(1, ['a'], 999);
    ended(2, ['a'], 999, true);
    ended(3, ['a'], 1_000);
    expect(tokensOf('a')).toEqual([3, 2]);
  });

  it('are the last 500', () => {
    const { ended, tokensOf } = setUp();
    for (let token = 1; token <= 501; token += 1) ended(token, ['a']);
    expect(tokensOf('a')).toHaveLength(500);
    expect(tokensOf('a').at(-1)).toBe(2);
  });
});
