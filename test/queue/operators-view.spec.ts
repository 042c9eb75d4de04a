import { describe, expect, it } from '@jest/globals';
import { Contention, hottest, longestWaitedFor, summed } from '../../lib/queue/contention.js';
import { LastHour, together } from '../../lib/queue/last-hour.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const MINUTE_MS = 60_000;

const at = (minute: number) => ({ monotonicMs: 0, wallMs: minute * MINUTE_MS });

describe('the last hour', () => {
  it('has the most of each minute, and the sum of its refusals', () => {
    const hour = new LastHour();
    hour.saw(3, 1, at(100));
    hour.saw(2, 5, at(100.9));
    hour.refused(at(100.5));
    hour.refused(at(100.6));
    hour.saw(4, 0, at(102));
    hour.saw(9, 9, at(5_000));
    // The clock is set back.
    hour.saw(1, 0, at(102));
    hour.refused(at(102));
    expect(hour.minutes).toEqual([
      { minute: 100, held: 3, waiting: 5, refusals: 2 },
      { minute: 102, held: 4, waiting: 0, refusals: 1 },
    ]);
    for (let minute = 103; minute < 200; minute += 1) hour.saw(1, 1, at(minute));
    expect(hour.minutes).toHaveLength(60);
    expect(hour.minutes[0]!.minute).toBe(140);
  });

  it('is summed over processes, minute by minute, and leaves out what is older or to come', () => {
    const one = { minute: 100, held: 1, waiting: 2, refusals: 3 };
    const all = [one, { ...one, held: 10 }, { ...one, minute: 40 }, { ...one, minute: 101 }];
    const minutes = together([...all, { ...one, minute: 41 }], at(100));
    expect(minutes).toHaveLength(60);
    expect(minutes[0]).toEqual({ ...one, minute: 41 });
    expect(minutes[1]).toEqual({ minute: 42, held: 0, waiting: 0, refusals: 0 });
    expect(minutes.at(-1)).toEqual({ minute: 100, held: 11, waiting: 4, refusals: 6 });
  });
});

describe('the keys that are waited for', () => {
  const waiting = (key: string, waitedMs: number) => ({ request: { keys: [key] }, waitedMs });

  it('count waits that last beside those that are over', () => {
    const clock = new VirtualRuntime();
    const contention = new Contention(clock);
    contention.waited(['a'], 500, clock.now());
    contention.refused(['b']);
    const all = contention.hottest(9, [waiting('a', 2_000), waiting('a', 1_000), waiting('c', 9)]);
    expect(all).toEqual([
      { key: 'a', waitedMs: 3_500, waits: 1, refusals: 0, waiting: 2, longestMs: 2_000 },
      { key: 'c', waitedMs: 9, waits: 0, refusals: 0, waiting: 1, longestMs: 9 },
      { key: 'b', waitedMs: 0, waits: 0, refusals: 1 },
    ]);
  });

  it('are counted for five minutes, however many waits end in each', async () => {
    const clock = new VirtualRuntime();
    const contention = new Contention(clock);
    for (let minute = 0; minute < 7; minute += 1) {
      for (let wait = 0; wait < 9; wait += 1) contention.waited(['a'], 10, clock.now());
      contention.refused(['a']);
      await clock.advance(MINUTE_MS);
    }
    // The seventh minute is over, and the eighth has begun.
    expect(contention.hottest(9, [])).toEqual([
      { key: 'a', waitedMs: 360, waits: 36, refusals: 4 },
    ]);
    await clock.advance(4 * MINUTE_MS);
    expect(contention.hottest(9, [])).toEqual([]);
  });

  it('name the longest wait that lasts, however much others were waited for', () => {
    const clock = new VirtualRuntime();
    const contention = new Contention(clock);
    for (let key = 0; key < 100; key += 1)
      contention.waited([`busy:${String(key)}`], 60_000, clock.now());
    const others = Array.from({ length: 100 }, (_, key) => waiting(`also:${String(key)}`, 5));
    const found = contention.hottest(50, [...others, waiting('stuck', 6)]);
    expect(found.map(({ key }) => key)).toContain('stuck');
    expect(longestWaitedFor(found, 1)).toMatchObject([{ key: 'stuck', longestMs: 6 }]);
    expect(longestWaitedFor(found, 200)).toHaveLength(50);
  });

  it('are summed over processes', () => {
    const one = { key: 'a', waitedMs: 10, waits: 1, refusals: 2, waiting: 1, longestMs: 4 };
    const other = { key: 'a', waitedMs: 20, waits: 0, refusals: 0, waiting: 2, longestMs: 9 };
    const silent = { key: 'a', waitedMs: 5, waits: 5, refusals: 5 };
    const all = summed([silent, one, other, { ...silent, key: 'b' }]);
    expect(hottest(all, 1)).toEqual([
      { key: 'a', waitedMs: 35, waits: 6, refusals: 7, waiting: 3, longestMs: 9 },
    ]);
    expect(longestWaitedFor(all, 9)).toHaveLength(1);
  });
});
