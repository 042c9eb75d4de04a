import { Injectable } from '@nestjs/common';
import {
  Cron,
  CronExpression,
  Interval,
  ScheduleModule,
  SchedulerRegistry,
} from '@nestjs/schedule';
import { afterEach, describe, expect, it } from '@jest/globals';
import { CronJob } from 'cron';
import { CronLock, LockLostError, LockModule, LockService } from 'nestjs-holdfast';
import { lockedMethodOf } from '../../lib/nest/methods/locked-methods-of.js';
import { storeOption } from '../../lib/options/location.js';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { eventually } from '../support/eventually.js';
import { VirtualRuntime } from '../support/virtual-runtime.js';
import { closeApps, startApp } from './module/start-app.js';

afterEach(closeApps);

const MINUTE_MS = 60_000;

/** A clock that is ahead of another one, or behind it. */
class Skewed extends VirtualRuntime {
  readonly #by: VirtualRuntime;
  readonly #aheadMs: number;

  constructor(by: VirtualRuntime, aheadMs: number) {
    super();
    this.#by = by;
    this.#aheadMs = aheadMs;
  }

  override now() {
    const { monotonicMs, wallMs } = this.#by.now();
    return { monotonicMs, wallMs: wallMs + this.#aheadMs };
  }

  override setTimer(callback: () => void, delayMs: number): () => void {
    return this.#by.setTimer(callback, delayMs);
  }

  override random(): number {
    return this.#by.random();
  }

  override uuid(): string {
    return this.#by.uuid();
  }
}

describe('a job with @CronLock', () => {
  it('runs once for each of 60 fire times in three processes, each with a clock of its own and late by chance', async () => {
    const clock = new VirtualRuntime();
    const store = storeOption(new MemoryLockStore(clock));
    const runs: string[] = [];
    class Jobs {
      readonly #locks: LockService;

      constructor(locks: LockService) {
        this.#locks = locks;
      }

      @Cron(CronExpression.EVERY_MINUTE)
      @CronLock('report')
      async report(): Promise<void> {
        runs.push(...(this.#locks.current()?.keys ?? []));
      }
    }
    const processes = [0, 4_000, -3_000].map((aheadMs) => {
      const locks = new LockService({ store }, { runtime: new Skewed(clock, aheadMs) });
      return { aheadMs, jobs: locks.bind(new Jobs(locks)) };
    });
    await clock.advance(10_000);
    for (let minute = 1; minute <= 60; minute += 1) {
      const fires = processes
        // Each process fires by its own clock, and up to 20 s late.
        .map(({ jobs, aheadMs }) => ({
          jobs,
          at: minute * MINUTE_MS - aheadMs + clock.random() * 20_000,
        }))
        .toSorted((one, other) => one.at - other.at);
      for (const { jobs, at } of fires) {
        await clock.advance(at - clock.now().monotonicMs);
        await jobs.report();
      }
    }
    expect(runs).toHaveLength(60);
    expect(new Set(runs).size).toBe(60);
    expect(runs[0]).toBe('report:20300101T000100Z');
  });

  it('runs above and below @Cron, with @Interval, and as a job of the registry: one process of two each time', async () => {
    const store = new MemoryLockStore();
    const runs: string[] = [];

    @Injectable()
    class Jobs {
      @Cron(CronExpression.EVERY_SECOND, { timeZone: 'Asia/Kolkata' })
      @CronLock('beneath')
      async beneath(): Promise<void> {
        runs.push('beneath');
      }

      @CronLock('above')
      @Cron(CronExpression.EVERY_SECOND)
      async above(): Promise<void> {
        runs.push('above');
      }

      @Interval(400)
      @CronLock('interval')
      async interval(): Promise<void> {
        runs.push('interval');
      }

      @CronLock('dynamic', { atLeast: '500ms' })
      async dynamic(): Promise<void> {
        runs.push('dynamic');
      }
    }
    const keys: string[] = [];
    let refusals = 0;
    for (let instance = 0; instance < 2; instance += 1) {
      const { app } = await startApp({
        imports: [ScheduleModule.forRoot(), LockModule.forRoot({ store: storeOption(store) })],
        providers: [Jobs],
      });
      const job = new CronJob('* * * * * *', () => void app.get(Jobs).dynamic());
      app.get(SchedulerRegistry).addCronJob('dynamic', job);
      job.start();
      const locks = app.get(LockService);
      locks.on('acquired', (acquired) => keys.push(...acquired.keys));
      locks.on('refused', () => (refusals += 1));
    }
    const keysOf = (name: string): string[] => keys.filter((key) => key.startsWith(name));
    const names = ['beneath', 'above', 'interval', 'dynamic'];
    await eventually(() => names.every((name) => keysOf(name).length >= 2) && refusals >= 8);
    await closeApps();
    for (const name of ['beneath', 'above']) {
      expect(new Set(keysOf(name)).size).toBe(keysOf(name).length);
      for (const key of keysOf(name)) expect(key).toMatch(/^\w+:\d{8}T\d{6}Z$/);
    }
    expect(new Set([...keysOf('interval'), ...keysOf('dynamic')])).toEqual(
      new Set(['interval', 'dynamic']),
    );
  });

  it('keeps its key for atLeast, and loses its lock at atMost', async () => {
    const clock = new VirtualRuntime();
    const store = storeOption(new MemoryLockStore(clock));
    const locks = new LockService({ store }, { runtime: clock });
    const other = new LockService({ store }, { runtime: clock });
    class Jobs {
      @CronLock('kept', { atLeast: '2m' })
      async kept(): Promise<string | undefined> {
        return 'ran';
      }

      @CronLock('hangs', { atLeast: 0, atMost: '1m' })
      async hangs(): Promise<void> {
        await new Promise<void>((resolve) => {
          locks.current()?.signal.addEventListener('abort', () => {
            resolve();
          });
        });
      }
    }
    const [mine, theirs] = [locks.bind(new Jobs()), other.bind(new Jobs())];
    expect(await mine.kept()).toBe('ran');
    await clock.advance(119_000);
    expect(await theirs.kept()).toBeUndefined();
    await clock.advance(2_000);
    expect(await theirs.kept()).toBe('ran');

    const hanging = expect(mine.hangs()).rejects.toThrow(LockLostError);
    await clock.advance(59_000);
    expect(await other.tryAcquire('hangs')).toBeNull();
    await clock.advance(2_000);
    await hanging;
    expect(await other.tryAcquire('hangs')).not.toBeNull();
  });

  it('overlaps its next runs if it takes longer than the time between them, unless it takes a second lock', async () => {
    const clock = new VirtualRuntime();
    const locks = new LockService({ store: 'memory' }, { runtime: clock });
    let [running, most] = [0, 0];
    const work = async (): Promise<void> => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => {
        clock.setTimer(resolve, 5_000);
      });
      running -= 1;
    };
    class Jobs {
      @Cron('*/2 * * * * *')
      @CronLock('long')
      async long(): Promise<void> {
        await work();
      }

      @Cron('*/2 * * * * *')
      @CronLock('apart')
      async apart(): Promise<void> {
        await locks.tryRun('apart', work);
      }
    }
    const jobs = locks.bind(new Jobs());
    const mostOf = async (run: () => Promise<void>): Promise<number> => {
      most = 0;
      const runs = [];
      for (let fired = 0; fired < 5; fired += 1) {
        runs.push(run());
        await clock.advance(2_000);
      }
      await clock.advance(5_000);
      await Promise.all(runs);
      return most;
    };
    expect(await mostOf(() => jobs.long())).toBe(3);
    expect(await mostOf(() => jobs.apart())).toBe(1);
  });

  it.each([
    ['each second', '* * * * * *', MINUTE_MS, MINUTE_MS],
    ['each 5 minutes', '*/5 * * * *', 5 * MINUTE_MS, 5 * MINUTE_MS],
    ['on weekdays', '0 9 * * 1-5', 10 * MINUTE_MS, 24 * 60 * MINUTE_MS],
    ['from 9 to 17 o’clock', '0 9-17 * * *', 10 * MINUTE_MS, 60 * MINUTE_MS],
    ['each year', CronExpression.EVERY_YEAR, 10 * MINUTE_MS, 365 * 24 * 60 * MINUTE_MS],
    ['on leap days', '0 0 29 2 *', 10 * MINUTE_MS, 1_461 * 24 * 60 * MINUTE_MS],
  ])('that runs %s takes its defaults from that', (_often, expression, minHold, maxHold) => {
    class Jobs {
      @Cron(expression, { timeZone: 'UTC' })
      @CronLock('job')
      async run(): Promise<void> {
        // Only its lock is looked at.
      }
    }
    const { prototype } = Jobs;
    const run = Object.getOwnPropertyDescriptor(prototype, 'run')?.value as object;
    const options = lockedMethodOf(run)?.lockingIn(undefined).run;
    expect(options).toMatchObject({ wait: 0, minHold, maxHold });
  });

  it('with @Interval keeps its key for nine tenths of that, and may run without a limit', () => {
    class Jobs {
      @Interval(200_000)
      @CronLock('job')
      async run(): Promise<void> {
        // Only its lock is looked at.
      }
    }
    const run = Object.getOwnPropertyDescriptor(Jobs.prototype, 'run')?.value as object;
    const options = lockedMethodOf(run)?.lockingIn(undefined).run;
    expect(options).toMatchObject({ wait: 0, minHold: 180_000 });
    expect(options).not.toHaveProperty('maxHold');
  });

  it('is refused at the start where nothing says how often it runs, and with options of other decorators', async () => {
    @Injectable()
    class Jobs {
      @CronLock('job')
      async run(): Promise<void> {
        // Never runs.
      }
    }
    const imports = [LockModule.forRoot({ store: 'memory' })];
    await expect(startApp({ imports, providers: [Jobs] })).rejects.toThrow(
      '@CronLock on Jobs.run: The method has neither @Cron nor @Interval, so nothing says for how long its key is to stay taken. Give "atLeast", ' +
        "such as half of the time between two runs: { atLeast: '30s' }.",
    );
    const decorate = (...args: unknown[]) =>
      (CronLock as (...given: unknown[]) => MethodDecorator)(...args)(Jobs.prototype, 'other', {
        value: async () => undefined,
      } as PropertyDescriptor);
    expect(() => decorate('job', { ttl: '1m' })).toThrow(
      '@CronLock on Jobs.other has no option "ttl". The lease lasts for the "ttl" of the module, and at least for "atLeast".',
    );
    expect(() => decorate('job', { lockAtLeastFor: '1m' })).toThrow('Give "atLeast".');
    expect(() => decorate(['a', 'b'])).toThrow("needs one name: @CronLock('report').");
    expect(() => decorate()).toThrow('has no key');
    const onGenerator = CronLock('job', { atLeast: '1m' }) as unknown as MethodDecorator;
    const value: unknown = async function* () {};
    expect(() => {
      onGenerator(Jobs.prototype, 'each', { value } as TypedPropertyDescriptor<any>);
    }).toThrow('nothing iterates what the generator of a job yields');
  });
});
