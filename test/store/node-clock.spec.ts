import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { systemClock, type Clock } from '../../lib/time/clock.js';
import { NodeClock } from '../../lib/store/redis/node/node-clock.js';

/** Of the monotonic clock. */
let nowMs = 0;

const startAt = (ms: number): void => {
  nowMs = ms;
};

const CLOCK: Clock = { ...systemClock, now: () => ({ monotonicMs: nowMs, wallMs: 0 }) };

/** One exchange with a server whose clock is ahead of ours by `offsetUs`. */
function exchange(clock: NodeClock, offsetUs: number, thereMs: number, backMs: number): void {
  const sentAt = nowMs;
  const serverUs = (nowMs + thereMs) * 1_000 + offsetUs;
  nowMs += thereMs + backMs;
  clock.learn(serverUs, sentAt, nowMs);
}

/** Floats lose so much, in µs. */
const ROUNDING_US = 0.01;

const wayMs = fc.integer({ min: 0, max: 500 });
const ways = fc.array(fc.record({ there: wayMs, back: wayMs, pause: fc.nat(60_000) }), {
  minLength: 1,
  maxLength: 30,
});
const offset = fc.integer({ min: -1_000_000, max: 1_000_000 });
const BASE_US = 1_700_000_000_000_000;

describe('what is known of a server clock', () => {
  it('is nothing before the first answer, and nothing from an answer that is no time', () => {
    const clock = new NodeClock(CLOCK);
    for (const no of [NaN, 0, -1]) clock.learn(no, 1, 2);
    expect(clock.onArrivalUs()).toBeUndefined();
    expect(clock.atLeastUs()).toBeUndefined();
  });

  it('is never wrong about what it shows at the least, nor short of the longest way in what it shows on arrival', () => {
    startAt(0);
    fc.assert(
      fc.property(ways, offset, (exchanges, ahead) => {
        nowMs = 1_000;
        const clock = new NodeClock(CLOCK);
        const offsetUs = BASE_US + ahead;
        for (const { there, back, pause } of exchanges) {
          exchange(clock, offsetUs, there, back);
          nowMs += pause;
          const server = nowMs * 1_000 + offsetUs;
          expect(clock.atLeastUs()).toBeLessThanOrEqual(server + ROUNDING_US);
          // As late as what the last sample took at the least; further than 100 ms beyond what is sure, it was an accident.
          const way = Math.min(there, 100 - back) * 1_000;
          expect(clock.onArrivalUs()).toBeGreaterThanOrEqual(server + way - 1);
          expect(clock.onArrivalUs()).toBeLessThanOrEqual(server + 100_000 + ROUNDING_US);
        }
      }),
    );
  });

  it('believes a longer way at once, and a shorter one a little more each time', () => {
    startAt(10_000);
    const clock = new NodeClock(CLOCK);
    const onArrival = (): number => clock.onArrivalUs()! - (nowMs * 1_000 + BASE_US);
    exchange(clock, BASE_US, 8, 0);
    expect(onArrival()).toBeCloseTo(8_000, 0);
    exchange(clock, BASE_US, 0, 0);
    expect(onArrival()).toBeCloseTo(7_000, 0);
    exchange(clock, BASE_US, 0, 0);
    expect(onArrival()).toBeCloseTo(6_125, 0);
    exchange(clock, BASE_US, 20, 0);
    expect(onArrival()).toBeCloseTo(20_000, 0);
  });

  it('follows a clock that is set: at once in what it shows at the least', () => {
    startAt(10_000);
    const clock = new NodeClock(CLOCK);
    exchange(clock, BASE_US, 1, 1);
    for (const stepUs of [3_600_000_000, -3_600_000_000]) {
      exchange(clock, BASE_US + stepUs, 1, 1);
      expect(clock.atLeastUs()).toBeLessThanOrEqual(nowMs * 1_000 + BASE_US + stepUs);
      expect(clock.atLeastUs()).toBeGreaterThanOrEqual(nowMs * 1_000 + BASE_US + stepUs - 2_000);
    }
    for (let sample = 0; sample < 200; sample += 1) exchange(clock, BASE_US, 1, 1);
    expect(clock.onArrivalUs()! - (nowMs * 1_000 + BASE_US)).toBeLessThan(2_000);
  });

  it('is an offset only as far as that is sure: a slow answer is none', () => {
    startAt(10_000);
    const clock = new NodeClock({
      ...CLOCK,
      now: () => ({ monotonicMs: nowMs, wallMs: nowMs + 1_000 }),
    });
    const exact = 1_000_000;
    expect(clock.offsetMs()).toBeUndefined();
    exchange(clock, exact, 0, 900);
    exchange(clock, exact, 900, 0);
    expect(clock.offsetMs()).toBe(0);
    exchange(clock, exact + 2_000_000, 1, 1);
    expect(clock.offsetMs()).toBeCloseTo(1_999, 0);
    for (let sample = 0; sample < 100; sample += 1) exchange(clock, exact - 2_000_000, 1, 1);
    expect(clock.offsetMs()).toBeCloseTo(-1_999, 0);
  });
});
