import { describe, expect, it } from '@jest/globals';
import { retryDelay } from '../../lib/store/redis/client/retry-delay.js';
import { systemRuntime } from '../../lib/time/runtime.js';

const delays = (chance: number): number[] =>
  [1, 2, 3, 4, 5, 100].map(retryDelay({ ...systemRuntime, random: () => chance }));

describe('the pause before the next try to connect', () => {
  it('doubles from 50 to 500 ms, for those who meet with the least chance', () => {
    expect(delays(0)).toEqual([50, 100, 200, 400, 500, 500]);
  });

  it('is half as long again for others: a thousand processes come back over a quarter of a second', () => {
    expect(delays(1)).toEqual([75, 150, 300, 600, 750, 750]);
  });
});
