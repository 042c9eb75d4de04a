import 'reflect-metadata';
import module from 'node:module';
import { LockConfigurationError } from '../../errors.js';
import thisFile from './this-file.cjs';

/** What @nestjs/schedule notes on a method; it is no dependency of ours. */
const CRON = 'SCHEDULE_CRON_OPTIONS';
const TIMER_OPTIONS = ['SCHEDULE_INTERVAL_OPTIONS', 'SCHEDULE_TIMEOUT_OPTIONS'];

interface CronOptions {
  readonly cronTime: string | Date | Moment;
  readonly timeZone?: string;
  readonly utcOffset?: number;
}

/** As much of a Luxon DateTime as is needed. */
interface Moment {
  toMillis(): number;
}

interface CronTime {
  /** In whole seconds, and after `start`. */
  getNextDateFrom(start: Date, timeZone?: string): Moment;
}

type CronTimeClass = new (source: string, timeZone?: string, utcOffset?: number) => CronTime;

const SECOND_MS = 1_000;

/** An expression that has not fired for so long never does: a 29 February comes every 8 years at the least. */
const LONGEST_PAUSE_MS = 9 * 366 * 24 * 60 * 60 * SECOND_MS;

/** `<fireTime>`: for when the present run of a method with `@Cron` was scheduled, the same in every process. */
export class FireTime {
  /** Read late: `@Cron` may stand above `@WithLock`, and note its options after it. */
  readonly #methods: () => readonly unknown[];
  #next: ((afterMs: number) => number) | undefined;

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
    const options = this.#noted([CRON]) as CronOptions | undefined;
    if (options !== undefined) {
      if (typeof options.cronTime === 'string') this.#nextOf(options, options.cronTime);
      return undefined;
    }
    return this.#noted(TIMER_OPTIONS) === undefined
      ? 'Or put @Cron on the method: then <fireTime> is the time that its run was scheduled for.'
      : '@Interval and @Timeout count from the start of each process, so their runs have no fire time in common: use @Cron.';
  }

  /** The latest time of the schedule that is not after now: `20300101T120000Z`, ISO 8601 without what would be encoded in a key. */
  text(now: number): string {
    return new Date(this.#latest(now)).toISOString().replace(/[-:]|\.\d+/g, '');
  }

  #latest(now: number): number {
    const options = this.#noted([CRON]) as CronOptions;
    const { cronTime } = options;
    if (typeof cronTime !== 'string')
      return cronTime instanceof Date ? cronTime.getTime() : cronTime.toMillis();
    const next = this.#nextOf(options, cronTime);
    // The last second after which the next time is not in the future: back in growing steps, then halving the last of them.
    let after = Math.floor(now / SECOND_MS) - 1;
    let tooLate = after + 1;
    for (let step = 1; next(after * SECOND_MS) > now; step *= 2) {
      if (step * SECOND_MS > LONGEST_PAUSE_MS) throw new LockConfigurationError(NEVER(cronTime));
      tooLate = after;
      after -= step;
    }
    while (tooLate - after > 1) {
      const middle = Math.floor((after + tooLate) / 2);
      if (next(middle * SECOND_MS) > now) tooLate = middle;
      else after = middle;
    }
    return next(after * SECOND_MS);
  }

  #nextOf(options: CronOptions, expression: string): (afterMs: number) => number {
    this.#next ??= nextOf(options, expression);
    return this.#next;
  }

  #noted(keys: readonly string[]): unknown {
    for (const method of this.#methods()) {
      if (typeof method !== 'function') continue;
      for (const key of keys) {
        const value: unknown = Reflect.getMetadata(key, method);
        if (value !== undefined) return value;
      }
    }
    return undefined;
  }
}

const NEVER = (expression: string): string =>
  `<fireTime> is asked for, but the cron expression "${expression}" has not fired for 9 years.`;

/** The first time of a schedule after another time. */
function nextOf(
  { timeZone, utcOffset }: CronOptions,
  expression: string,
): (afterMs: number) => number {
  const CronTime = cronTimeClass();
  const cron = new CronTime(expression, timeZone, utcOffset);
  const zone = utcOffset === undefined ? timeZone : zoneOf(utcOffset);
  return (afterMs) => cron.getNextDateFrom(new Date(afterMs), zone).toMillis();
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
