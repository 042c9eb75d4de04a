import { describe, expect, it } from '@jest/globals';
import { ClaimClock } from '../../lib/store/redis/node/claim-clock.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const DRIFT = 0.01;

/** What the server's clock shows when ours shows 0, in µs. */
const SERVER_US = 1_900_000_000_000_000;

/** A server that was asked at 0 and answered at 20 ms; its clock goes as ours does. */
async function learnt(clockDrift = DRIFT) {
  const runtime = new VirtualRuntime();
  const clock = new ClaimClock(runtime, clockDrift);
  const askedAt = runtime.now();
  await runtime.advance(20);
  clock.learn(SERVER_US + 10_000, askedAt);
  return { runtime, clock };
}

/** By the server's clock, `ms` after ours showed 0. */
const at = (ms: number): number => SERVER_US + ms * 1_000;

describe('the age of a call', () => {
  it('is not known before the server has told its time', () => {
    expect(new ClaimClock(new VirtualRuntime(), DRIFT).ageAtMostMs(at(0))).toBeUndefined();
  });

  it('is never underestimated: the server may have read its clock when we asked, and clocks differ', async () => {
    const { runtime, clock } = await learnt();
    await runtime.advance(1_000);
    const age = clock.ageAtMostMs(at(1_000));
    expect(age).toBeGreaterThanOrEqual(20);
    expect(age).toBeLessThan(20 + 10 + 1_020 * 0.011);
  });

  it('allows for clocks that differ by as much as it was told', async () => {
    const { runtime, clock } = await learnt(0.5);
    await runtime.advance(1_000);
    // The clock of the server has come by half as much further again.
    expect(clock.ageAtMostMs(at(1_000))).toBeGreaterThanOrEqual(500);
  });

  it('counts the time in which the machine was suspended', async () => {
    const { runtime, clock } = await learnt();
    runtime.suspend(60_000);
    expect(clock.ageAtMostMs(at(20))).toBeGreaterThan(60_000);
  });

  it('is larger when the wall clock of this process was set forward, and as before when it was set back', async () => {
    const { runtime, clock } = await learnt();
    runtime.suspend(500);
    expect(clock.ageAtMostMs(at(20))).toBeGreaterThan(500);
    runtime.setBack(60_500);
    expect(clock.ageAtMostMs(at(20))).toBeGreaterThanOrEqual(0);
    expect(clock.ageAtMostMs(at(20))).toBeLessThan(20);
  });

  it('is not known for a call from the future: the clock of the server was set forward since', async () => {
    const { clock } = await learnt();
    expect(clock.ageAtMostMs(at(1_000))).toBeUndefined();
    // Nothing that was learnt before counts any more.
    expect(clock.ageAtMostMs(at(20))).toBeUndefined();
  });

  it('is not known after a reconnect, until the server that is there has answered', async () => {
    const { runtime, clock } = await learnt();
    const askedBefore = runtime.now();
    await runtime.advance(5);
    clock.forget();
    expect(clock.ageAtMostMs(at(20))).toBeUndefined();
    clock.learn(at(22), askedBefore);
    expect(clock.ageAtMostMs(at(24))).toBeUndefined();
    clock.learn(at(25), runtime.now());
    expect(clock.ageAtMostMs(at(24))).toBeGreaterThan(0.9);
  });

  it.each([NaN, 0, -1])('is not learnt from a time that is none: %p', (serverUs) => {
    const runtime = new VirtualRuntime();
    const clock = new ClaimClock(runtime, DRIFT);
    clock.learn(serverUs, runtime.now());
    expect(clock.ageAtMostMs(at(0))).toBeUndefined();
  });
});
