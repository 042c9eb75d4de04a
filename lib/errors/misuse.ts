import { LockError } from './lock-error.js';

/** A `@WithLock` method was called on an object that has no `LockService`. The method did not run. */
export class LockNotBoundError extends LockError {
  constructor(problem: string) {
    super({ code: 'LOCK_NOT_BOUND', clientMessage: problem, detail: problem });
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
