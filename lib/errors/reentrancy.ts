import { LockError } from './lock-error.js';
import { INTERNAL } from './phrases.js';

/**
 * A section asks for a lock that it holds itself, in a way that would wait indefinitely, or with `reentrant: false`.
 */
export class LockReentrancyError extends LockError {
  constructor(facts: { readonly keys: readonly string[]; readonly problem: string }) {
    super({
      code: 'LOCK_REENTRANCY',
      keys: facts.keys,
      body: INTERNAL,
      clientMessage: 'A lock was asked for inside a section that holds it, or a part of it.',
      message: (lock) =>
        `The ${lock} was asked for inside a section that holds it, or a part of it.`,
      detail: facts.problem,
    });
  }
}
