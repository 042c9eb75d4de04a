import { LockError } from './lock-error.js';
import { keysPhrase, wasOrWere } from './quote-keys.js';

/** The application is shutting down: no new locks are granted, and waiting calls are rejected (HTTP 503). */
export class LockServiceClosedError extends LockError {
  constructor(keys: readonly string[]) {
    super({
      code: 'LOCK_SERVICE_CLOSED',
      keys,
      clientMessage: 'The service is shutting down. Try again later.',
      message: (lock) => `The ${lock} was not acquired: the lock service is shutting down.`,
      retryAfterMs: Infinity,
      detail: `${keysPhrase(keys)} ${wasOrWere(keys)} not acquired: this LockService is shutting down and grants no more locks.`,
    });
  }
}
