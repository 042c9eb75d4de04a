export { LockConfigurationError } from './errors/configuration.js';
export {
  LockError,
  type LockErrorBody,
  type LockErrorCode,
  type LockErrorExtensions,
} from './errors/lock-error.js';
export {
  LockFencedError,
  LockLostError,
  type Intervention,
  type LockLossReason,
  type LockLostReason,
} from './errors/lost.js';
export {
  GuardedCommandError,
  LockKeyError,
  LockNotBoundError,
  LockReentrancyError,
  LockReturnKindError,
} from './errors/misuse.js';
export {
  LockDeadlockError,
  LockNotAcquiredError,
  LockServiceClosedError,
  type HeldHere,
} from './errors/not-acquired.js';
export { LockNotAttachedError, type NotAttachedReason } from './errors/not-attached.js';
export { LockStoreUnavailableError, type NodeFailure } from './errors/store-unavailable.js';
export { LockWorkExhaustedError } from './errors/work-exhausted.js';
