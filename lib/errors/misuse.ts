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

/** A `@WithLock` method was called on an object that has no `LockService`. The method did not run. */
export class LockNotBoundError extends LockError {
  constructor(problem: string) {
    super({
      code: 'LOCK_NOT_BOUND',
      clientMessage: 'This needs a lock, and the application gives it none.',
      message: () => problem,
      detail: problem,
    });
  }
}

/** The method returned another kind of value than its `returns` option names. */
export class LockReturnKindError extends LockError {
  constructor(problem: string, keys: readonly string[] = []) {
    super({
      code: 'LOCK_RETURN_KIND',
      keys,
      clientMessage:
        'What ran under a lock did not return what it has to: a promise, or the kind of stream that it declares.',
      detail: problem,
    });
  }
}

/**
 * A section asks for a lock that it holds itself, in a way that would wait indefinitely, or with `reentrant: false`.
 */
export class LockReentrancyError extends LockError {
  constructor(facts: { readonly keys: readonly string[]; readonly problem: string }) {
    super({
      code: 'LOCK_REENTRANCY',
      keys: facts.keys,
      clientMessage: 'A lock was asked for inside a section that holds it, or a part of it.',
      message: (lock) =>
        `The ${lock} was asked for inside a section that holds it, or a part of it.`,
      detail: facts.problem,
    });
  }
}

/**
 * Redis replied to a command of `lock.guarded` with an error. The commands before it took effect, and those after it
 * were not run. As in a transaction of Redis, nothing is rolled back.
 */
export class GuardedCommandError extends Error {
  override readonly name = 'GuardedCommandError';
  /** Which of the commands, counted from 0. */
  readonly index: number;
  /** The name of the command. */
  readonly command: string;

  constructor(facts: {
    readonly index: number;
    readonly command: string;
    readonly message: string;
  }) {
    super(
      `Command ${String(facts.index + 1)} of guarded() (${facts.command}) failed: ${facts.message}. Those before it have taken effect.`,
    );
    this.index = facts.index;
    this.command = facts.command;
  }
}
