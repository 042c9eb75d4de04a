// What a user writes in code, and nothing else: types of results and of parts of options are reached through these.
export { LockModule, RedisLockModule } from './nest/redis-lock.module.js';
export type { LockModuleOptions, LockOptionsFactory } from './options/lock-module-options.js';
export type { CredentialsProvider } from './store/redis/client/client-library.js';
export type { RedisLocation } from './store/redis/client/redis-location.js';
export { LockService, type DriverLockService } from './nest/lock.service.js';
export { getLockServiceToken, InjectLockService } from './nest/tokens.js';

export { WithLock } from './nest/methods/with-lock.decorator.js';
export type { KeyFunction, WithLockDecorator } from './nest/methods/with-lock.types.js';
export { CronLock } from './nest/methods/cron-lock.decorator.js';
export type { CronLockDecorator } from './nest/methods/cron-lock.types.js';
export { RunOnce } from './nest/methods/run-once.decorator.js';
export type { RunOnceDecorator } from './nest/methods/run-once.types.js';
export { Leader } from './nest/leaders/leader.decorator.js';
export type {
  LockedContext,
  LockFeatureOptions,
  WithLockOptions,
} from './nest/methods/method-options.js';
export { defineLock } from './nest/definitions/define-lock.js';
export type { DefinedLock } from './nest/definitions/defined-lock.js';
export type { LockDefinition } from './nest/definitions/definition.types.js';

export { LockErrorFilter } from './nest/handlers/lock-error.filter.js';
export { LockErrorInterceptor } from './nest/handlers/lock-error.interceptor.js';
export { LockInterceptor } from './nest/handlers/lock.interceptor.js';
export { setRetryAfter } from './nest/transports/http.js';

export { lockKey } from './key/index.js';
export type { DetachableLock, Lock } from './lease/lock.js';
export type { HoldMode } from './store/owner-token.js';
export type { Limiter, LimiterUsage } from './engine/limiter.js';
export type { Lead } from './leader/lead.js';
export type { Leadership } from './leader/leadership.js';
export type { LockInspection, TryRunResult } from './engine/lock-engine.js';
export { NonRetryableError, type OnceAttempt, type RunOnceResult } from './once/attempt.js';

export type {
  AcquireOptions,
  RunOptions,
  TryAcquireOptions,
  TryRunOptions,
} from './options/acquire-options.js';
export type { DetachOptions } from './options/detach-options.js';
export type { LeadOptions } from './leader/lead-options.js';
export type { LimiterOptions } from './options/limiter-options.js';
export type { RunOnceOptions } from './once/once-options.js';
export type { Duration } from './options/duration.js';

export type { LockEvents } from './observe/lock-events.js';
export type { StoreHealth } from './store/lock-store.js';
export type { LockDriver } from './store/driver/lock-driver.js';

export {
  LockFencedError,
  GuardedCommandError,
  LockConfigurationError,
  LockDeadlockError,
  LockError,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockNotAttachedError,
  LockNotBoundError,
  LockReentrancyError,
  LockReturnKindError,
  LockServiceClosedError,
  LockStoreUnavailableError,
  LockWorkExhaustedError,
  type LockErrorBody,
  type LockErrorCode,
} from './errors.js';
