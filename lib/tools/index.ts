/** `nestjs-holdfast/tools`: for programs beside the application, without Nest: a lock service, its administration and its Redis servers. */
import { LockEngine } from '../engine/lock-engine.js';
import type { Log } from '../observe/log.js';
import type { LockModuleOptions } from '../options/lock-module-options.js';
import { systemRuntime } from '../time/runtime.js';

export { LockAdmin } from '../admin/lock-admin.js';
export { LockConfigurationError, LockKeyError, LockStoreUnavailableError } from '../errors.js';
export { describe } from '../errors/describe.js';
export { redact } from '../errors/redact.js';
export { isRedisUrl, urlsIn } from '../store/redis/client/redis-url.js';
export type { RedisAnswer, RedisServer } from './redis-server.js';
export { RedisServers, type ReachedServers, type RedisServersOptions } from './redis-servers.js';
export type { LockEngine };

/**
 * Makes a lock service without Nest. Call `open()` first and `shutdown()` at the end. It is not listed among the
 * instances, so operators do not see this process.
 *
 * @param log gets what an application would find in its log
 * @throws LockConfigurationError for options that are wrong
 * @example
 * ```ts
 * import { createLocks, LockAdmin } from 'nestjs-holdfast/tools';
 *
 * const locks = createLocks({ redis: 'redis://localhost:6379' }, console);
 * await locks.open();
 * console.log(await new LockAdmin(locks).describe('order:42'));
 * await locks.shutdown();
 * ```
 */
export const createLocks = (options: LockModuleOptions, log: Log): LockEngine =>
  new LockEngine({ ...options, instance: false }, { runtime: systemRuntime, log });
