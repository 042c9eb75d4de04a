import { describe, expect, it } from '@jest/globals';
import type { BeginVote } from '../../lib/store/redis/node/node-once.js';
import { beginDecision } from '../../lib/store/redis/quorum/once-votes.js';

const NODES = ['a', 'b', 'c'].map((name) => ({ name, isSilent: false }));

const begun = (attempt: number, lastError?: string): BeginVote => ({
  ...{ status: 'begun', sure: 1, attempt },
  ...(lastError !== undefined && { lastError }),
});

describe('three servers that all let an attempt begin', () => {
  it('name the last error of the one that knows of the most attempts', () => {
    const votes = [begun(2, 'older'), begun(3, 'latest'), begun(2, 'older')];
    expect(beginDecision(votes, 0, NODES)).toStrictEqual({
      status: 'begun',
      attempt: 3,
      lastError: 'latest',
    });
  });

  it('name none when that one knows of none', () => {
    const votes = [begun(1, 'of another time'), begun(2), begun(1)];
    expect(beginDecision(votes, 0, NODES)).toStrictEqual({ status: 'begun', attempt: 2 });
  });
});
