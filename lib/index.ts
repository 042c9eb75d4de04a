export { Leader } from './nest/leaders/leader.decorator.js';
export type { LeaderMethodOptions } from './nest/leaders/leader-options.js';
export type { Lead, LeadEnd, LeadEnded, LeaderInfo } from './leader/lead.js';
export type { LeadOptions } from './leader/lead-options.js';
export type { Leadership } from './leader/leadership.js';
export { defineLock } from './nest/definitions/define-lock.js';
export type { DefinedLock } from './nest/definitions/defined-lock.js';
export type {
  KeyArguments,
  KeyParameters,
  KeyValues,
  LockDefinition,
  LockKeyValue,
  LockWork,
} from './nest/definitions/definition.types.js';
export { RunOnce } from './nest/methods/run-once.decorator.js';
export type {
  LockedContext,
  LockFeatureOptions,
  RunOnceMethodOptions,
  WithLockOptions,
} from './nest/methods/method-options.js';
export type { RunOnceKey } from './nest/methods/run-once.types.js';
export { WithLock } from './nest/methods/with-lock.decorator.js';
export type { KeyFunction, LockKeys, WithLockKey } from './nest/methods/with-lock.types.js';
export {
  FencedError,
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
  WorkExhaustedError,
  type LockErrorBody,
  type LockErrorExtensions,
  type LockErrorCode,
  type Intervention,
  type LockLossReason,
  type LockLostReason,
  type NodeFailure,
  type NotAttachedReason,
} from './errors.js';
export { LockErrorFilter } from './nest/handlers/lock-error.filter.js';
export { LockErrorInterceptor } from './nest/handlers/lock-error.interceptor.js';
export { LockInterceptor } from './nest/handlers/lock.interceptor.js';
export { lockKey, type RequestValues } from './key/index.js';
export type { Clock, Instant } from './time/clock.js';
export type { DetachableLock, Lock } from './lease/lock.js';
export type {
  AcquireContext,
  HoldContext,
  LockSubject,
  ReleaseContext,
  RenewContext,
  RenewedLease,
  RequestContext,
} from './observe/contexts.js';
export type {
  LockEventListener,
  LockEventName,
  LockEvents,
  OnceProgress,
} from './observe/lock-events.js';
export type { LockInspection, TryRunResult } from './engine/lock-engine.js';
export type { Limiter, LimiterUsage } from './engine/limiter.js';
export type { LimiterOptions } from './options/limiter-options.js';
export { LockService, type DriverLockService } from './nest/lock.service.js';
export type {
  AcquireOptions,
  LockDefinitionOptions,
  RunOptions,
  TryAcquireOptions,
  TryRunOptions,
} from './options/acquire-options.js';
export type { AttachOptions, DetachOptions } from './options/detach-options.js';
export type { Wait } from './options/checks.js';
export type { Duration } from './options/duration.js';
export type {
  HandoffOptions,
  LockErrorOptions,
  LockModuleOptions,
  LockOptionsFactory,
  ReplicaGuardOptions,
  RestartGuardOptions,
} from './options/lock-module-options.js';
export type { OnceAttempt, RunOnceResult } from './once/attempt.js';
export { NonRetryableError } from './once/non-retryable-error.js';
export type { OnceOptions, RunOnceOptions } from './once/once-options.js';
export { LockModule, RedisLockModule } from './nest/redis-lock.module.js';
export type { StoreHealth } from './store/lock-store.js';
export type { HoldMode } from './store/owner-token.js';
export type { LockDriver } from './store/driver/lock-driver.js';
export type { CredentialsProvider, RedisCredentials } from './store/redis/client/login.js';
export type { RedisLocation } from './store/redis/client/redis-source.js';
export { setRetryAfter } from './nest/transports/http.js';
export { getLockServiceToken, InjectLockService } from './nest/tokens.js';
