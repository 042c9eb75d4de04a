export {
  ExecutionError,
  ResourceLockedError,
  type ExecutionResult,
  type ExecutionStats,
} from './errors.js';
export {
  Redlock,
  Redlock as default,
  RedlockLock as Lock,
  type RedlockAbortSignal,
} from './redlock.js';
export type { Settings } from './settings.js';
