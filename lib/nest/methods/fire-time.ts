import 'reflect-metadata';
import module from 'node:module';
import { LockConfigurationError } from '../../errors.js';
import { systemRuntime } from '../../time/runtime.js';
import thisFile from './this-file.cjs';

/** What @nestjs/schedule notes on a method; it is no dependency of ours. */
const CRON = 'SCHEDULE_CRON_OPTIONS';
const INTERVAL = 'SCHEDULE_INTERVAL_OPTIONS';
const TIMERS = [INTERVAL, 'SCHEDULE_TIMEOUT_OPTIONS'];

interface CronOptions {
  readonly cronTime: string | Moment;
  readonly timeZone?: string;
  readonly utcOffset?: number;
}

/** As much of a Date, or of a DateTime of Luxon, as is needed: its milliseconds. */
interface Moment {
  valueOf(): number;
}

interface CronTime {
  /** In whole seconds, and after `start`. */
  getNextDateFrom(start: Date, timeZone?: string): Moment;
}

type CronTimeClass = new (source: string, timeZone?: string, utcOffset?: number) => CronTime;

/** An expression that has not fired for so long never does: a 29 February comes every 8 years at the least. */
const LONGEST_PAUSE_S = 9 * 366 * 24 * 60 * 60;

/** How many of the next runs show how often a job runs: one may come only on some hours of the day. */
const RUNS_LOOKED_AT = 20;

/** `<fireTime>`: for when the present run of a method with `@Cron` was scheduled, the same in every process. */
export class FireTime {
  /** Read late: `@Cron` may stand above `@WithLock`, and note its options after it. */
  readonly #methods: () => readonly unknown[];
  #next: ((afterS: number) => number) | undefined;

  /** @param methods the functions that decorators may have noted their options on */
  constructor(methods: () => readonly unknown[]) {
    this.#methods = methods;
  }

  /**
   * Why there is none; `undefined` when there is.
   *
   * @throws LockConfigurationError when the schedule cannot be read: in a bundle of the application, where no package can be found
   */
  get problem(): string | undefined {
    const options = this.#noted(CRON) as CronOptions | undefined;
    if (options !== undefined) {
      if (typeof options.cronTime === 'string') this.#next ??= nextOf(options, options.cronTime);
      return undefined;
    }
    return TIMERS.every((key) => this.#noted(key) === undefined)
      ? 'Or put @Cron on the method: then <fireTime> is the time that its run was scheduled for.'
      : '@Interval and @Timeout count from the start of each process, so their runs have no fire time in common: use @Cron.';
  }

  /** Whether the method has `@Cron`. */
  get isKnown(): boolean {
    return this.#noted(CRON) !== undefined;
  }

  /** The shortest time between two of the next runs, in ms; `undefined` where nothing tells. */
  shortestPauseMs(): number | undefined {
    const options = this.#noted(CRON) as CronOptions | undefined;
    if (options === undefined)
      return (this.#noted(INTERVAL) as { timeout: number } | undefined)?.timeout;
    if (typeof options.cronTime !== 'string') return undefined;
    const next = (this.#next ??= nextOf(options, options.cronTime));
    let shortest: number | undefined;
    try {
      let run = next(Math.floor(systemRuntime.now().wallMs / 1_000));
      for (let seen = 0; seen < RUNS_LOOKED_AT; seen += 1) {
        const following = next(run / 1_000);
        shortest = Math.min(shortest ?? Infinity, following - run);
        run = following;
      }
    } catch {
      // The package looks 8 years ahead, and throws where it finds no further run.
    }
    return shortest;
  }

  /** The latest time of the schedule that is not after now: `20300101T120000Z`, ISO 8601 without what would be encoded in a key. */
  text(now: number): string {
    return new Date(this.#latest(now)).toISOString().replace(/[-:]|\.\d+/g, '');
  }

  #latest(now: number): number {
    const options = this.#noted(CRON) as CronOptions;
    const { cronTime } = options;
    if (typeof cronTime !== 'string') return cronTime.valueOf();
    const next = (this.#next ??= nextOf(options, cronTime));
    // The last second after which the next time is not in the future: back in growing steps, then halving the last of them.
    let tooLate = Math.floor(now / 1_000);
    let after = tooLate - 1;
    for (let step = 1; next(after) > now; step *= 2) {
      if (step > LONGEST_PAUSE_S)
        throw new LockConfigurationError(
          `<fireTime> is asked for, but the cron expression "${cronTime}" has not fired for 9 years.`,
        );
      tooLate = after;
      after -= step;
    }
    while (tooLate - after > 1) {
      const middle = Math.floor((after + tooLate) / 2);
      if (next(middle) > now) tooLate = middle;
      else after = middle;
    }
    return next(after);
  }

  #noted(key: string): unknown {
    return this.#methods()
      .filter((method) => typeof method === 'function')
      .map((method): unknown => Reflect.getMetadata(key, method))
      .find((value) => value !== undefined);
  }
}

/** The first time, in ms, of a schedule after a second. */
function nextOf(
  { timeZone, utcOffset }: CronOptions,
  expression: string,
): (afterS: number) => number {
  const CronTime = cronTimeClass();
  const cron = new CronTime(expression, timeZone, utcOffset);
  const zone = utcOffset === undefined ? timeZone : zoneOf(utcOffset);
  return (afterS) => cron.getNextDateFrom(new Date(afterS * 1_000), zone).valueOf();
}

/** @param minutes east of UTC */
function zoneOf(minutes: number): string {
  const size = Math.abs(minutes);
  const [hours, rest] = [Math.floor(size / 60), size % 60];
  const digits = (part: number): string => String(part).padStart(2, '0');
  return `UTC${minutes < 0 ? '-' : '+'}${digits(hours)}:${digits(rest)}`;
}

/** The class of the very package that fires the jobs. */
function cronTimeClass(): CronTimeClass {
  try {
    // Not a named import: bundlers follow that, and fail.
    const schedule = module.createRequire(thisFile).resolve('@nestjs/schedule');
    return (module.createRequire(schedule)('cron') as { CronTime: CronTimeClass }).CronTime;
  } catch (error) {
    throw new LockConfigurationError(
      '<fireTime> needs the package "cron" that @nestjs/schedule brings, and it could not be loaded. Use a key function instead.',
      { cause: error },
    );
  }
}
