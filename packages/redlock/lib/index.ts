export {
  ExecutionError,
  ResourceLockedError,
  type ExecutionResult,
  type ExecutionStats,
} from './errors.js';
export { RedlockLock as Lock } from './redlock-lock.js';
export { Redlock, Redlock as default, type RedlockAbortSignal } from './redlock.js';
export type { Settings } from './settings.js';
