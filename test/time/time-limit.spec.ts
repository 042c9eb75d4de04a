import { describe, expect, it } from '@jest/globals';
import { Scheduler } from '../../lib/time/scheduler.js';
import type { CancelTimer, Instant } from '../../lib/time/clock.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { TimeLimit } from '../../lib/time/time-limit.js';
import { expectNoOpenHandles } from '../support/no-leaks.js';

const NOBODY_WAKES = new Int32Array(new SharedArrayBuffer(4));
const block = (ms: number): unknown => Atomics.wait(NOBODY_WAKES, 0, 0, ms);

const over = (limit: TimeLimit): Promise<void> =>
  new Promise((resolve) => {
    limit.onOver = resolve;
  });

describe('a time limit', () => {
  it.each([0, 3, 20, 150])('of %d ms is over at its end, not before', async (limitMs) => {
    const since = performance.now();
    const limit = new TimeLimit(new Scheduler(systemRuntime), limitMs);
    expect(limit.isOver).toBe(false);
    await over(limit);
    expect(limit.isOver).toBe(true);
    expect(performance.now() - since).toBeGreaterThanOrEqual(limitMs - 1);
  });

  it('loses one part of four to a block of the event loop, however long that is', async () => {
    const since = performance.now();
    const limit = new TimeLimit(new Scheduler(systemRuntime), 200);
    block(300);
    await over(limit);
    expect(performance.now() - since).toBeGreaterThanOrEqual(300 + 150 - 1);
  });

  it('that is cancelled is never over: also when only the last input was missing', async () => {
    let [nowMs, comeUp] = [0, (): void => undefined];
    const now = (): Instant => ({ monotonicMs: nowMs, wallMs: nowMs });
    const setTimer = (callback: () => void): CancelTimer => {
      comeUp = callback;
      return () => undefined;
    };
    const limit = new TimeLimit(new Scheduler({ ...systemRuntime, now, setTimer }), 0);
    limit.onOver = () => {
      throw new Error('It was cancelled.');
    };
    nowMs = 10;
    comeUp();
    limit.cancel();
    await new Promise(setImmediate);
    expect(limit.isOver).toBe(false);
  });

  it('that is cancelled leaves no timer', async () => {
    await expectNoOpenHandles(async () => {
      new TimeLimit(new Scheduler(systemRuntime), 60_000).cancel();
    });
  });
});
