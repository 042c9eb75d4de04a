import ms from 'ms';
import { LockConfigurationError } from '../errors.js';
import { describe } from './describe.js';

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

/** Milliseconds, or a string as the `ms` package reads it: `'500ms'`, `'30s'`, `'5 minutes'`, `'45d'`. */
export type Duration = number | `${number}${Unit}` | `${number} ${Unit}`;

/** A duration in milliseconds. Refuses what is not finite or less than `atLeastMs`; the message names the option. */
export function toMs(value: unknown, option: string, atLeastMs = 0): number {
  const parsed = typeof value === 'string' ? parse(value) : value;
  if (typeof parsed !== 'number' || !Number.isFinite(parsed) || parsed < atLeastMs) {
    throw new LockConfigurationError(
      `Option "${option}" must be a duration of at least ${String(atLeastMs)} ms, received ${describe(value)}. ` +
        'Give milliseconds (30_000) or a string such as "500ms", "30s", "5m".',
    );
  }
  return parsed;
}

/** `ms` throws for texts of other lengths. */
const parse = (text: string): number | undefined =>
  text.length > 0 && text.length <= 100 ? ms(text as ms.StringValue) : undefined;
