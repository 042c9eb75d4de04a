import { describe, expect, it } from '@jest/globals';
import { LimitedWarnings } from '../../lib/observe/limited-warnings.js';
import { Scheduler } from '../../lib/time/scheduler.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';

const MINUTE_MS = 60_000;

function setUp() {
  const runtime = new VirtualRuntime();
  const logged: string[] = [];
  const warnings = new LimitedWarnings(
    (message) => void logged.push(message),
    new Scheduler(runtime),
  );
  const warn = (count: number): void => {
    for (let number = 1; number <= count; number += 1) warnings.warn(`lost ${String(number)}`);
  };
  const taken = (): string[] => logged.splice(0);
  return { runtime, warnings, warn, taken };
}

describe('warnings of one kind', () => {
  it('are all logged while they are few, and leave no timer', () => {
    const { runtime, warn, taken } = setUp();
    warn(9);
    expect(taken()).toEqual(Array.from({ length: 9 }, (_, index) => `lost ${String(index + 1)}`));
    expect(runtime.timers).toBe(0);
  });

  it('say with the tenth in a minute that there will be a sum, which comes when the minute is over', async () => {
    const { runtime, warn, taken } = setUp();
    warn(9);
    taken();
    await runtime.advance(20_000);
    warn(1);
    expect(taken()).toEqual([
      'lost 1 (This is warning 10 of its kind within a minute: further ones are summed up once a minute.)',
    ]);
    expect(runtime.timers).toBe(0);
    warn(3);
    await runtime.advance(39_900);
    expect(taken()).toEqual([]);
    await runtime.advance(100);
    expect(taken()).toEqual([
      '3 more warnings of the same kind within a minute. The last one: lost 3',
    ]);
    expect(runtime.timers).toBe(0);
  });

  it('begin anew after a minute, and after a sum', async () => {
    const { runtime, warn, taken } = setUp();
    warn(9);
    await runtime.advance(MINUTE_MS);
    taken();
    warn(11);
    expect(taken()).toHaveLength(10);
    await runtime.advance(MINUTE_MS);
    expect(taken()).toEqual([
      '1 more warning of the same kind within a minute. The last one: lost 11',
    ]);
    warn(9);
    expect(taken()).toHaveLength(9);
    await runtime.advance(MINUTE_MS);
    expect(taken()).toEqual([]);
  });

  it('are summed at once if asked, and then no more', async () => {
    const { runtime, warnings, warn, taken } = setUp();
    warnings.flush();
    expect(taken()).toEqual([]);
    warn(12);
    taken();
    warnings.flush();
    expect(taken()).toEqual([
      '2 more warnings of the same kind within a minute. The last one: lost 12',
    ]);
    expect(runtime.timers).toBe(0);
    await runtime.advance(MINUTE_MS);
    expect(taken()).toEqual([]);
  });

  it('are summed no more once they are closed', async () => {
    const { runtime, warnings, warn, taken } = setUp();
    warn(12);
    taken();
    warnings.close();
    expect(runtime.timers).toBe(0);
    await runtime.advance(MINUTE_MS);
    expect(taken()).toEqual([]);
  });
});
