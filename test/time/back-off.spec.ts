import { describe, expect, it } from '@jest/globals';
import { backOffMs } from '../../lib/time/back-off.js';

describe('a back-off', () => {
  it('doubles with each failure, up to the longest wait', () => {
    const waits = Array.from({ length: 6 }, (_, failures) =>
      backOffMs({ firstMs: 50, longestMs: 700 }, failures),
    );
    expect(waits).toEqual([50, 100, 200, 400, 700, 700]);
  });

  it('stays at the longest wait, however often it failed', () => {
    expect(backOffMs({ firstMs: 50, longestMs: 700 }, 100_000)).toBe(700);
  });
});
