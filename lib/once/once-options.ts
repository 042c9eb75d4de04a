import { LEASE } from '../options/acquire-options.js';
import { abortSignal, count, flag, tested, ttl, wait, wholeDuration } from '../options/checks.js';
import {
  optional,
  required,
  resolve,
  withDefault,
  type OptionsOf,
  type Resolved,
} from '../options/schema.js';
import {
  OTHER_WORDS,
  refuseUnknown,
  type Elsewhere,
  type Kind,
} from '../options/unknown-option.js';

const attempts = withDefault(count(), 3);
const keepDone = withDefault(wholeDuration(1), '1h');

/** Options of the work, besides its lock. */
export const ONCE = {
  /**
   * How many attempts there may be, of all processes together. An attempt that died counts.
   *
   * @defaultValue 3
   */
  attempts,
  /**
   * How long the store keeps the record that the work is done or exhausted. A later call does the work again, so choose
   * a time after which no such call comes.
   *
   * @defaultValue 1 h
   */
  keepDone,
  /**
   * Whether the value of the work is kept for the others, as JSON of up to 4 KiB. A value that is larger or no JSON is
   * not kept. The work is then marked without it, and a warning is logged.
   *
   * @defaultValue `false`
   */
  keepValue: withDefault(flag, false),
};

/** Options of callers that do not get the work. */
export const STAND_BY = {
  /**
   * How long to wait while another caller does the work; `'forever'`: until that ends.
   *
   * @defaultValue the module's
   */
  wait: optional(wait),
};

const SIGNAL = {
  /** Ends the wait when it aborts; during the work it aborts the attempt's `signal`. */
  signal: optional(abortSignal),
};

const RUN_ONCE = { ...ONCE, ...LEASE, ...STAND_BY, ...SIGNAL };

/** Options of `runOnce` and `@RunOnce` for the work, besides its lock. */
export interface OnceOptions extends OptionsOf<typeof ONCE> {}

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
export function refuseUnknownOnce(options: RunOnceOptions): void {
  refuseUnknown(RUN_ONCE_CALL, options);
}

/** @throws LockConfigurationError */
export const resolveOnceOptions = (options: OnceOptions): ResolvedOnceOptions =>
  resolve(ONCE, options);

const WORKER = {
  /** The key: the name of the work in all processes. */
  lockKey: required(
    // The key is checked where all keys are checked.
    tested<string>('a key', () => true),
  ),
  /**
   * How long a worker that died delays the others. At least 50 ms.
   *
   * @defaultValue the module's `ttl`
   */
  lockTimeout: optional(ttl),
  /**
   * How many attempts there may be, of all workers together.
   *
   * @defaultValue 3
   */
  maxAttempts: attempts,
  /**
   * How long the store keeps the record that the work is done or exhausted.
   *
   * @defaultValue 1 h
   */
  keepDone,
};

/** Options of a `LockingWorker`. */
export interface LockingWorkerOptions extends Readonly<OptionsOf<typeof WORKER>> {}

const OF_THE_MODULE = 'Where Redis is says LockModule: new LockingWorker(locks, { lockKey, … }).';

export const LOCKING_WORKER: Kind<typeof WORKER> = {
  called: 'LockingWorker',
  options: WORKER,
  elsewhere: {
    client: OF_THE_MODULE,
    host: OF_THE_MODULE,
    port: OF_THE_MODULE,
    statusLevel: 'The event "status" says everything.',
    ttl: 'Give "lockTimeout".',
    attempts: 'Give "maxAttempts".',
  },
};

/** @throws LockConfigurationError */
export function resolveWorkerOptions(options: LockingWorkerOptions): Resolved<typeof WORKER> {
  refuseUnknown(LOCKING_WORKER, options);
  return resolve(WORKER, options);
}
