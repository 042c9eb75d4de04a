import { LEASE } from '../options/acquire-options.js';
import { abortSignal, count, flag, wait, wholeDuration } from '../options/checks.js';
import {
  optional,
  plain,
  resolve,
  withDefault,
  type OneSchema,
  type OptionsOf,
  type Resolved,
} from '../options/schema.js';
import {
  OTHER_WORDS,
  refuseUnknown,
  type Elsewhere,
  type Kind,
} from '../options/unknown-option.js';

export const attempts = withDefault(count(), 3);
export const keepDone = withDefault(wholeDuration({ atLeastMs: 1_000 }), '1h');

/** Options of the work, besides its lock. */
export const ONCE = {
  /**
   * How many attempts all processes together may make. If a process dies in an attempt, that attempt counts.
   *
   * @defaultValue 3
   */
  attempts,
  /**
   * How long Redis keeps the record that the work is done or exhausted. At least 1 s. After that time, a call does the
   * work again, so choose a time after which no such call comes.
   *
   * @defaultValue 1 h
   */
  keepDone,
  /**
   * Whether later callers get the value of the work, as JSON returns it. If JSON refuses it (`BigInt`), or makes more
   * than 4 KiB of it, it is not kept, and a warning is logged. The work still counts as done.
   *
   * @defaultValue `false`
   */
  keepValue: withDefault(flag, false),
};

/** Options of callers that do not get the work. */
export const STAND_BY = {
  /**
   * How long to wait while another caller does the work. `'forever'` waits until that caller is done.
   *
   * @defaultValue the module's, or else 10 s
   */
  wait: optional(wait),
};

const SIGNAL = {
  /** Aborts the wait. During the work, it aborts the `signal` that the work has received. */
  signal: optional(abortSignal),
};

const RUN_ONCE = { ...ONCE, ...LEASE, ...STAND_BY, ...SIGNAL };

/** Options of `runOnce` and `@RunOnce` for the work, besides its lock. */
export interface OnceOptions extends OptionsOf<typeof ONCE>, OneSchema {}

/** Options of `runOnce`. Options of its lock that are left out come from the module's options. */
export interface RunOnceOptions
  extends
    OptionsOf<typeof ONCE>,
    OptionsOf<typeof LEASE>,
    OptionsOf<typeof STAND_BY>,
    OptionsOf<typeof SIGNAL> {}

export type ResolvedOnceOptions = Resolved<typeof ONCE>;

const OF_ITS_LOCK = 'The lock of such work is exclusive, and free when the attempt is over.';

/** Options that the lock of such work does not have. */
export const ONCE_ELSEWHERE: Elsewhere = {
  ...OTHER_WORDS,
  mode: OF_ITS_LOCK,
  limit: OF_ITS_LOCK,
  places: OF_ITS_LOCK,
  minHold: OF_ITS_LOCK,
  release: OF_ITS_LOCK,
};

export const RUN_ONCE_CALL: Kind<typeof RUN_ONCE> = {
  called: 'runOnce()',
  options: RUN_ONCE,
  elsewhere: ONCE_ELSEWHERE,
};

/** @throws LockConfigurationError */
export function knownOnceOptions(options: RunOnceOptions): RunOnceOptions {
  refuseUnknown(RUN_ONCE_CALL, options);
  return plain(RUN_ONCE_CALL.options, options);
}

/** @throws LockConfigurationError */
export const resolveOnceOptions = (options: OnceOptions): ResolvedOnceOptions =>
  resolve(ONCE, options);
