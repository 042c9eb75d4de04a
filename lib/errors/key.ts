import { LockError } from './lock-error.js';

const NOT_VALID = 'A key that was to be locked is not valid.';

/** A key that must not be locked (HTTP 400 when its value came from the request, else 500). */
export class LockKeyError extends LockError {
  /** Whether the value came from the request, so that its sender is to blame. */
  readonly fromRequest: boolean;
  /** @internal The value that is at fault, as its template names it. */
  readonly what: string | undefined;

  constructor(facts: {
    readonly problem: string;
    readonly fromRequest?: boolean;
    readonly what?: string;
  }) {
    const fromRequest = facts.fromRequest ?? false;
    super({
      code: 'LOCK_KEY_INVALID',
      status: fromRequest ? 400 : undefined,
      clientMessage: fromRequest
        ? 'A value that identifies what to lock is missing or not valid.'
        : NOT_VALID,
      message: (lock) =>
        lock === 'lock' ? NOT_VALID : `A value for the key of the ${lock} is not valid.`,
      detail: facts.problem,
    });
    this.fromRequest = fromRequest;
    this.what = facts.what;
  }
}
