import { attempts, keepDone } from '../once/once-options.js';
import { tested, ttl } from '../options/checks.js';
import { optional, required, type OneSchema, type OptionsOf } from '../options/schema.js';
import type { Kind } from '../options/unknown-option.js';

const WORKER = {
  /** The key: the name of the work in all processes. */
  lockKey: required(
    // The key is checked where all keys are checked.
    tested<string>('a key', () => true),
  ),
  /**
   * How long the other workers wait after a worker has died. At least 50 ms.
   *
   * @defaultValue the module's `ttl`
   */
  lockTimeout: optional(ttl),
  /**
   * How many attempts all workers together may make.
   *
   * @defaultValue 3
   */
  maxAttempts: attempts,
  /**
   * How long Redis keeps the record that the work is done or exhausted. At least 1 s.
   *
   * @defaultValue 1 h
   */
  keepDone,
};

/** Options of a `LockingWorker`. */
export interface LockingWorkerOptions extends Readonly<OptionsOf<typeof WORKER>>, OneSchema {}

const OF_THE_MODULE = 'LockModule configures Redis: new LockingWorker(locks, { lockKey, … }).';

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
