import ms from 'ms';
import { LockConfigurationError } from '../errors.js';
import { describe } from '../errors/describe.js';

type Unit =
  | 'ms'
  | 'msec'
  | 'msecs'
  | 'millisecond'
  | 'milliseconds'
  | 's'
  | 'sec'
  | 'secs'
  | 'second'
  | 'seconds'
  | 'm'
  | 'min'
  | 'mins'
  | 'minute'
  | 'minutes'
  | 'h'
  | 'hr'
  | 'hrs'
  | 'hour'
  | 'hours'
  | 'd'
  | 'day'
  | 'days'
  | 'w'
  | 'week'
  | 'weeks'
  | 'y'
  | 'yr'
  | 'yrs'
  | 'year'
  | 'years';

/** Milliseconds, or a string as the `ms` package reads it: `'500ms'`, `'30s'`, `'5 minutes'`, `'45d'`. At most 100 years. */
export type Duration = number | `${number}${Unit}` | `${number} ${Unit}`;

/**
 * The longest duration: 100 years. A server's clock in µs, that much later, is still a safe integer, and Redis accepts
 * it as an expiry. With a longer one Redis would refuse the command, or write the value and then refuse its expiry.
 */
const LONGEST_MS = 100 * 365.25 * 86_400_000;

/** A duration in milliseconds. Refuses what is not finite, less than `atLeastMs` or longer than 100 years; the message names the option. */
export function toMs(value: unknown, option: string, atLeastMs = 0): number {
  const parsed = typeof value === 'string' ? parse(value) : value;
  if (typeof parsed !== 'number' || !Number.isFinite(parsed) || parsed < atLeastMs) {
    throw new LockConfigurationError(
      `Option "${option}" must be a duration of at least ${String(atLeastMs)} ms, received ${describe(value)}. ` +
        'Give milliseconds (30_000) or a string such as "500ms", "30s", "5m".',
    );
  }
  if (parsed > LONGEST_MS) {
    throw new LockConfigurationError(
      `Option "${option}" must be a duration of at most 100 years, received ${describe(value)}. A number is a number of milliseconds.`,
    );
  }
  return parsed;
}

/** `ms` throws for texts of other lengths. */
const parse = (text: string): number | undefined =>
  text.length > 0 && text.length <= 100 ? ms(text as ms.StringValue) : undefined;
