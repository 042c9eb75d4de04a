import { Injectable } from '@nestjs/common';
import { Cron, CronExpression, Interval, ScheduleModule, Timeout } from '@nestjs/schedule';
import { afterEach, describe, expect, it } from '@jest/globals';
import { LockConfigurationError, LockModule, LockService, WithLock } from 'nestjs-holdfast';
import { MemoryLockStore } from '../../lib/store/memory/memory-lock-store.js';
import { FireTime } from '../../lib/nest/methods/fire-time.js';
import { closeApps, startApp } from './module/start-app.js';
import { eventually } from '../support/eventually.js';
import { createTestLocks } from 'nestjs-holdfast/testing';
import { storeOption } from '../../lib/options/location.js';

afterEach(closeApps);

describe('the fire time', () => {
  const at = (
    now: string,
    expression: string | Date,
    options: { timeZone?: string; utcOffset?: number } = { timeZone: 'UTC' },
  ): string => {
    class Jobs {
      run(): void {
        // Only its metadata is read.
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Jobs.prototype, 'run');
    if (descriptor === undefined) throw new Error('there is a method');
    Cron(expression, options as { timeZone?: string })(Jobs.prototype, 'run', descriptor);
    return new FireTime(() => [descriptor.value]).text(Date.parse(now));
  };

  it('is looked for when the application starts: a schedule that cannot be read is not found out by the first run', () => {
    const job = (): void => undefined;
    Reflect.defineMetadata('SCHEDULE_CRON_OPTIONS', { cronTime: 'at noon' }, job);
    const fireTime = new FireTime(() => [job]);
    expect(() => fireTime.problem).toThrow('Unknown alias');
  });

  it('is the latest time of the schedule that is not after now, however late the run is', () => {
    for (const now of ['12:00:00.000', '12:00:00.001', '12:00:04.999', '12:59:59.999']) {
      expect(at(`2030-01-01T${now}Z`, CronExpression.EVERY_HOUR)).toBe('20300101T120000Z');
    }
    expect(at('2030-01-01T11:59:59.999Z', CronExpression.EVERY_HOUR)).toBe('20300101T110000Z');
  });

  it.each([
    ['2030-01-01T12:00:07.900Z', '* * * * * *', '20300101T120007Z'],
    ['2030-01-01T12:00:07.900Z', '*/5 * * * * *', '20300101T120005Z'],
    ['2030-01-01T00:00:00.000Z', '0 0 1 1 *', '20300101T000000Z'],
    ['2030-12-31T23:59:59.999Z', '0 0 1 1 *', '20300101T000000Z'],
    ['2030-02-01T00:00:00.000Z', '0 0 12 29 2 *', '20280229T120000Z'],
    ['2030-01-01T16:00:00.000Z', '* * 3 * * *', '20300101T035959Z'],
    ['2030-01-07T09:30:01.000Z', '0 30 9 * * 1-5', '20300107T093000Z'],
    ['2030-01-05T09:30:01.000Z', '0 30 9 * * 1-5', '20300104T093000Z'],
    ['2030-01-01T12:00:00.000Z', '@daily', '20300101T000000Z'],
  ])('at %s of %s is %s', (now, expression, expected) => {
    expect(at(now, expression)).toBe(expected);
  });

  it('is that of its time zone, also where clocks are changed', () => {
    const timeZone = 'Europe/Berlin';
    expect(at('2030-01-01T02:00:00Z', '0 0 3 * * *', { timeZone })).toBe('20300101T020000Z');
    expect(at('2030-07-01T02:00:00Z', '0 0 3 * * *', { timeZone })).toBe('20300701T010000Z');
    expect(at('2030-03-31T12:00:00Z', '0 0 5 * * *', { timeZone })).toBe('20300331T030000Z');
    expect(at('2030-10-27T12:00:00Z', '0 0 5 * * *', { timeZone })).toBe('20301027T040000Z');
    expect(at('2030-01-01T02:00:00Z', '0 0 3 * * *', { utcOffset: 90 })).toBe('20300101T013000Z');
    expect(at('2030-01-01T12:00:00Z', '0 0 3 * * *', { utcOffset: -210 })).toBe('20300101T063000Z');
  });

  it('of a job that runs once is its date', () => {
    const date = new Date('2030-01-01T12:00:00Z');
    expect(at('2030-01-01T12:00:03Z', date)).toBe('20300101T120000Z');
  });

  it('of an expression that never fires is an error', () => {
    expect(() => at('2030-01-01T00:00:00Z', '0 0 12 30 2 *')).toThrow(/30 2|never|9 years/);
  });
});

describe('cron jobs of two instances', () => {
  it('run once for each fire time, wherever @Cron stands', async () => {
    const runs: string[] = [];
    const once = { ttl: '10s', release: 'on-expiry', onLocked: 'skip' } as const;

    @Injectable()
    class Jobs {
      @Cron(CronExpression.EVERY_SECOND)
      @WithLock('above:<fireTime>', once)
      async above(): Promise<void> {
        runs.push('above');
      }

      @WithLock(['beneath:<fireTime>', 'beneath:<fireTime>:too'], once)
      @Cron(CronExpression.EVERY_SECOND, { timeZone: 'Asia/Kolkata' })
      async beneath(): Promise<void> {
        runs.push('beneath');
      }

      /** Each second as well, but short: without minHold both would run, one after the other. */
      @Cron(CronExpression.EVERY_SECOND)
      @WithLock('held', { ttl: '10s', minHold: 600, onLocked: 'skip' })
      async held(): Promise<void> {
        runs.push('held');
      }
    }

    const store = new MemoryLockStore();
    const [acquired, refused]: [string[], string[]] = [[], []];
    for (let instance = 0; instance < 2; instance += 1) {
      const { app } = await startApp({
        imports: [ScheduleModule.forRoot(), LockModule.forRoot({ store: storeOption(store) })],
        providers: [Jobs],
      });
      const locks = app.get(LockService);
      locks.on('acquired', ({ keys }) => acquired.push(keys.join()));
      locks.on('refused', ({ keys }) => refused.push(keys.join()));
      // The first app may have run before anybody listened to it.
      if (instance === 0) runs.length = 0;
    }
    const countOf = (keys: readonly string[], name: string): number =>
      keys.filter((key) => key.startsWith(name)).length;
    await eventually(() => countOf(refused, 'above') >= 2 && countOf(refused, 'held') >= 1);
    await eventually(() => countOf(acquired, 'above') >= 2 && countOf(acquired, 'beneath') >= 2);
    await closeApps();

    const times = acquired.filter((key) => key.startsWith('above'));
    expect(new Set(times).size).toBe(times.length);
    for (const key of times) expect(key).toMatch(/^above:\d{8}T\d{6}Z$/);
    // The first app may have run before anybody listened to it.
    const [first = ''] = times;
    for (const key of refused.filter((each) => each.startsWith('above') && each >= first))
      expect(times).toContain(key);
    const beneath = acquired.filter((key) => key.startsWith('beneath'));
    expect(new Set(beneath).size).toBe(beneath.length);
    for (const name of ['above', 'beneath', 'held']) {
      expect(countOf(runs, name)).toBe(countOf(acquired, name));
    }
  });
});

describe('a key with <fireTime>', () => {
  const startWith = (jobs: new () => object): Promise<unknown> =>
    startApp({
      imports: [LockModule.forRoot({ store: 'memory' })],
      providers: [jobs],
    }).catch((error: unknown) => error);

  it('is an error at the start on a method without @Cron, which says what to do', async () => {
    @Injectable()
    class Jobs {
      @WithLock('report:<fireTime>')
      async report(): Promise<void> {
        // Never runs.
      }
    }
    const error = await startWith(Jobs);
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect((error as Error).message).toMatch(
      /^@WithLock on Jobs\.report: the key "report:<fireTime>" has <fireTime>, but report\(\) has no parameter "fireTime"\..* Or put @Cron on the method: then <fireTime> is the time that its run was scheduled for\.$/,
    );
    expect(() => createTestLocks().locks.bind(new Jobs())).toThrow(LockConfigurationError);
  });

  it('is an error with @Interval and @Timeout, which have no common fire time', async () => {
    @Injectable()
    class Intervals {
      @Interval(1_000)
      @WithLock('report:<fireTime>')
      async report(): Promise<void> {
        // Never runs.
      }
    }

    @Injectable()
    class Timeouts {
      @WithLock('report:<fireTime>')
      @Timeout(1_000)
      async report(): Promise<void> {
        // Never runs.
      }
    }
    for (const jobs of [Intervals, Timeouts]) {
      expect(await startWith(jobs)).toMatchObject({
        message: expect.stringContaining(
          '@Interval and @Timeout count from the start of each process',
        ),
      });
    }
  });

  it('means a parameter of that name', async () => {
    @Injectable()
    class Jobs {
      @Cron(CronExpression.EVERY_YEAR)
      @WithLock('report:<fireTime>')
      async report(fireTime: string): Promise<string> {
        return fireTime;
      }
    }
    const { locks, testLocks } = createTestLocks();
    await locks.bind(new Jobs()).report('noon');
    expect(testLocks.acquired).toEqual(['report:noon']);
  });

  it('has no properties', () => {
    expect(() => {
      class Jobs {
        @Cron(CronExpression.EVERY_YEAR)
        @WithLock('report:<fireTime.day>')
        async report(): Promise<void> {
          // Never runs.
        }
      }
      return Jobs;
    }).toThrow('report() has no parameter "fireTime"');
  });
});
