import { LockError } from './lock-error.js';
import { INTERNAL } from './phrases.js';

/** A `@WithLock` method was called on an object that has no `LockService`. The method did not run. */
export class LockNotBoundError extends LockError {
  constructor(problem: string) {
    super({ code: 'LOCK_NOT_BOUND', body: INTERNAL, clientMessage: problem, detail: problem });
  }
}

/** The method returned another kind of value than its `returns` option names. */
export class LockReturnKindError extends LockError {
  constructor(problem: string, keys: readonly string[] = []) {
    super({
      code: 'LOCK_RETURN_KIND',
      keys,
      body: INTERNAL,
      clientMessage:
        'What ran under a lock did not return what it has to: a promise, or the kind of stream that it declares.',
      detail: problem,
    });
  }
}
