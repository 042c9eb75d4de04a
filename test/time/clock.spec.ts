import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { elapsedMs, systemClock } from '../../lib/time/clock.js';

const DAY_MS = 24 * 60 * 60 * 1_000;

describe('systemClock', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('TR-10 waits for more than 2^31 ms, which setTimeout alone does not', () => {
    const callback = jest.fn();
    systemClock.setTimer(callback, 60 * DAY_MS);
    jest.advanceTimersByTime(60 * DAY_MS - 1);
    expect(callback).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledTimes(1);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('TR-10 sets no delay that Node cannot keep', () => {
    const setTimeout = jest.spyOn(globalThis, 'setTimeout');
    const cancel = systemClock.setTimer(() => undefined, 10 ** 15);
    expect(setTimeout.mock.calls.map(([, delay]) => delay)).toEqual([2 ** 31 - 1]);
    cancel();
    expect(jest.getTimerCount()).toBe(0);
  });

  it('can be cancelled in any part of a long wait', () => {
    const callback = jest.fn();
    const cancel = systemClock.setTimer(callback, 60 * DAY_MS);
    jest.advanceTimersByTime(50 * DAY_MS);
    cancel();
    jest.advanceTimersByTime(50 * DAY_MS);
    expect(callback).not.toHaveBeenCalled();
    expect(jest.getTimerCount()).toBe(0);
  });
});

describe('a timer of systemClock', () => {
  it.each([
    ['keeps the process running', undefined, undefined, true],
    ['does not in the background', 'background', undefined, false],
    ['does not after it is not needed', undefined, false, false],
    ['does again when it is needed', 'background', true, true],
  ] as const)('%s', (_, where, isNeeded, keepsRunning) => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout');
    const before = timers().length;
    const cancel = systemClock.setTimer(() => undefined, DAY_MS, where);
    if (isNeeded !== undefined) cancel.keepRunning?.(isNeeded);
    expect(timers().length - before).toBe(keepsRunning ? 1 : 0);
    cancel();
  });
});

describe('elapsedMs', () => {
  const start = { monotonicMs: 1_000, wallMs: 50_000 };

  it('counts suspended time, in which the monotonic clock stands still', () => {
    expect(elapsedMs(start, { monotonicMs: 1_010, wallMs: 90_000 })).toBe(40_000);
  });

  it('is not misled by a wall clock that was set back', () => {
    expect(elapsedMs(start, { monotonicMs: 1_010, wallMs: 10_000 })).toBe(10);
  });
});
