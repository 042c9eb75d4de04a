export { LockConfigurationError } from './errors/configuration.js';
export { LockDeadlockError } from './errors/deadlock.js';
export { LockFencedError } from './errors/fenced.js';
export { GuardedCommandError } from './errors/guarded-command.js';
export { LockKeyError } from './errors/key.js';
export {
  LockError,
  type LockErrorBody,
  type LockErrorCode,
  type LockErrorExtensions,
} from './errors/lock-error.js';
export {
  LockLostError,
  type Intervention,
  type LockLossReason,
  type LockLostReason,
} from './errors/lost.js';
export { LockNotBoundError, LockReentrancyError, LockReturnKindError } from './errors/misuse.js';
export { LockNotAttachedError, type NotAttachedReason } from './errors/not-attached.js';
export { LockNotAcquiredError, type HeldHere } from './errors/not-acquired.js';
export { LockServiceClosedError } from './errors/service-closed.js';
export { LockStoreUnavailableError, type NodeFailure } from './errors/store-unavailable.js';
export { LockWorkExhaustedError } from './errors/work-exhausted.js';
