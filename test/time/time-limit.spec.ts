import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Scheduler, SLOT_MS } from '../../lib/time/scheduler.js';
import type { CancelTimer, Instant } from '../../lib/time/clock.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { TimeLimit } from '../../lib/time/time-limit.js';
import { expectNoOpenHandles } from '../support/no-leaks.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

/** Long after each limit of these tests. */
const LONG_MS = 10_000;

function setUp(limitMs: number, clock = new VirtualRuntime()) {
  const sinceMs = clock.now().monotonicMs;
  const limit = new TimeLimit(new Scheduler(clock), limitMs);
  const overAt: number[] = [];
  limit.onOver = () => overAt.push(clock.now().monotonicMs - sinceMs);
  return { clock, limit, overAt };
}

describe('a time limit', () => {
  it.each([
    [0, 5],
    [3, 5],
    [20, 20],
    [200, 205],
  ])('of %d ms is over once, at its end or up to a slot later: at %d ms', async (limitMs, at) => {
    const { clock, limit, overAt } = setUp(limitMs);
    await clock.advance(at - 1);
    expect(limit.isOver).toBe(false);
    await clock.advance(LONG_MS);
    expect(limit.isOver).toBe(true);
    expect(overAt).toEqual([at]);
    expect(clock.timers).toBe(0);
  });

  it('is over between its end and a slot later, whenever it began', async () => {
    const ms = fc.double({ min: 0, max: 500, noNaN: true });
    await fc.assert(
      fc.asyncProperty(ms, ms, async (startMs, limitMs) => {
        const clock = new VirtualRuntime();
        clock.block(startMs);
        const { overAt } = setUp(limitMs, clock);
        await clock.advance(LONG_MS);
        expect(overAt).toHaveLength(1);
        // Fractions of a millisecond do not add up exactly.
        expect(overAt[0]).toBeGreaterThanOrEqual(limitMs - 1e-6);
        expect(overAt[0]).toBeLessThanOrEqual(limitMs + SLOT_MS + 1e-6);
      }),
    );
  });

  it('loses one part of four to a block of the event loop, however long that is', async () => {
    const { clock, overAt } = setUp(200);
    clock.block(300);
    await clock.advance(LONG_MS);
    expect(overAt).toEqual([300 + 150 + SLOT_MS]);
  });

  it('has all of a part that was late by two slots: that was no block', async () => {
    const { clock, overAt } = setUp(200);
    clock.block(50 + 2 * SLOT_MS);
    await clock.advance(LONG_MS);
    expect(overAt).toEqual([200 + SLOT_MS]);
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

  it('can be cancelled in any part of it, and again', async () => {
    const { clock, limit, overAt } = setUp(200);
    await clock.advance(150);
    limit.cancel();
    limit.cancel();
    expect(clock.timers).toBe(0);
    await clock.advance(LONG_MS);
    expect(overAt).toEqual([]);
    expect(limit.isOver).toBe(false);
  });

  it('that is cancelled leaves no timer', async () => {
    await expectNoOpenHandles(async () => {
      new TimeLimit(new Scheduler(systemRuntime), 60_000).cancel();
    });
  });
});
