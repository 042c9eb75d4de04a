import { LockConfigurationError } from '../errors.js';
import { describe } from '../errors/describe.js';
import { toMs, type Bounds, type Duration } from './duration.js';
import type { Check, OptionsOf, Resolved, Schema } from './schema.js';
import { checkedOptions } from './unknown-option.js';

export const wrong = (name: string, value: unknown, expected: string): LockConfigurationError =>
  new LockConfigurationError(`Option "${name}" must be ${expected}, received ${describe(value)}.`);

/**
 * Below this, a network's own delays use up most of a lease, and a number of seconds was probably given. An option that
 * limits one request, or one turn, accepts less.
 */
const SHORTEST_MS = 50;

/** What a caller waits or holds. */
const LONG_ENOUGH: Bounds = { atLeastMs: SHORTEST_MS };
export const LONG_ENOUGH_OR_ZERO: Bounds = { atLeastMs: SHORTEST_MS, orZero: true };

const durationAs =
  (adjusted: (ms: number) => number) =>
  (bounds = LONG_ENOUGH): Check<Duration, number, 'Ms'> => ({
    unit: 'Ms',
    resolve: (value, name) => adjusted(toMs(value, name, bounds)),
  });

/** A duration. */
export const duration = durationAs((ms) => ms);

/** A duration, or 0. */
const durationOrZero = duration(LONG_ENOUGH_OR_ZERO);

/** How long to wait: a duration, or `'forever'` for no limit. */
export type Wait = Duration | 'forever';

/** A duration, or `'forever'`, which is `Infinity`. */
export const wait: Check<Wait, number, 'Ms'> = {
  unit: 'Ms',
  resolve: (value, name) =>
    value === 'forever' || value === Infinity ? Infinity : waitMs(value, name),
};

function waitMs(value: unknown, name: string): number {
  if (typeof value !== 'string' || !/^(for[- ]?ever|infinit[ey])$/i.test(value))
    return durationOrZero.resolve(value, name);
  throw new LockConfigurationError(
    `Option "${name}" must be a duration or 'forever', received ${describe(value)}. Give 'forever' to wait indefinitely.`,
  );
}

/** A duration that Redis counts, or the TTL of a key that it gives up: in whole milliseconds. */
export const wholeDuration = durationAs(Math.ceil);

/** The same, or 0. */
export const wholeDurationOrZero = wholeDuration(LONG_ENOUGH_OR_ZERO);

/** The TTL of a lease. */
export const ttl = wholeDuration();

/** Node keeps the delays of its timers in a signed 32-bit integer; a longer one fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A duration that one timer measures. */
export const timerDuration = durationAs((ms) => Math.min(ms, LONGEST_TIMER_MS));

/** Whatever a test of one value tells apart. */
export const tested = <Given>(
  expected: string,
  isOne: (value: unknown) => boolean,
): Check<Given, Given> => ({
  unit: '',
  resolve: (given, name) => {
    if (isOne(given)) return given as Given;
    throw wrong(name, given, expected);
  },
});

export const flag = tested<boolean>('true or false', (given) => typeof given === 'boolean');

/** A number of things. */
export const count = (atMost = Number.MAX_SAFE_INTEGER): Check<number, number> =>
  tested(
    atMost === Number.MAX_SAFE_INTEGER
      ? 'a whole number from 1'
      : `a whole number from 1 to ${String(atMost)}`,
    (given) => Number.isSafeInteger(given) && (given as number) >= 1 && (given as number) <= atMost,
  );

/** One of a few words. */
export function oneOf<const Word extends string>(...words: readonly Word[]): Check<Word, Word> {
  const quoted = words.map((word) => `'${word}'`);
  const expected = `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1) ?? ''}`;
  return tested(expected, (given) => (words as readonly unknown[]).includes(given));
}

/** A name for people to read. */
export const shortText = tested<string>(
  'a text of 1 to 200 characters',
  (given) => typeof given === 'string' && given !== '' && given.length <= 200,
);

/** What a `LockService` may be called. */
export const serviceName = tested<string | symbol>(
  'a symbol, or a text that is not empty',
  (given) => typeof given === 'symbol' || (typeof given === 'string' && given !== ''),
);

export const abortSignal = tested<AbortSignal | undefined>(
  'an AbortSignal',
  (given) => given instanceof AbortSignal,
);

const hasControlCharacter = (text: string): boolean =>
  // eslint-disable-next-line no-control-regex -- they are what is looked for
  /[\u0000-\u001f\u007f]/.test(text);

/** What keys in the store begin with. */
export const keyPrefix = tested<string>(
  `a text without control characters, with at most one Cluster hash tag such as '{app}:'`,
  (given) =>
    typeof given === 'string' &&
    !hasControlCharacter(given) &&
    !/[{}]/.test(given.replace(/\{[^{}]+\}/, '')),
);

export const clockDrift = tested<number>(
  'a fraction from 0 to 0.5, such as 0.01',
  (given) => typeof given === 'number' && given >= 0 && given <= 0.5,
);

/** Options of an option. */
export const group = <S extends Schema>(
  schema: S,
  expected: string,
): Check<OptionsOf<S>, Resolved<S>> => ({
  unit: '',
  resolve: (given, name) => {
    if (typeof given !== 'object' || given === null) throw wrong(name, given, expected);
    return checkedOptions({ called: `Option "${name}"`, options: schema }, given, `${name}.`);
  },
});
