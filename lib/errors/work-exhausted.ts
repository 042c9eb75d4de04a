import { quoteKeys } from './quote-keys.js';
import { LockError } from './lock-error.js';

/**
 * Work that is to be done once (`@RunOnce`) has failed too often, or with a `NonRetryableError`, and is not tried any
 * more (HTTP 409).
 */
export class LockWorkExhaustedError extends LockError {
  /** How many attempts have been begun. */
  readonly attempts: number;
  /** The message of the error that the last attempt ended with, shortened; missing if its process died. */
  readonly lastError: string | undefined;

  constructor(facts: {
    readonly keys: readonly string[];
    readonly attempts: number;
    readonly lastError?: string | undefined;
    /** What its lock is called in the message. */
    readonly lock?: string | undefined;
  }) {
    const { keys, attempts, lastError } = facts;
    const end = lastError === undefined ? '' : ` The last one ended with: ${lastError}`;
    super({
      code: 'WORK_EXHAUSTED',
      keys,
      clientMessage: 'This has been tried without success, and is not tried again.',
      message: (lock) => `The work under the ${lock} has failed too often, and is not tried again.`,
      lock: facts.lock,
      detail: `The work ${quoteKeys(keys)} is not tried any more, after ${attempts === 1 ? '1 attempt' : `${String(attempts)} attempts`}.${end}`,
    });
    this.attempts = attempts;
    this.lastError = lastError;
  }
}
