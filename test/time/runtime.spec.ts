import { describe, expect, it } from '@jest/globals';
import { systemRuntime } from '../../lib/time/runtime.js';

describe('systemRuntime', () => {
  it('reads the time of both clocks of this process', () => {
    const before = { monotonicMs: performance.now(), wallMs: Date.now() };
    const now = systemRuntime.now();
    expect(now.monotonicMs).toBeGreaterThanOrEqual(before.monotonicMs);
    expect(now.monotonicMs).toBeLessThanOrEqual(performance.now());
    expect(now.wallMs).toBeGreaterThanOrEqual(before.wallMs);
    expect(now.wallMs).toBeLessThanOrEqual(Date.now());
  });

  it('calls back after the input of this turn, and never when that was cancelled', async () => {
    const calls: string[] = [];
    const cancel = systemRuntime.afterInput(() => calls.push('cancelled'));
    systemRuntime.afterInput(() => calls.push('called'));
    cancel();
    await Promise.resolve();
    expect(calls).toEqual([]);
    await new Promise(setImmediate);
    expect(calls).toEqual(['called']);
  });

  it('draws numbers from 0 to 1 that differ', () => {
    const drawn = Array.from({ length: 100 }, () => systemRuntime.random());
    expect(drawn.every((number) => number >= 0 && number < 1)).toBe(true);
    expect(new Set(drawn).size).toBeGreaterThan(90);
  });

  it('makes random UUIDs, none twice', () => {
    const made = Array.from({ length: 100 }, () => systemRuntime.uuid());
    const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
    expect(made.filter((id) => !uuid.test(id))).toEqual([]);
    expect(new Set(made).size).toBe(100);
  });
});
