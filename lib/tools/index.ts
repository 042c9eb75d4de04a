/** `nestjs-holdfast/tools`: for programs beside the application, without Nest: a lock service, its administration and its Redis servers. */
export { LockAdmin } from '../admin/lock-admin.js';
export type { LockEngine } from '../engine/lock-engine.js';
export { LockConfigurationError, LockKeyError, LockStoreUnavailableError } from '../errors.js';
export { describe } from '../errors/describe.js';
export { redact } from '../errors/redact.js';
export { createLocks } from './create-locks.js';
export type { RedisAnswer, RedisServer } from './redis-server.js';
export { RedisServers, type ReachedServers, type RedisServersOptions } from './redis-servers.js';
