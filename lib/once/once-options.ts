import { LockConfigurationError } from '../errors.js';
import type { AcquireOptions } from '../options/acquire-options.js';
import { describe } from '../options/describe.js';
import { toMs, type Duration } from '../options/duration.js';
import { booleanOf } from '../options/resolve-options.js';
import { hintFor, LOCK_ELSEWHERE, type Elsewhere } from '../options/unknown-option.js';

/** What `runOnce` and `@RunOnce` say of the work, besides its lock. */
export interface OnceOptions {
  /** How many attempts there may be, of all processes together. Default 3. */
  attempts?: number;
  /**
   * How long it is remembered that the work is done, or that it is not tried any more: whoever asks for it later than that does it
   * anew. Default 1 h.
   */
  keepDone?: Duration;
  /** Whether the value of the work is kept for the others: as JSON, and only up to 4 KiB of it. Default `false`. */
  keepValue?: boolean;
}

/** Options of `runOnce`. What is left out of its lock's comes from the module's options. */
export interface RunOnceOptions
  extends Omit<AcquireOptions, 'mode' | 'limit' | 'minHold' | 'release'>, OnceOptions {}

export interface ResolvedOnceOptions {
  readonly attempts: number;
  readonly keepDoneMs: number;
  readonly keepValue: boolean;
}

const NAMES = {
  attempts: true,
  keepDone: true,
  keepValue: true,
  ttl: true,
  wait: true,
  signal: true,
  autoExtend: true,
  maxHold: true,
} satisfies Record<keyof RunOnceOptions, true>;

const OF_ITS_LOCK = 'The lock of such work is exclusive, and free when the attempt is over.';
const ELSEWHERE: Elsewhere = new Map([
  ...LOCK_ELSEWHERE,
  ['mode', OF_ITS_LOCK],
  ['limit', OF_ITS_LOCK],
  ['minHold', OF_ITS_LOCK],
  ['release', OF_ITS_LOCK],
]);

/** @throws LockConfigurationError for what is none: its lock is exclusive, and free when the attempt is over */
export function refuseUnknownOnce(options: RunOnceOptions): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(NAMES, name));
  if (unknown === undefined) return;
  const list = Object.keys(NAMES);
  throw new LockConfigurationError(
    `There is no option "${unknown}" of runOnce.${hintFor(unknown, list, ELSEWHERE)} The options are ${list.join(', ')}.`,
  );
}

/** The names of these options. */
export const ONCE_OPTIONS = { attempts: true, keepDone: true, keepValue: true } satisfies Record<
  keyof OnceOptions,
  true
>;

/** @throws LockConfigurationError */
export function resolveOnceOptions({
  attempts = 3,
  keepDone = 3_600_000,
  keepValue = false,
}: OnceOptions): ResolvedOnceOptions {
  if (!Number.isSafeInteger(attempts) || attempts < 1) {
    throw new LockConfigurationError(
      `Option "attempts" must be a whole number from 1, received ${describe(attempts)}.`,
    );
  }
  return {
    attempts,
    keepDoneMs: Math.ceil(toMs(keepDone, 'keepDone', 1)),
    keepValue: booleanOf(keepValue, 'keepValue'),
  };
}
