import { describe, expect, it } from '@jest/globals';
import { LockNotAcquiredError } from '../../lib/errors.js';
import { SectionTimes } from '../../lib/lease/section-times.js';

const MINUTE = 60_000;

function timesAt(): { times: SectionTimes; pass: (ms: number) => void } {
  let nowMs = 0;
  return { times: new SectionTimes(() => nowMs), pass: (ms) => void (nowMs += ms) };
}

describe('the times of sections', () => {
  it('has no estimate without a section of the template, or without a template', () => {
    const { times } = timesAt();
    times.add('order:<id>', 200);
    times.add(undefined, 200);
    expect(times.estimateMs('stock:<id>')).toBeUndefined();
    expect(times.estimateMs(undefined)).toBeUndefined();
  });

  it('estimates the only section, however long ago it ended', () => {
    const { times, pass } = timesAt();
    times.add('a', 200);
    pass(100_000 * MINUTE);
    expect(times.estimateMs('a')).toBe(200);
  });

  it('estimates the 95th percentile', () => {
    const { times } = timesAt();
    for (let tookMs = 1; tookMs <= 40; tookMs += 1) times.add('a', (tookMs * 7) % 41);
    expect(times.estimateMs('a')).toBe(38);
  });

  it('forgets a long section by and by', () => {
    const { times, pass } = timesAt();
    times.add('a', 10_000);
    for (let count = 0; count < 10; count += 1) times.add('a', 200);
    expect(times.estimateMs('a')).toBe(10_000);
    pass(MINUTE);
    for (let count = 0; count < 5; count += 1) times.add('a', 200);
    expect(times.estimateMs('a')).toBe(200);
  });

  it.each([
    [9, 10_000],
    [10, 200],
  ])(
    'counts a section half as much as one a minute later: after %d of those the estimate is %d',
    (others, expected) => {
      const { times, pass } = timesAt();
      times.add('a', 10_000);
      pass(MINUTE);
      for (let count = 0; count < others; count += 1) times.add('a', 200);
      expect(times.estimateMs('a')).toBe(expected);
    },
  );

  it('does not count a section of weeks ago beside a new one', () => {
    const { times, pass } = timesAt();
    times.add('a', 10_000);
    pass(100_000 * MINUTE);
    times.add('a', 200);
    expect(times.estimateMs('a')).toBe(200);
  });

  it('keeps the last 64 sections', () => {
    const { times } = timesAt();
    for (let count = 0; count < 64; count += 1) times.add('a', 10_000);
    for (let count = 0; count < 60; count += 1) times.add('a', 200);
    expect(times.estimateMs('a')).toBe(10_000);
    times.add('a', 200);
    expect(times.estimateMs('a')).toBe(200);
  });

  it('keeps 1,000 templates', () => {
    const { times } = timesAt();
    for (let count = 0; count <= 1_000; count += 1) times.add(`t${String(count)}`, count);
    expect(times.estimateMs('t0')).toBeUndefined();
    expect(times.estimateMs('t1')).toBe(1);
    expect(times.estimateMs('t1000')).toBe(1_000);
  });

  it('is at most what is left of the lease, and leaves locks without a TTL alone', () => {
    const { times } = timesAt();
    times.add('a', 200);
    const hintOf = (retryAfterMs: number): number | undefined => {
      const error = new LockNotAcquiredError({ keys: ['a'], retryAfterMs, waitedMs: 0 });
      times.hint(error, 'a');
      expect(error.retryAfterMs).toBe(retryAfterMs);
      return error.retryHintMs;
    };
    expect(hintOf(30_000)).toBe(200);
    expect(hintOf(50)).toBe(50);
    expect(hintOf(Infinity)).toBe(1_000);
  });
});
