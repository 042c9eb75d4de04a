import ms from 'ms';
import { LockConfigurationError } from '../errors.js';
import { describe } from '../errors/describe.js';

type Unit = 'ms' | 's' | 'm' | 'h' | 'd' | 'w' | 'y' | UnitInWords | `${UnitInWords}s`;

/** What a text may call a unit. Each may have an `s` at its end. */
type UnitInWords =
  ShortUnit | 'millisecond' | 'second' | 'minute' | 'hour' | 'day' | 'week' | 'year';

type ShortUnit = 'msec' | 'sec' | 'min' | 'hr' | 'yr';

/** Milliseconds, or a string as the `ms` package reads it: `'500ms'`, `'30s'`, `'5 minutes'`, `'45d'`. At most 100 years. */
export type Duration = number | `${number}${Unit}` | `${number} ${Unit}`;

/**
 * The longest duration: 100 years. A server's clock in µs, that much later, is still a safe integer, and Redis accepts
 * it as an expiry. With a longer one Redis would refuse the command, or write the value and then refuse its expiry.
 */
const LONGEST_MS = 100 * 365.25 * 86_400_000;

/** Which durations an option accepts. */
export interface Bounds {
  readonly atLeastMs: number;
  /** Whether it also accepts 0, for "not at all". */
  readonly orZero?: true;
}

/** A duration in milliseconds. Refuses what is not finite, outside of the bounds or longer than 100 years; the message names the option. */
export function toMs(value: unknown, option: string, { atLeastMs, orZero }: Bounds): number {
  const parsed = typeof value === 'string' ? parse(value) : value;
  if (orZero && parsed === 0) return 0;
  if (typeof parsed !== 'number' || !Number.isFinite(parsed) || parsed < atLeastMs) {
    throw new LockConfigurationError(
      `Option "${option}" must be ${orZero ? '0 or ' : ''}a duration of at least ${String(atLeastMs)} ms, received ${describe(value)}` +
        remedyFor(value, parsed),
    );
  }
  if (parsed > LONGEST_MS) {
    throw new LockConfigurationError(
      `Option "${option}" must be a duration of at most 100 years, received ${describe(value)}. A number is a number of milliseconds.`,
    );
  }
  return parsed;
}

/** A small number without a unit is probably a number of seconds. */
function remedyFor(value: unknown, parsed: unknown): string {
  const isSmall = Number.isFinite(parsed) && Number(parsed) > 0;
  if (!isSmall || Number(value) !== parsed)
    return '. Give milliseconds (30_000) or a string such as "500ms", "30s", "5m".';
  const [seconds, ms] = [String(parsed), String(parsed * 1_000)];
  return `, which is ${seconds} ms. For ${seconds} seconds give ${ms} or "${seconds}s".`;
}

/** `ms` throws for texts of other lengths. */
const parse = (text: string): number | undefined =>
  text.length > 0 && text.length <= 100 ? ms(text as ms.StringValue) : undefined;
