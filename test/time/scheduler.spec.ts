import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { Scheduler } from '../../lib/time/scheduler.js';
import { systemRuntime } from '../../lib/time/runtime.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

/** Counts how often a timer is set. */
class CountingRuntime extends VirtualRuntime {
  timersSet = 0;

  override setTimer(callback: () => void, delayMs: number): () => void {
    this.timersSet += 1;
    return super.setTimer(callback, delayMs);
  }
}

function setUp() {
  const clock = new CountingRuntime();
  const scheduler = new Scheduler(clock);
  const calls: string[] = [];
  const schedule = (name: string, delayMs: number) =>
    scheduler.schedule(delayMs, () => calls.push(`${name}@${clock.now().monotonicMs}`));
  return { clock, scheduler, calls, schedule };
}

describe('Scheduler', () => {
  it('calls back in order, each at its time or up to 5 ms before', async () => {
    const { clock, calls, schedule } = setUp();
    schedule('late', 1_003);
    schedule('early', 20);
    schedule('middle', 499);
    await clock.advance(2_000);
    expect(calls).toEqual(['early@20', 'middle@495', 'late@1000']);
  });

  it('sets one timer for any number of entries, and none when they are done', async () => {
    const { clock, schedule } = setUp();
    for (let i = 0; i < 1_000; i += 1) schedule(String(i), i);
    expect(clock.timers).toBe(1);
    await clock.advance(1_000);
    expect(clock.timers).toBe(0);
  });

  it('sets the timer anew only for an entry that is due earlier', () => {
    const { clock, schedule } = setUp();
    for (const [name, delayMs] of Object.entries({ first: 100, same: 100, later: 500 }))
      schedule(name, delayMs);
    expect(clock.timersSet).toBe(1);
    schedule('earlier', 50);
    expect(clock.timersSet).toBe(2);
  });

  it('waits for the nearest of the entries that are left, in whatever order they were made', async () => {
    const { clock, calls, schedule } = setUp();
    schedule('first', 10);
    schedule('second', 100);
    schedule('third', 1_000);
    await clock.advance(10);
    schedule('before the second', 50);
    await clock.advance(1_000);
    expect(calls).toEqual(['first@10', 'before the second@60', 'second@100', 'third@1000']);
  });

  it('sets no timer for entries that were all cancelled', () => {
    const { clock, schedule } = setUp();
    const entries = [schedule('a', 10), schedule('b', 10), schedule('c', 5_000)];
    for (const entry of entries) entry.cancel();
    expect(clock.timers).toBe(0);
  });

  it('goes on to later entries after the first one was cancelled', async () => {
    const { clock, calls, schedule } = setUp();
    const first = schedule('first', 10);
    schedule('second', 500);
    first.cancel();
    await clock.advance(500);
    expect(calls).toEqual(['second@500']);
  });

  it('still calls back an entry when another of the same time was cancelled', async () => {
    const { clock, calls, schedule } = setUp();
    const cancelled = schedule('cancelled', 10);
    schedule('other', 10);
    cancelled.cancel();
    await clock.advance(100);
    expect(calls).toEqual(['other@10']);
  });

  it('does not call back what an entry of the same time cancels', async () => {
    const { clock, scheduler, calls, schedule } = setUp();
    scheduler.schedule(10, () => {
      victim.cancel();
    });
    const victim = schedule('victim', 10);
    await clock.advance(100);
    expect(calls).toEqual([]);
  });

  it('is not confused when an entry that came up is cancelled, and its time is in use again', async () => {
    const { clock, scheduler, calls, schedule } = setUp();
    const first = scheduler.schedule(0, () => {
      schedule('next', 0);
      first.cancel();
    });
    await clock.advance(10);
    expect(calls).toHaveLength(1);
    expect(clock.timers).toBe(0);
  });

  it('overdue timers fire after the event loop was blocked', async () => {
    const { clock, calls, schedule } = setUp();
    schedule('a', 100);
    schedule('b', 200);
    clock.block(10_000);
    await clock.advance(0);
    expect(calls).toEqual(['a@10000', 'b@10000']);
  });

  it('in the background still calls back: a call may wait for that', async () => {
    const { clock, scheduler, calls, schedule } = setUp();
    schedule('a', 100);
    scheduler.toBackground();
    schedule('b', 200);
    await clock.advance(1_000);
    expect(calls).toEqual(['a@100', 'b@200']);
    expect(clock.timers).toBe(0);
  });

  it('calls back outside the async context of the call that set the timer', async () => {
    const storage = new AsyncLocalStorage<string>();
    const scheduler = new Scheduler(systemRuntime);
    const seen = await new Promise((resolve) => {
      storage.run('some caller', () =>
        scheduler.schedule(1, () => {
          resolve(storage.getStore());
        }),
      );
    });
    expect(seen).toBeUndefined();
  });

  describe('where it can be decided later whether a timer keeps the process running', () => {
    const setUpTimers = () => {
      const clock = new CountingRuntime();
      const kept: boolean[] = [];
      const where: ('background' | undefined)[] = [];
      const setTimer = (callback: () => void, delayMs: number, place?: 'background') => {
        where.push(place);
        return Object.assign(clock.setTimer(callback, delayMs), {
          keepRunning: (isNeeded: boolean) => void kept.push(isNeeded),
        });
      };
      const scheduler = new Scheduler(
        Object.assign(Object.create(clock) as typeof clock, { setTimer, now: () => clock.now() }),
      );
      return { clock, kept, where, scheduler };
    };

    it('leaves its timer when nothing is left, and does not need it', () => {
      const { clock, kept, scheduler } = setUpTimers();
      scheduler.schedule(100, () => undefined).cancel();
      expect([clock.timers, kept]).toEqual([1, [false]]);
    });

    it('needs it again for what comes later than it', () => {
      const { clock, kept, scheduler } = setUpTimers();
      scheduler.schedule(100, () => undefined).cancel();
      scheduler.schedule(150, () => undefined);
      expect([clock.timersSet, kept]).toEqual([1, [false, true]]);
    });

    it('never needs it in the background', async () => {
      const { clock, kept, where, scheduler } = setUpTimers();
      const calls: number[] = [];
      scheduler.schedule(100, () => undefined);
      scheduler.toBackground();
      scheduler.schedule(150, () => calls.push(clock.now().monotonicMs));
      await clock.advance(150);
      expect(calls).toEqual([150]);
      expect(where).toEqual([undefined, 'background', 'background']);
      expect([clock.timers, kept]).toEqual([0, []]);
    });

    it('leaves none in the background when nothing is left', () => {
      const { clock, scheduler } = setUpTimers();
      scheduler.schedule(100, () => undefined).cancel();
      scheduler.toBackground();
      expect(clock.timers).toBe(0);
      scheduler.schedule(100, () => undefined).cancel();
      expect(clock.timers).toBe(0);
    });

    it('sets another one for what comes earlier', () => {
      const { clock, scheduler } = setUpTimers();
      scheduler.schedule(100, () => undefined).cancel();
      scheduler.schedule(50, () => undefined);
      expect([clock.timersSet, clock.timers]).toEqual([2, 1]);
    });

    it('calls back what was added while it did not need the timer', async () => {
      const { clock, scheduler } = setUpTimers();
      const calls: number[] = [];
      scheduler.schedule(100, () => undefined).cancel();
      scheduler.schedule(150, () => calls.push(clock.now().monotonicMs));
      await clock.advance(1_000);
      expect(calls).toEqual([150]);
      expect(clock.timers).toBe(0);
    });
  });
});
