/** `nestjs-holdfast/admin`: the holders and waiters of each lock, since when, and how to free it. */
export type { InterventionRequest } from '../engine/interventions.js';
export { LockAdmin } from './lock-admin.js';
export { LockAdminModule, type LockAdminModuleOptions } from './lock-admin.module.js';
export type {
  ActivityMinute,
  AuditEntry,
  CallOrigin,
  HolderInfo,
  HotKey,
  HotKeys,
  InstanceInfo,
  InterventionOutcome,
  ListOptions,
  LeaseSummary,
  LockDescription,
  LockMode,
  LockSummary,
  OnceInfo,
  PastHoldInfo,
  SeenHolder,
  SeenInstance,
  SeenLock,
  SeenOnce,
  WaiterInfo,
} from './lock-admin.types.js';
